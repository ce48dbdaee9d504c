"""SQLite: one file, no server. All that is particular to it is here.

WAL with synchronous FULL: a commit is on disk when it returns, readers never wait, one process
writes at a time and the others wait for it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from clew.errors import StoreError
from clew.storage.database import Database
from clew.storage.migrate import bring_up, current
from clew.storage.schema import REVISIONS
from clew.storage.store import Store

BEGIN = "BEGIN IMMEDIATE"
BUSY_SECONDS = 30.0
"""How long a write waits for those of other processes, each of which takes milliseconds."""

PAGE = 16 * 1024
"""Bytes of a page in a new file. Entries are some KB each: with SQLite's own 4 KB most would lie across
pages, and bulk writes take a tenth longer; an append by itself waits for the disk either way."""

CACHE = 64 * 1024 * 1024
"""Bytes of pages that a connection keeps at most: a bulk write then goes to disk once, at its commit, and what recalls
read again among 100,000 records is at hand (a sixth less time than with 16 MB)."""

APPLICATION_ID = int.from_bytes(b"Clew")
"""Written into the file's header (bytes 68 to 71), so that other programs' databases are told apart."""

_MAGIC = b"SQLite format 3\0"


def open_file(path: Path, *, create: bool) -> Store:
    """Opens the store in a file; with `create`, makes the file (0600) and its folders (0700) if need be.

    A file that is no store of ours is refused before SQLite touches it. Raises `StoreError`.
    """
    where = str(path)
    try:
        with _OPENING:
            if create and not path.exists():
                _create(path)
            file = _identity(path)
            if file not in _OPEN.values():
                _check(path)
            raw = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_Connection
            )
            _OPEN[raw] = file
    except (OSError, sqlite3.Error, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(f"{where}: {error}; check the path and its permissions") from error
    return _store(raw, where)


def open_memory() -> Store:
    """A store in memory, gone when it is closed."""
    return _store(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), "memory://")


class _Connection(sqlite3.Connection):
    def close(self) -> None:
        super().close()
        _OPEN.pop(self, None)


_OPEN: WeakKeyDictionary[sqlite3.Connection, tuple[int, int]] = WeakKeyDictionary()
"""The files this process has open. Such a file must not be read outside SQLite: to close it, even
after only reading, would take away the locks that SQLite's connections of this process hold on it."""

_OPENING = threading.Lock()


def _identity(path: Path) -> tuple[int, int]:
    if not path.exists():
        raise StoreError(f"{path}: there is no store here")
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def _create(path: Path) -> None:
    for folder in reversed(path.absolute().parents):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync(folder.parent)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:  # another process was faster
        return
    _sync(path.absolute().parent)


def _sync(folder: Path) -> None:
    """Makes a new name in a folder as durable as what will be written there."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def _check(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(100)
    if not head:
        return
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise StoreError(f"{path} is not a Clew store but some other file; it was left as it is")
    if int.from_bytes(head[68:72]) != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program; it was left as it is")


def _store(raw: sqlite3.Connection, where: str) -> Store:
    raw.text_factory = partial(str, encoding="utf-8", errors="replace")
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=NullPool)
    database = _Database(engine, where)
    try:
        with database.reading() as connection:
            _prepare(connection)
        return Store(database)
    except BaseException:
        database.close()  # not `raw` first: SQLAlchemy would still try to roll back on it, and print how that failed
        raw.close()
        raise


class _Database(Database):
    begin = BEGIN

    def _typed(self, error: DBAPIError, committing: bool) -> StoreError:
        return failure(self.where, error)


def failure(where: str, error: DBAPIError) -> StoreError:
    """What an error of SQLite means, and what to do."""
    reason = str(error.orig)
    advice = next((then for sign, then in _ADVICE.items() if sign in reason), "nothing was written")
    return StoreError(f"{where}: {reason}; {advice}")


_ADVICE = {
    "locked": "another process has been writing all the time; try again",
    "full": "nothing was written: free some space and try again",
    "readonly": "nothing was written: make the file and its folder writable",
    "malformed": "the file is damaged: copy it aside and read it with `sqlite3 FILE .recover`",
    "not a database": "the file is damaged, or is no Clew store: it was left as it is",
}


def _prepare(db: Connection) -> None:
    """Settings of the connection, and the schema.

    The tables and the application id are made in one transaction while the file still uses a
    rollback journal: whatever happens in between, the file is empty or a whole store.
    """
    db.exec_driver_sql(f"PRAGMA page_size={PAGE}")
    db.exec_driver_sql(f"PRAGMA cache_size={-CACHE // 1024}")
    for setting in ("foreign_keys=ON", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON"):
        db.exec_driver_sql(f"PRAGMA {setting}")  # fullfsync: on macOS a plain fsync does not reach the disk
    if current(db) != REVISIONS[-1]:
        db.exec_driver_sql(BEGIN)
        try:
            bring_up(db)
            db.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
            db.exec_driver_sql("COMMIT")
        except BaseException:
            db.connection.rollback()
            raise
    _wal(db)


def _wal(db: Connection) -> None:
    """Switches to WAL, which the file then remembers. Needs a moment without any other reader, for
    which SQLite does not wait by itself."""
    until = time.monotonic() + BUSY_SECONDS
    while db.exec_driver_sql("PRAGMA journal_mode").scalar() not in ("wal", "memory"):
        try:
            db.exec_driver_sql("PRAGMA journal_mode=WAL")
        except OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
