"""Where memories are kept: from an address to the ledger of a namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from clew.errors import MissingExtra
from clew.memory.known import Ledger
from clew.memory.stored import Stored
from clew.storage.copy import memory_namespaces
from clew.storage.locate import open_store
from clew.storage.store import Store


class Place(Protocol):
    """Somewhere memories are kept. `store` has what goes with the records: their vectors."""

    store: Store

    def ledger(self, namespace: str) -> Ledger:
        """The log of a namespace."""

    def namespaces(self) -> list[str]:
        """The namespaces that have a memory here."""

    def close(self) -> None:
        """Lets go of it."""


class Tables:
    """The tables of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def ledger(self, namespace: str) -> Ledger:
        return Stored(self.store, namespace)

    def namespaces(self) -> list[str]:
        return memory_namespaces(self.store)

    def close(self) -> None:
        self.store.close()


def open_place(where: str | Path | Store | Place) -> Place:
    """Opens what an address names: `redis://…` (`rediss://`, `unix://`), `json:FILE`, or a store of sessions (see
    `clew.storage.open_store`). A place that is open already is given back as it is. Raises `StoreError`."""
    if isinstance(where, Store | Path):
        return Tables(open_store(where))
    if not isinstance(where, str):
        return where
    scheme, _, rest = where.partition(":")
    if scheme == "json":
        from clew.memory.jsonfile import JsonFile

        return JsonFile(rest)
    if scheme in ("redis", "rediss", "unix") and rest.startswith("//"):
        try:
            from clew.memory.redis import Redis
        except ModuleNotFoundError as error:
            raise MissingExtra("redis", str(error.name), "memories in Redis") from error
        return Redis(where)
    return Tables(open_store(where))
