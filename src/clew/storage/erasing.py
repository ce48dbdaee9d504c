"""Taking what is deleted off the disk as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clew.storage.store import Store


@contextmanager
def erasing(store: Store) -> Iterator[None]:
    """What is deleted or replaced inside is nowhere in the store's file afterwards.

    SQLite overwrites it and its journal is emptied, for which it waits until others have read. A server does so in its
    own time (PostgreSQL: when the table is vacuumed).
    """
    if store.database.dialect.name != "sqlite":
        yield
        return
    with store.reading() as db:
        db.exec_driver_sql("PRAGMA secure_delete=ON")
    try:
        yield
    finally:
        with store.reading() as db:
            db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            db.exec_driver_sql("PRAGMA secure_delete=OFF")
