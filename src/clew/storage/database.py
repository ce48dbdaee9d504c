"""A connection to a database: its transactions, its errors, and what happens when it breaks off."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import Executable

from clew.errors import StoreError

T = TypeVar("T")

Work = Callable[[bool], T]
"""Something done in one transaction. It may be called again when the database broke off; it is then told whether an
earlier call may have been committed all the same, which it has to look up before it writes anything."""


class Database:
    """An open database of one connection. Use by several threads is serialised.

    `begin` is the statement that begins a write transaction, `where` the address for messages. A database is counted:
    each `share()` asks for one more `close()`. What differs on a server (`clew.storage.postgres`) overrides what
    stands under "inside".
    """

    begin = "BEGIN"

    def __init__(self, engine: Engine, where: str) -> None:
        self.where = where
        self._engine = engine
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._users = 1
        self._writer: int | None = None  # the thread that is in a write transaction
        self._pid = os.getpid()
        self._closed = False

    @property
    def dialect(self) -> Dialect:
        """How SQL is written here."""
        return self._engine.dialect

    def share(self) -> None:
        """Counts one more user."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """Lets go of the database; the last user closes it."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._closed = True
                self._drop()
                self._engine.dispose()

    # -- transactions

    def patiently(self, work: Work[T]) -> T:
        """The result of the work. On a server it is done again, for a bounded time, while the connection is lost or
        other writers are in the way; inside a transaction it is done once, as what came before it would be lost."""
        return work(False)

    def read(self, statement: Executable, values: Mapping[str, Any]) -> list[Any]:
        """The rows a statement finds, patiently."""

        def work(again: bool) -> list[Any]:
            with self.reading() as db:
                return list(db.execute(statement, values).all())

        return self.patiently(work)

    @contextmanager
    def exclusive(self, namespace: str) -> Iterator[None]:
        """Makes one transaction of all that is read and written inside: nobody else who asks for the same writes in
        between."""
        with self.writing(namespace):
            yield

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for this thread alone until the block ends."""
        with self._lock, self.reporting():
            yield self._open()

    @contextmanager
    def writing(self, namespace: str = "") -> Iterator[Connection]:
        """As `reading`, in a write transaction: durable when the block has ended, undone if it raises.

        With a namespace, it is the only such transaction of that namespace: each begins when the one before has
        ended, and sees what that has written. (On SQLite every write transaction is the only one.) Inside another
        transaction it is a part of that one.
        """
        with self._lock, self.reporting():
            db = self._open()
            if self._writer is not None:
                if namespace:
                    self._alone(db, namespace)
                yield db
                return
            self._writer = threading.get_ident()
            try:
                db.exec_driver_sql(self.begin)
                if namespace:
                    self._alone(db, namespace)
                yield db
                with self.reporting(committing=True):
                    db.exec_driver_sql("COMMIT")
            except BaseException:
                self._undo(db)
                raise
            finally:
                self._writer = None

    @contextmanager
    def reporting(self, *, committing: bool = False) -> Iterator[None]:
        """Turns the database's errors into `StoreError`."""
        try:
            yield
        except (UnicodeEncodeError, OverflowError) as error:
            raise StoreError(f"{self.where}: {error}; no such value can be stored or found") from error
        except DBAPIError as error:
            raise self._typed(error, committing) from error

    # -- inside

    def _open(self) -> Connection:
        """The connection, as long as it may be used here."""
        if self._closed:
            raise StoreError(f"{self.where} has been closed; open it again")
        if os.getpid() != self._pid:
            raise StoreError(f"{self.where} was opened before a fork; open it again in the new process")
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        return self._connection

    def _drop(self) -> None:
        """Closes the connection; the next use makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _alone(self, db: Connection, namespace: str) -> None:
        """Waits, inside a transaction, until no other one is `_alone` in the namespace."""

    def _undo(self, db: Connection) -> None:
        db.connection.rollback()

    def _typed(self, error: DBAPIError, committing: bool) -> StoreError:
        raise NotImplementedError
