"""What is being written: changes that are decided on one after the other, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from sqlalchemy import Connection

from clew.memory.changes import (
    Change,
    Marked,
    Opened,
    Tried,
    Used,
    concerns,
    from_row,
    kept,
    order,
    purges_of,
    to_row,
)
from clew.memory.known import Known
from clew.memory.line import Line
from clew.memory.part import Part
from clew.memory.records import MemoryRecord, identity
from clew.memory.segments import segments
from clew.storage.changes import Changes
from clew.storage.rows import ChangeRow, VersionRow
from clew.storage.versions import Versions


class Draft:
    """What is known inside a transaction, with what has been decided on in it: a `Known`.

    Records are read when they are asked about. What lists records is answered by `tables`, once what was decided on
    stands there.
    """

    def __init__(self, changes: Changes, versions: Versions, tables: Known, db: Connection) -> None:
        self.made: list[Change] = []
        self._changes = changes
        self._versions = versions
        self._tables = tables
        self._db = db
        self._part = Part(changes, db)
        self._head = changes.head(db)
        self._at = self._head.at
        self._written = 0
        self._used: dict[str, list[Change]] = {}
        self._rivals: set[str] = set()

    @property
    def newest(self) -> float:
        """The time of the newest change."""
        return self._at

    def expect(self, records: Sequence[MemoryRecord], keys: Sequence[str]) -> None:
        """Reads together what will be asked about these."""
        self._part.keys(key for key in keys if key)
        self._part.topics([identity(record) for record in records])
        self._load(*(record.id for record in records))

    def take(self, change: Change) -> None:
        """Decides on a change, which is newer than all before."""
        self.made.append(change)
        self._at = max(self._at, change.at)
        id = concerns(change.body)
        if isinstance(change.body, Used) and not change.key and id not in self._part.changes:
            self._used.setdefault(id, []).append(change)  # it can be counted without the rest of the record
            return
        if change.key:
            self._part.keys([change.key])
        if id:
            self._load(id)
        self._part.state.apply(change)

    def missing(self, changes: Mapping[str, Change]) -> dict[str, Change]:
        """Those of these changes, by uid, that are not here."""
        here = set(self._changes.here(self._db, list(changes))) if self._head.position else ()
        return {uid: one for uid, one in changes.items() if uid not in here}

    def merge(self, changes: Sequence[Change]) -> None:
        """Decides on changes made elsewhere, none of which is here: they may be older than others."""
        ids, keys = {concerns(one.body) for one in changes}, {one.key for one in changes if one.key}
        rivals = self._changes.of_keys(self._db, list(keys)) if self._head.position else []
        part = self._part = Part(self._changes, self._db)
        if self._head.position:
            self._rivals = {row.record for row in rivals} - ids - {""}
            part.load([*(ids - {""}), *self._rivals])
        known = {one.uid: one for some in part.changes.values() for _, one in some}
        first = [*map(from_row, rivals), *part.state.keys.values(), *(one for one in changes if one.key)]
        part.state = fresh = type(part.state)()
        fresh.keys.update({one.key: one for one in sorted(first, key=order, reverse=True)})
        part.changes.update({id: part.changes.get(id, []) for id in ids})
        for one in sorted([*known.values(), *changes], key=order):
            fresh.apply(one)
        self.made.extend(changes)

    def flush(self) -> None:
        """Writes what has been decided on, and what it comes to."""
        new = self.made[self._written :]
        if not new:
            return
        self._written = len(self.made)
        touched = {id for one in new if (id := concerns(one.body)) and id in self._part.changes} | self._rivals
        held = {id for id in touched if self._part.changes[id]}
        purges = purges_of([*new, *(one for id in touched for _, one in self._part.changes[id])])
        rows: list[ChangeRow] = []
        for one in new:
            row = to_row(kept(one, purges) if purges else one)._replace(position=self._head.position + len(rows) + 1)
            rows.append(row)
            if row.record in touched:
                self._part.changes[row.record].append((row.position, one))
        self._head = self._changes.add(self._db, self._head, rows)
        self._erase(purges)
        self._project(touched, held)
        for id, used in self._used.items():
            self._versions.use(self._db, id, len(used), used[-1].at)
            for one in used if id in self._part.changes else ():
                self._part.state.apply(one)
        self._used.clear()
        marks = [one.body for one in new if isinstance(one.body, Marked)]
        for mark in marks:
            self._versions.move(self._db, mark.name, mark.after)

    def _project(self, touched: set[str], held: set[str]) -> None:
        rows: list[VersionRow] = []
        for id in touched:
            line = self._part.state.line(id)
            if line is not None and line.told:
                places = {one.uid: position for position, one in self._part.changes[id]}
                rows += version_rows(line, places)
        self._versions.write(self._db, list(held), rows)

    def _erase(self, purges: Mapping[str, Sequence[Change]]) -> None:
        for id in purges:
            placed = [(position, one, kept(one, purges)) for position, one in self._part.changes[id]]
            less = [to_row(new)._replace(position=place) for place, old, new in placed if new is not old]
            self._changes.replace(self._db, less)
            self._part.changes[id] = [(place, new) for place, _, new in placed]

    def _load(self, *ids: str) -> None:
        self._part.load(ids)
        for id in ids:
            for one in self._used.pop(id, ()):
                self._part.state.apply(one)

    # -- what is known

    def knows(self, id: str) -> bool:
        self._load(id)
        return self._part.state.knows(id)

    def keyed(self, key: str) -> Change | None:
        self._part.keys([key])
        return self._part.state.keyed(key)

    def line(self, id: str) -> Line | None:
        self._load(id)
        return self._part.state.line(id)

    def record(self, id: str, at: float) -> MemoryRecord | None:
        self._load(id)
        return self._part.state.record(id, at)

    def has(self, record: MemoryRecord) -> bool:
        self._load(record.id)
        return self._part.state.has(record)

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        self._part.saying(record)
        return self._part.state.same(record, at)

    def closed_since(self, record: MemoryRecord) -> bool:
        self._part.saying(record)
        return self._part.state.closed_since(record)

    def of_kind(self, kind: str) -> Iterator[Line]:
        return self._all().of_kind(kind)

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        return self._all().records(at, *kinds)

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        return self._all().latest(kind, at)

    def mark(self, name: str) -> float:
        return self._all().mark(name)

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        return self._all().tried(task, id)

    def trials(self, task: str) -> Mapping[str, Sequence[Tried]]:
        return self._all().trials(task)

    def _all(self) -> Known:
        self.flush()
        return self._tables


def version_rows(line: Line, places: Mapping[str, int]) -> Iterator[VersionRow]:
    """What the table of versions has of a line, the changes of which stand at these positions."""
    (created, born), changed = line.first, line.changed
    opened = {v.uid: v for v in line.versions if isinstance(v.body, Opened)}
    for segment in segments(line):
        version = opened[segment.uid]
        assert isinstance(version.body, Opened)
        record, told = version.body.record, segment.record
        yield VersionRow(
            record=record.id,
            position=places[segment.uid],
            kind=record.kind,
            session=record.session,
            created=created,
            born=born,
            since=segment.since,
            until=segment.until,
            changed=min(changed, segment.until),
            valid_from=version.start if told is None else told.valid_from or 0.0,
            valid_to=None if told is None else told.valid_to,
            uses=0 if told is None else told.uses,
            pinned=record.pinned if told is None else told.pinned,
            sources=None if told is None or told.sources == record.sources else msgspec.json.encode(told.sources),
        )
