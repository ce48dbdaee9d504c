"""From an address to an open store."""

from __future__ import annotations

from pathlib import Path

from clew.errors import MissingExtra, StoreError
from clew.storage.sqlite import open_file, open_memory
from clew.storage.store import Store


def open_store(where: str | Path | Store, *, create: bool = True) -> Store:
    """Opens a store by path, `sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://` or
    `postgresql://user@host/database`.

    `memory://` is a new, empty store each time; a store that is already open is shared. Close what
    you get. With `create=False` a file that does not exist is an error. Raises `StoreError`.
    """
    if isinstance(where, Store):
        return where.share()
    if isinstance(where, str):
        scheme, found, rest = where.partition("://")
        if found and scheme == "memory":
            return open_memory()
        if found and scheme in ("postgresql", "postgres"):
            return _server(where, create)
        if found and scheme == "sqlite":
            where = rest.removeprefix("/")
        elif where.startswith(("redis://", "rediss://", "unix://", "json:")):
            raise StoreError(
                f"Redis and JSON files keep memories only ({scheme}); keep sessions in a file or PostgreSQL"
            )
        elif found:
            raise StoreError(
                f"no store for {scheme}:// addresses; use a path, sqlite:///FILE, memory:// or "
                "postgresql://USER@HOST/DATABASE"
            )
        if not where:
            raise StoreError("the store's path is empty; give the path of a file")
    return open_file(Path(where).expanduser(), create=create)


def _server(where: str, create: bool) -> Store:
    try:
        from clew.storage.postgres import open_server
    except ModuleNotFoundError as error:
        raise MissingExtra("postgres", str(error.name), "stores on PostgreSQL") from error
    return open_server(where, create=create)
