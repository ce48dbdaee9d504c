"""The store: sessions and entries in a database. The SQL is the same for every database.

How to connect, how writers wait for each other, what its errors mean: that differs, and stands in the module of each
database, `clew.storage.sqlite` and `clew.storage.postgres`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from types import UnionType
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import Executable

from clew.errors import LeaseLost, SessionBusy, StoreError, UnknownName
from clew.storage import lease, statements
from clew.storage.database import Database, T, Work
from clew.storage.prepared import Prepared
from clew.storage.rows import EntryRow, SessionRow
from clew.storage.schema import sessions
from clew.storage.statements import BATCH

_ADVANCE = Prepared(statements.ADVANCE)
_ADD = Prepared(statements.ADD)


class Repeated(StoreError):
    """An entry was not added because the session has one with its key (or, in a damaged file, its id)."""


class Store:
    """An open database of sessions. Use by several threads is serialised; reading needs no lease.

    A store is counted: each `share()` asks for one more `close()`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    @property
    def where(self) -> str:
        """The address, for messages; without a password."""
        return self.database.where

    def share(self) -> Store:
        """The same store for one more user."""
        self.database.share()
        return self

    def close(self) -> None:
        """Lets go of the store; the last user closes the database."""
        self.database.close()

    # -- sessions

    def create(self, row: SessionRow) -> None:
        """Adds a session."""

        def work(again: bool) -> None:
            with self.writing() as db:
                if again and self._row(db, row.namespace, row.id) == row:
                    return
                db.execute(insert(sessions), {name: getattr(row, name) for name in row.__struct_fields__})

        self.patiently(work)

    def session(self, namespace: str, id: str) -> SessionRow | None:
        """The session with exactly this id."""
        found = self.read(statements.SESSION, {"namespace": namespace, "id": id})
        return _row(found[0]) if found else None

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
        return [_row(found) for found in self.read(statements.SESSIONS, {"namespace": namespace})]

    # -- reading entries

    def links(self, namespace: str, session: str, first: int, last: int | None = None) -> list[tuple[Any, Any]]:
        """(id, parent) of a session's own entries from `first` to `last`, ascending, without their bodies."""
        chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
        return [(row[0], row[1]) for row in self.read(statements.LINKS, chosen)]

    def heads(self, namespace: str, session: str, first: int, last: int | None = None) -> list[EntryRow]:
        """A session's own entries from `first` to `last`, ascending, with empty bodies."""
        chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
        return [EntryRow._make(row) for row in self.read(statements.HEADS, chosen)]

    def rows(self, namespace: str, session: str, first: int, last: int | None = None) -> Iterator[EntryRow]:
        """A session's own entries from `first` to `last`, ascending, read a batch at a time."""
        chosen = {"namespace": namespace, "session": session, "first": first, "last": _end(last)}
        while True:
            batch = self.read(statements.ROWS, chosen)
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
            found.update((row[0], row[1]) for row in self.read(statements.HELD, chosen))
        return found

    # -- writing

    def claim(self, namespace: str, session: str, owner: str) -> SessionRow:
        """Takes the session's write lease for `owner` and returns the session as it is then.

        Raises `SessionBusy` while another owner holds it: until its time is over, or at once when
        it is known to have ended.
        """

        def work(again: bool) -> SessionRow:
            with self.writing() as db:
                row = self._row(db, namespace, session)
                if row is None:
                    raise UnknownName(f"session {session} is no longer in {self.where}")
                now = time.time()
                held = row.lease_owner not in ("", owner) and row.lease_expires > now
                if held and not lease.gone(row.lease_owner):
                    raise SessionBusy(session, row.lease_owner, row.lease_expires - now)
                mine = {"of_namespace": namespace, "of_session": session, "owner": owner}
                db.execute(statements.TAKE, {**mine, "expires": now + lease.LEASE_SECONDS})
                return row

        return self.patiently(work)

    def release(self, namespace: str, session: str, owner: str) -> None:
        """Gives the lease back if `owner` still has it."""
        mine = {"of_namespace": namespace, "of_session": session, "owner": owner}

        def work(again: bool) -> None:
            with self.writing() as db:
                db.execute(statements.RELEASE, mine)

        self.patiently(work)

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

        def work(again: bool) -> None:
            with self.writing() as db:
                if _ADVANCE.run(db, values).rowcount != 1:
                    if again and self._has(db, namespace, session, rows):
                        return
                    raise _lost(session)
                try:
                    _ADD.add(db, records)
                except IntegrityError as error:
                    raise Repeated(f"{self.where}: {error.orig}; nothing was written") from error

        self.patiently(work)

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

        def work(again: bool) -> None:
            with self.writing() as db:
                if db.execute(statements.MOVE, values).rowcount != 1:
                    raise _lost(session)

        self.patiently(work)

    # -- transactions

    def patiently(self, work: Work[T]) -> T:
        """See `Database.patiently`."""
        return self.database.patiently(work)

    def read(self, statement: Executable, values: Mapping[str, Any]) -> list[Any]:
        """See `Database.read`."""
        return self.database.read(statement, values)

    def exclusive(self, namespace: str) -> AbstractContextManager[None]:
        """See `Database.exclusive`."""
        return self.database.exclusive(namespace)

    def reading(self) -> AbstractContextManager[Connection]:
        """See `Database.reading`."""
        return self.database.reading()

    def writing(self, namespace: str = "") -> AbstractContextManager[Connection]:
        """See `Database.writing`."""
        return self.database.writing(namespace)

    # -- inside

    def _row(self, db: Connection, namespace: str, session: str) -> SessionRow | None:
        """The session, which nobody else changes until this transaction has ended."""
        found = db.execute(statements.SESSION_ALONE, {"namespace": namespace, "id": session}).first()
        return None if found is None else _row(found)

    def _has(self, db: Connection, namespace: str, session: str, rows: Sequence[EntryRow]) -> bool:
        """Whether exactly these entries are there: ours, by a commit of whose success we had not heard."""
        chosen = {"namespace": namespace, "session": session, "first": rows[0].id, "last": rows[-1].id}
        return [EntryRow._make(row) for row in db.execute(statements.ALL_ROWS, chosen)] == list(rows)


def _lost(session: str) -> LeaseLost:
    return LeaseLost(f"another writer has taken session {session}; open it again to continue")


def _end(last: int | None) -> int:
    return 2**63 - 1 if last is None else last


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
