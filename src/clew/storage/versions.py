"""What the changes of records come to, as a table that can be asked: see `clew.storage.schema.versions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import inf
from typing import Any

from sqlalchemy import BindParameter, Connection, and_, bindparam, delete, insert, select, text, union_all, update

from clew.storage.prepared import Prepared
from clew.storage.rows import FoundRow, VersionRow
from clew.storage.schema import changes, marks, versions
from clew.storage.statements import BATCH, raw
from clew.storage.store import Store

PAGE = 50
"""Versions read at first, when only as many are wanted as will be taken; each page is four times as long."""

MOST = 5_000
"""Versions read at a time."""

_MINE = versions.c.namespace == bindparam("of")
_SOME: BindParameter[str] = bindparam("some", expanding=True)
_COLUMNS = [raw(versions.c[name]) for name in VersionRow._fields]
_OPENING = and_(changes.c.namespace == versions.c.namespace, changes.c.position == versions.c.position)
_FOUND = select(*_COLUMNS, raw(changes.c.uid), raw(changes.c.body)).join_from(versions, changes, _OPENING).where(_MINE)
_HOLDS = and_(versions.c.since <= bindparam("at"), versions.c.until > bindparam("at"))
_RECORD = Prepared(_FOUND.where(versions.c.record == bindparam("id"), _HOLDS))
_ORDER = (versions.c.created, versions.c.born)
_SHOWN = _FOUND.where(_HOLDS).order_by(*_ORDER)
_RECORDS = Prepared(_SHOWN)
_RECORDS_OF = Prepared(_SHOWN.where(versions.c.kind.in_(bindparam("kinds", expanding=True))))
_BEFORE = and_(
    versions.c.created <= bindparam("created"),
    (versions.c.created < bindparam("created")) | (versions.c.born < bindparam("born")),
)
_LATEST = Prepared(
    _FOUND.where(versions.c.kind == bindparam("kind"), _HOLDS, _BEFORE)
    .order_by(versions.c.created.desc(), versions.c.born.desc())
    .limit(bindparam("most"))
)
_IDS = Prepared(
    select(versions.c.record)
    .where(_MINE, versions.c.kind == bindparam("kind"))
    .group_by(versions.c.record, *_ORDER)
    .order_by(*_ORDER)
)
_PLACE_OF = (raw(changes.c.uid), raw(changes.c.record), raw(changes.c.position))
_OF_UIDS = and_(changes.c.namespace == bindparam("of"), changes.c.uid.in_(_SOME))
# First, and by themselves: beside them a planner would rather begin with all versions there are. In their order SQLite
# takes the index.
_PLACES = Prepared(select(*_PLACE_OF).where(_OF_UIDS).order_by(changes.c.uid))
_TOLD = Prepared(select(*_PLACE_OF, raw(changes.c.body)).where(_OF_UIDS).order_by(changes.c.uid))
_OF_SOME = and_(_MINE, versions.c.record.in_(_SOME))
_HELD = Prepared(select(*_COLUMNS).where(_OF_SOME, _HOLDS))
_MARK = Prepared(select(marks.c.after).where(marks.c.namespace == bindparam("of"), marks.c.name == bindparam("name")))

_OF_RECORDS = Prepared(select(*_COLUMNS).where(_MINE, versions.c.record.in_(_SOME)))
_PLACE = and_(_MINE, versions.c.record == bindparam("of_record"), versions.c.position == bindparam("place"))
_ADD = Prepared(insert(versions))
_NEW: Mapping[str, BindParameter[Any]] = {
    name: bindparam(f"new_{name}") for name in VersionRow._fields if name not in ("record", "position")
}
_CHANGE = Prepared(update(versions).where(_PLACE).values(**_NEW))
_REMOVE = Prepared(delete(versions).where(_PLACE))
_USE = Prepared(
    update(versions)
    .where(_MINE, versions.c.record == bindparam("of_record"), versions.c.until > bindparam("new_changed"))
    .values(uses=versions.c.uses + bindparam("more"), changed=bindparam("new_changed"))
)
_NEW_MARK = Prepared(
    insert(marks).values(namespace=bindparam("of"), name=bindparam("name"), after=bindparam("new_after"))
)
_MOVE_MARK = Prepared(
    update(marks)
    .where(marks.c.namespace == bindparam("of"), marks.c.name == bindparam("of_name"))
    .values(after=bindparam("new_after"))
)


@cache
def _around(distance: int) -> Prepared:
    """Of versions their position, and position and uid of those next to each in its session.

    Each neighbour is a step in the index of the session: it does not matter how long the session is.
    """
    parts = []
    for step in (step for step in range(-distance, distance + 1) if step):
        row, told = versions.alias("row"), changes.alias("told")
        place = (
            select(row.c.position)
            .where(row.c.namespace == versions.c.namespace, row.c.session == versions.c.session)
            .where(row.c.session != text("''"))
            .where(row.c.position > versions.c.position if step > 0 else row.c.position < versions.c.position)
            .order_by(row.c.position if step > 0 else row.c.position.desc())
            .limit(1)
            .offset(abs(step) - 1)
            .correlate(versions)
            .scalar_subquery()
        )
        its_own = and_(told.c.namespace == versions.c.namespace, told.c.position == place)
        parts.append(
            select(versions.c.position, told.c.position, told.c.uid)
            .join_from(versions, told, its_own)
            .where(_OF_SOME, versions.c.session != text("''"))
        )
    return Prepared(union_all(*parts))


class Versions:
    """The versions of the records of one namespace."""

    def __init__(self, store: Store, namespace: str) -> None:
        self.store = store
        self._mine = {"of": namespace}

    # -- reading

    def record(self, id: str, at: float) -> FoundRow | None:
        """The version of a record that is shown at a time."""
        found = _RECORD.read(self.store, {**self._mine, "id": id, "at": at})
        return _found(found[0]) if found else None

    def records(self, at: float, kinds: Sequence[str]) -> list[FoundRow]:
        """The versions that are shown at a time, of some kinds or all; those of records known first come first."""
        statement, chosen = (_RECORDS_OF, {"kinds": kinds}) if kinds else (_RECORDS, {})
        return [_found(row) for row in statement.read(self.store, {**self._mine, "at": at, **chosen})]

    def latest(self, kind: str, at: float) -> Iterator[list[FoundRow]]:
        """The versions of a kind that are shown at a time, those of records known last first; some at a time."""
        chosen = {**self._mine, "kind": kind, "at": at, "created": inf, "born": ""}
        most = PAGE
        while True:
            found = [_found(row) for row in _LATEST.read(self.store, {**chosen, "most": most})]
            yield found
            if len(found) < most:
                return
            chosen.update(created=found[-1].version.created, born=found[-1].version.born)
            most = min(4 * most, MOST)

    def ids(self, kind: str) -> list[str]:
        """The records that have a version of a kind, those known first come first."""
        return [row[0] for row in _IDS.read(self.store, {**self._mine, "kind": kind})]

    def held(self, uids: Sequence[str], at: float) -> list[FoundRow]:
        """Those of these versions that are shown at a time."""
        found: list[FoundRow] = []
        for start in range(0, len(uids), BATCH):  # the bodies at once: a change is a page to read, each time
            told = _TOLD.read(self.store, {**self._mine, "some": uids[start : start + BATCH]})
            opened = {position: (uid, body) for uid, _, position, body in told}
            records = list({record for _, record, _, _ in told})
            shown = _HELD.read(self.store, {**self._mine, "at": at, "some": records}) if told else ()
            found += (FoundRow(VersionRow._make(row), *opened[row[1]]) for row in shown if row[1] in opened)
        return found

    def around(self, uids: Sequence[str], distance: int) -> Iterator[tuple[str, int, int, str]]:
        """Of these versions the uid and the position, with position and uid of those next to it in its session."""
        for start in range(0, len(uids), BATCH):
            rows = _PLACES.read(self.store, {**self._mine, "some": uids[start : start + BATCH]})
            places = {position: uid for uid, _, position in rows}
            records = list({record for _, record, _ in rows})
            near = _around(distance).read(self.store, {**self._mine, "some": records}) if rows else ()
            yield from ((places[one], one, beside, uid) for one, beside, uid in near if one in places)

    def mark(self, name: str) -> float:
        """The mark of a name; 0 when there is none."""
        found = _MARK.read(self.store, {**self._mine, "name": name})
        return found[0][0] if found else 0.0

    # -- inside a transaction

    def write(self, db: Connection, before: Sequence[str], rows: Sequence[VersionRow]) -> None:
        """Makes these the versions of their records, and of the records `before`, which may have had others."""
        held: dict[tuple[str, int], VersionRow] = {}
        for found in _OF_RECORDS.each(db, self._mine, before):
            held[found[0], found[1]] = VersionRow._make(found)
        new = []
        for row in rows:
            old = held.pop((row.record, row.position), None)
            if old is None:
                new.append((self._mine["of"], *row))
            elif old != row:
                values = {f"new_{name}": getattr(row, name) for name in _NEW}
                _CHANGE.run(db, {**self._mine, "of_record": row.record, "place": row.position, **values})
        for record, position in held:
            _REMOVE.run(db, {**self._mine, "of_record": record, "place": position})
        if new:
            _ADD.add(db, new)

    def use(self, db: Connection, record: str, times: int, at: float) -> None:
        """Counts uses of a record, the last at a time."""
        _USE.run(db, {**self._mine, "of_record": record, "more": times, "new_changed": at})

    def move(self, db: Connection, name: str, after: float) -> None:
        """Moves a mark forward; never back."""
        found = _MARK.run(db, {**self._mine, "name": name}).scalar()
        if found is None:
            _NEW_MARK.run(db, {**self._mine, "name": name, "new_after": after})
        elif found < after:
            _MOVE_MARK.run(db, {**self._mine, "of_name": name, "new_after": after})


def _found(row: Sequence[Any]) -> FoundRow:
    *version, uid, body = row
    return FoundRow(VersionRow._make(version), uid, body)
