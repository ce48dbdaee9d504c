"""The store: sessions and entries in a database. The SQL is the same for every database.

What differs between databases (how to connect, how a write transaction begins) is given to the
constructor by the module of that database; today there is `clew.storage.sqlite`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from types import UnionType
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.sql import ClauseElement

from clew.errors import LeaseLost, SessionBusy, StoreError, UnknownName
from clew.storage import lease, statements
from clew.storage.rows import EntryRow, SessionRow
from clew.storage.schema import sessions
from clew.storage.statements import BATCH


class Repeated(StoreError):
    """An entry was not added because the session has one with its key (or, in a damaged file, its id)."""


class Store:
    """An open database. Use by several threads is serialised; reading needs no lease.

    `connection` is in autocommit mode, `begin` the statement that begins a write transaction (it
    takes the database's write lock at once), `where` the store's address for messages. A store is
    counted: each `share()` asks for one more `close()`.
    """

    def __init__(self, connection: Connection, begin: str, where: str) -> None:
        self.where = where
        self._connection = connection
        self._begin = begin
        self._lock = threading.RLock()
        self._users = 1
        self._exclusive = False
        self._pid = os.getpid()
        self._advance = _Prepared(connection, statements.ADVANCE)
        self._add = _Prepared(connection, statements.ADD)

    def share(self) -> Store:
        """The same store for one more user."""
        with self._lock:
            self._users += 1
        return self

    def close(self) -> None:
        """Lets go of the store; the last user closes the database."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._connection.close()
                self._connection.engine.dispose()

    # -- sessions

    def create(self, row: SessionRow) -> None:
        """Adds a session."""
        with self.writing() as db:
            db.execute(insert(sessions), {name: getattr(row, name) for name in row.__struct_fields__})

    def session(self, namespace: str, id: str) -> SessionRow | None:
        """The session with exactly this id."""
        with self.reading() as db:
            return _session(db.execute(statements.SESSION, {"namespace": namespace, "id": id}).first())

    def find(self, namespace: str, id: str) -> SessionRow:
        """The session with this id, or with an id that alone begins so. Raises `UnknownName`."""
        exact = self.session(namespace, id)
        if exact is not None:
            return exact
        rows = self.sessions(namespace)
        matches = [row for row in rows if id and row.id.startswith(id)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UnknownName(f"{len(matches)} sessions begin with {id!r}: {_listed(matches)}; give more of the id")
        if not rows:
            raise UnknownName(f"no session {id!r}: {self.where} has no session in namespace {namespace!r}")
        near = get_close_matches(id, [row.id for row in rows], 5, 0.4) or get_close_matches(
            id, [row.title for row in rows if row.title], 5, 0.4
        )
        close = [row for row in rows if row.id in near or row.title in near] or rows
        raise UnknownName(f"no session {id!r} in {self.where}, namespace {namespace!r}; nearest: {_listed(close)}")

    def sessions(self, namespace: str) -> list[SessionRow]:
        """All sessions of a namespace, the one last written first. Reads no entry."""
        with self.reading() as db:
            return [_row(found) for found in db.execute(statements.SESSIONS, {"namespace": namespace}).all()]

    # -- reading entries

    def links(self, namespace: str, session: str, first: int, last: int | None = None) -> list[tuple[Any, Any]]:
        """(id, parent) of a session's own entries from `first` to `last`, ascending, without their bodies."""
        with self.reading() as db:
            chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
            return [(row[0], row[1]) for row in db.execute(statements.LINKS, chosen).all()]

    def heads(self, namespace: str, session: str, first: int, last: int | None = None) -> list[EntryRow]:
        """A session's own entries from `first` to `last`, ascending, with empty bodies."""
        with self.reading() as db:
            chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
            return [EntryRow._make(row) for row in db.execute(statements.HEADS, chosen).all()]

    def rows(self, namespace: str, session: str, first: int, last: int | None = None) -> Iterator[EntryRow]:
        """A session's own entries from `first` to `last`, ascending, read a batch at a time."""
        chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
        while True:
            with self.reading() as db:
                batch = db.execute(statements.ROWS, chosen).all()
            for row in batch:
                yield EntryRow._make(row)
            if len(batch) < BATCH:
                return
            chosen["first"] = batch[-1][0] + 1

    def held(self, namespace: str, session: str, keys: Sequence[str], last: int | None = None) -> dict[str, int]:
        """Which of these keys the session's own entries up to `last` have, and the entries' ids."""
        found: dict[str, int] = {}
        for at in range(0, len(keys), BATCH):
            chosen = {"namespace": namespace, "session": session, "keys": keys[at : at + BATCH], "last": _end(last)}
            with self.reading() as db:
                found.update((row[0], row[1]) for row in db.execute(statements.HELD, chosen).all())
        return found

    # -- writing

    def claim(self, namespace: str, session: str, owner: str) -> SessionRow:
        """Takes the session's write lease for `owner` and returns the session as it is then.

        Raises `SessionBusy` while another owner holds it: until its time is over, or at once when
        it is known to have ended.
        """
        with self.writing() as db:
            row = _session(db.execute(statements.SESSION, {"namespace": namespace, "id": session}).first())
            if row is None:
                raise UnknownName(f"session {session} is no longer in {self.where}")
            now = time.time()
            held = row.lease_owner not in ("", owner) and row.lease_expires > now
            if held and not lease.gone(row.lease_owner):
                raise SessionBusy(session, row.lease_owner, row.lease_expires - now)
            db.execute(
                statements.TAKE,
                {
                    "of_namespace": namespace,
                    "of_session": session,
                    "owner": owner,
                    "expires": now + lease.LEASE_SECONDS,
                },
            )
            return row

    def release(self, namespace: str, session: str, owner: str) -> None:
        """Gives the lease back if `owner` still has it."""
        mine = {"of_namespace": namespace, "of_session": session, "owner": owner}
        with self.writing() as db:
            db.execute(statements.RELEASE, mine)

    def append(self, namespace: str, session: str, owner: str, rows: Sequence[EntryRow], leaf: int | None) -> None:
        """Adds entries (at least one) and moves the leaf, in one transaction that is on disk when this returns.

        Renews the lease. With nothing written, raises `LeaseLost` when `owner` does not have it and
        `Repeated` when one of the entries is there already.
        """
        now = time.time()
        values = {
            "of_namespace": namespace,
            "of_session": session,
            "owner": owner,
            "oldest": rows[0].id,
            "new_leaf": leaf,
            "newest": rows[-1].id,
            "added": len(rows),
            "now": now,
            "expires": now + lease.LEASE_SECONDS,
        }
        records = [(namespace, session, *row) for row in rows]
        with self.writing() as db:
            if db.exec_driver_sql(self._advance.sql, self._advance.values(values)).rowcount != 1:
                raise _lost(session)
            try:
                db.exec_driver_sql(self._add.sql, records if len(records) > 1 else records[0])
            except IntegrityError as error:
                raise Repeated(f"{self.where}: {error.orig}; nothing was written") from error

    def move(self, namespace: str, session: str, owner: str, leaf: int | None) -> None:
        """Moves the leaf; as durable, and as strict about the lease, as `append`."""
        now = time.time()
        values = {
            "of_namespace": namespace,
            "of_session": session,
            "owner": owner,
            "new_leaf": leaf,
            "now": now,
            "expires": now + lease.LEASE_SECONDS,
        }
        with self.writing() as db:
            if db.execute(statements.MOVE, values).rowcount != 1:
                raise _lost(session)

    # -- transactions

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Makes one transaction of all that is read and written inside: nobody else writes in between."""
        with self.writing():
            self._exclusive = True
            try:
                yield
            finally:
                self._exclusive = False

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for this thread alone until the block ends."""
        with self._lock, reporting(self.where):
            yield self._open()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """As `reading`, in a write transaction: on disk when the block has ended, undone if it raises."""
        with self._lock, reporting(self.where):
            db = self._open()
            if self._exclusive:
                yield db
                return
            try:
                db.exec_driver_sql(self._begin)
                yield db
                db.exec_driver_sql("COMMIT")
            except BaseException:
                db.connection.rollback()
                raise

    def _open(self) -> Connection:
        if self._connection.closed:
            raise StoreError(f"{self.where} has been closed; open it again")
        if os.getpid() != self._pid:
            raise StoreError(f"{self.where} was opened before a fork; open it again in the new process")
        return self._connection


@contextmanager
def reporting(where: str) -> Iterator[None]:
    """Turns the database's errors into `StoreError`."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError) as error:
        raise StoreError(f"{where}: {error}; no such value can be stored or found") from error
    except DBAPIError as error:
        reason = str(error.orig)
        advice = next((then for sign, then in _ADVICE.items() if sign in reason), "nothing was written")
        raise StoreError(f"{where}: {reason}; {advice}") from error


_ADVICE = {
    "locked": "another process has been writing all the time; try again",
    "full": "nothing was written: free some space and try again",
    "readonly": "nothing was written: make the file and its folder writable",
    "malformed": "the file is damaged: copy it aside and read it with `sqlite3 FILE .recover`",
    "not a database": "the file is damaged, or is no Clew store: it was left as it is",
}


class _Prepared:
    """A statement compiled once, for the path that every append takes: it halves what an append costs
    beside the disk (84 to 45 µs with SQLAlchemy 2.1, where the bare statements take 15 µs)."""

    def __init__(self, connection: Connection, statement: ClauseElement) -> None:
        compiled = statement.compile(connection.engine)
        self.sql = str(compiled)
        self._order: Sequence[str] = getattr(compiled, "positiontup", ())

    def values(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values in the order of the statement."""
        return tuple(values[name] for name in self._order)


def _lost(session: str) -> LeaseLost:
    return LeaseLost(f"another writer has taken session {session}; open it again to continue")


def _end(last: int | None) -> int:
    return 2**63 - 1 if last is None else last


def _session(found: Any) -> SessionRow | None:
    return None if found is None else _row(found)


def _row(found: Any) -> SessionRow:
    """The row; in a damaged file any value may be anything: what is not of its kind is as if it had not been set."""
    values = dict(zip(SessionRow.__struct_fields__, found, strict=True))
    wrong = [name for name, kind in _KINDS.items() if not isinstance(values[name], kind)]
    return SessionRow(**{name: value for name, value in values.items() if name not in wrong})


_KINDS: Mapping[str, type | UnionType] = {
    "title": str,
    "created": int | float,
    "updated": int | float,
    "last": int,
    "entries": int,
    "parent": str | None,
    "parent_entry": int | None,
    "lease_owner": str,
    "lease_expires": int | float,
    "meta": bytes | str,
}
"""What the columns of a session hold, but for the leaf, which `Log` looks at and reports."""


def _listed(rows: Sequence[SessionRow]) -> str:
    shown = [f"{row.id} ({row.title})" if row.title else row.id for row in rows[:5]]
    return ", ".join(shown) + (", …" if len(rows) > 5 else "")
