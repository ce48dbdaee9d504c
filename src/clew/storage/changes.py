"""The log of a memory in the store: changes, each appended once and never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, text, update

from clew.storage.prepared import Prepared
from clew.storage.rows import ChangeRow
from clew.storage.schema import changes, heads
from clew.storage.statements import raw
from clew.storage.store import Store

READ = 5_000
"""Changes fetched at a time: a few hundred bytes each, and most often all of them are wanted."""

_MINE = changes.c.namespace == bindparam("of")
_COLUMNS = [raw(changes.c[name]) for name in ChangeRow._fields]
_SOME: BindParameter[str] = bindparam("some", expanding=True)
_FOLLOWING = (
    select(*_COLUMNS).where(_MINE, changes.c.position > bindparam("after")).order_by(changes.c.position).limit(READ)
)
_AFTER = Prepared(_FOLLOWING)
_AFTER_OF_KINDS = Prepared(_FOLLOWING.where(changes.c.kind.in_(bindparam("kinds", expanding=True))))
# SQLite takes the index of what a list is ordered by; otherwise it may read all that is in the namespace.
_HERE = Prepared(select(changes.c.uid).where(_MINE, changes.c.uid.in_(_SOME)).order_by(changes.c.uid))
_UID = Prepared(select(changes.c.uid).where(_MINE, changes.c.position == bindparam("place")))
_ABOUT = Prepared(
    select(changes.c.record)
    .where(_MINE, changes.c.topic.in_(_SOME), changes.c.topic != text("''"))
    .order_by(changes.c.topic)
)
_OF_RECORDS = Prepared(
    select(*_COLUMNS).where(_MINE, changes.c.record.in_(_SOME)).order_by(changes.c.record, changes.c.position)
)
_OF_KEYS = Prepared(
    select(*_COLUMNS).where(_MINE, changes.c.key.in_(_SOME), changes.c.key != text("''")).order_by(changes.c.key)
)
_ADD = Prepared(insert(changes))
_REPLACE = Prepared(
    update(changes)
    .where(_MINE, changes.c.position == bindparam("place"))
    .values(kind=bindparam("new_kind"), topic=bindparam("new_topic"), body=bindparam("new_body"))
)
_HEAD = Prepared(select(heads.c.position, heads.c.at).where(heads.c.namespace == bindparam("of")))
_MOVE = Prepared(
    update(heads)
    .where(heads.c.namespace == bindparam("of"))
    .values(position=bindparam("new_position"), at=bindparam("new_at"))
)
_BEGIN = Prepared(
    insert(heads).values(namespace=bindparam("of"), position=bindparam("new_position"), at=bindparam("new_at"))
)


class Head(NamedTuple):
    """Where a log stands: its last position, and the time of its newest change."""

    position: int
    at: float


Decide = Callable[[list[ChangeRow]], Sequence[ChangeRow]]
"""Given the changes that others have added, says which to add (their `position` is filled in)."""


class Restarted(Exception):
    """A log has not gone on: what was read of it has expired, or has been replaced from outside. Read it anew."""


class ChangeLog(Protocol):
    """The changes of one namespace, wherever they are kept: in SQL (`Changes`), in Redis, in a file."""

    def after(self, position: int) -> list[ChangeRow]:
        """All changes that arrived after a position, in that order. None is ever added before one that was seen.

        Raises `Restarted` when what was read up to there is no longer what the log holds; `append` does too.
        """

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        """Adds what `decide` says, knowing all that arrived after the position: all or nothing, durable when this
        returns. A change that is here already (by its uid) is not added again. Gives what was added.

        When the log has to try again, `decide` is called again, with all that arrived after the position by then.
        """

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        """Puts these in the place of the changes at their positions: only for what has to be erased.

        Raises `Restarted` when the log is no longer the one that was read.
        """


class Changes:
    """The changes of one namespace in the store. All processes that have it open may append.

    What the changes come to is kept in the store as well, by `clew.memory.stored`: who appends here has to see to it.
    """

    def __init__(self, store: Store, namespace: str) -> None:
        self.store = store
        self.namespace = namespace
        self._mine = {"of": namespace}

    def after(self, position: int) -> list[ChangeRow]:
        return [row for batch in self.batches(position) for row in batch]

    def batches(self, position: int, kinds: Sequence[str] = ()) -> Iterator[list[ChangeRow]]:
        """The same, read some at a time; of some kinds, or all."""
        statement, chosen = (_AFTER_OF_KINDS, {"kinds": kinds}) if kinds else (_AFTER, {})
        while True:
            found = statement.read(self.store, {**self._mine, "after": position, **chosen})
            yield [ChangeRow._make(row) for row in found]
            if len(found) < READ:
                return
            position = found[-1][0]

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        rows: list[ChangeRow] = []

        def work(again: bool) -> list[ChangeRow]:
            nonlocal rows
            with self.store.writing(self.namespace) as db:
                if again and self.here(db, [row.uid for row in rows[:1]]):
                    return rows  # it had been written when the connection was lost
                head = self.head(db)
                wanted = {row.uid: row for row in decide(self.after(after))}
                for uid in self.here(db, list(wanted)):
                    del wanted[uid]
                rows = [row._replace(position=head.position + n) for n, row in enumerate(wanted.values(), 1)]
                self.add(db, head, rows)
            return rows

        return self.store.patiently(work)

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        def work(again: bool) -> None:
            with self.store.writing(self.namespace) as db:
                self.replace(db, rows)

        self.store.patiently(work)

    def uid(self, position: int) -> str:
        """What stands at a position; "" for nothing."""
        found = _UID.read(self.store, {**self._mine, "place": position})
        return found[0][0] if found else ""

    # -- inside a transaction

    def head(self, db: Connection) -> Head:
        """Where the log stands."""
        found = _HEAD.run(db, self._mine).first()
        return Head(0, 0.0) if found is None else Head._make(found)

    def here(self, db: Connection, uids: Sequence[str]) -> list[str]:
        """Which of these changes are here already."""
        return [row[0] for row in _HERE.each(db, self._mine, uids)]

    def of_records(self, db: Connection, ids: Sequence[str]) -> list[ChangeRow]:
        """All changes of these records."""
        return [ChangeRow._make(row) for row in _OF_RECORDS.each(db, self._mine, ids)]

    def of_keys(self, db: Connection, keys: Sequence[str]) -> list[ChangeRow]:
        """All changes that were asked for under these keys."""
        return [ChangeRow._make(row) for row in _OF_KEYS.each(db, self._mine, keys)]

    def about(self, db: Connection, topics: Sequence[str]) -> list[str]:
        """The records with a change that has one of these topics; some more than once."""
        return [row[0] for row in _ABOUT.each(db, self._mine, topics)]

    def add(self, db: Connection, head: Head, rows: Sequence[ChangeRow]) -> Head:
        """Adds changes that follow the head, by their positions; where the log stands then."""
        if not rows:
            return head
        _ADD.add(db, [(self.namespace, *row) for row in rows])
        new = Head(rows[-1].position, max(head.at, *(row.at for row in rows)))
        moved = {**self._mine, "new_position": new.position, "new_at": new.at}
        if _MOVE.run(db, moved).rowcount == 0:
            _BEGIN.run(db, moved)
        return new

    def replace(self, db: Connection, rows: Sequence[ChangeRow]) -> None:
        """Puts these in the place of the changes at their positions."""
        for row in rows:
            new = {"new_kind": row.kind, "new_topic": row.topic, "new_body": row.body}
            _REPLACE.run(db, {**self._mine, "place": row.position, **new})
