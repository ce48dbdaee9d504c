"""A log of records in the tables of a database. What is asked is looked up there; nothing is read beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from clew.memory.changes import Change, Opened, Purged, Tried, change, from_row, order
from clew.memory.draft import Draft
from clew.memory.known import Clock, Decide, Known, Told
from clew.memory.line import Line, opening, purging
from clew.memory.part import Part
from clew.memory.records import MemoryRecord, Source
from clew.storage.changes import Changes
from clew.storage.erasing import erasing
from clew.storage.rows import ChangeRow, FoundRow
from clew.storage.store import Store
from clew.storage.versions import Versions

T = TypeVar("T")

LINES = 500
"""Records whose changes are read together."""


class Stored:
    """The records of a namespace in a store: a `Ledger`, and the `Known` of it."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._changes = Changes(store, namespace)
        self._versions = Versions(store, namespace)

    def known(self) -> Known:
        return self

    def newest(self) -> float:
        return self._reading(lambda part: self._changes.head(part.db).at)

    def changes(self, after: int = 0) -> Iterator[Change]:
        return (from_row(row) for batch in self._changes.batches(after) for row in batch)

    # -- writing

    def commit(
        self, decide: Decide, clock: Clock, about: Sequence[MemoryRecord] = (), keys: Sequence[str] = ()
    ) -> list[Change]:
        def make(draft: Draft) -> None:
            draft.expect(about, keys)
            for one in decide(draft, lambda: max(clock(), math.nextafter(draft.newest, math.inf))):
                draft.take(one)

        return self._write(make)

    def merge(self, changes: Iterable[Change]) -> int:
        wanted = {one.uid: one for one in sorted(changes, key=order)}
        purged = any(isinstance(one.body, Purged) for one in wanted.values())
        with erasing(self._store) if purged else nullcontext():
            return len(self._write(lambda draft: draft.merge(list(draft.missing(wanted).values()))))

    def purge(self, id: str, clock: Clock) -> bool:
        def decide(known: Known, now: Clock) -> Iterator[Change]:
            line = known.line(id)
            if line is not None and line.told:
                yield change(now(), purging(id, line))

        with erasing(self._store):
            return bool(self.commit(decide, clock))

    def _write(self, make: Callable[[Draft], None]) -> list[Change]:
        """What a draft comes to, written in one transaction."""
        made: list[Change] = []

        def work(again: bool) -> list[Change]:
            nonlocal made
            with self._store.writing(self._changes.namespace) as db:
                if again and self._changes.here(db, [one.uid for one in made[:1]]):
                    return made  # it had been written when the connection was lost
                draft = Draft(self._changes, self._versions, self, db)
                make(draft)
                draft.flush()
                made = draft.made
                return made

        return self._store.patiently(work)

    # -- what is known

    def knows(self, id: str) -> bool:
        return self._of([id], lambda part: part.state.knows(id))

    def keyed(self, key: str) -> Change | None:
        def look(part: Part) -> Change | None:
            part.keys([key])
            return part.state.keyed(key)

        return self._reading(look)

    def line(self, id: str) -> Line | None:
        return self._of([id], lambda part: part.state.line(id))

    def of_kind(self, kind: str) -> Iterator[Line]:
        ids = self._versions.ids(kind)
        for start in range(0, len(ids), LINES):
            some = ids[start : start + LINES]
            lines = self._of(some, lambda part: part.state.lines)
            yield from (lines[id] for id in some if id in lines)

    def record(self, id: str, at: float) -> MemoryRecord | None:
        found = self._versions.record(id, at)
        return None if found is None else self._told([found], at)[0]

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        return iter(self._told(self._versions.records(at, kinds), at))

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        for found in self._versions.latest(kind, at):
            yield from self._told(found, at)

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        return self._about(record, lambda part: part.state.same(record, at))

    def closed_since(self, record: MemoryRecord) -> bool:
        return self._about(record, lambda part: part.state.closed_since(record))

    def has(self, record: MemoryRecord) -> bool:
        return self._of([record.id], lambda part: part.state.has(record))

    def mark(self, name: str) -> float:
        return self._versions.mark(name)

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        return self._of([id], lambda part: part.state.tried(task, id))

    def trials(self, task: str) -> Mapping[str, Sequence[Tried]]:
        def look(part: Part) -> Mapping[str, Sequence[Tried]]:
            part.topics([task])
            return part.state.trials(task)

        return self._reading(look)

    def _told(self, found: Sequence[FoundRow], at: float) -> list[MemoryRecord]:
        """The records as they were told at a time. Where later changes have come to a record, from all of these."""
        ids = [one.version.record for one in found if one.version.changed > at]
        past = self._past(ids, at) if ids else {}
        return [past.get(one.version.record) or _record(one) for one in found]

    def _past(self, ids: Sequence[str], at: float) -> dict[str, MemoryRecord]:
        records: dict[str, MemoryRecord] = {}
        for start in range(0, len(ids), LINES):
            some = ids[start : start + LINES]
            lines = self._of(some, lambda part: part.state.lines)
            records.update((id, told) for id in some if (told := lines[id].record(at)) is not None)
        return records

    def _of(self, ids: Sequence[str], look: Callable[[Part], T]) -> T:
        def read(part: Part) -> T:
            part.load(ids)
            return look(part)

        return self._reading(read)

    def _about(self, record: MemoryRecord, look: Callable[[Part], T]) -> T:
        def read(part: Part) -> T:
            part.saying(record)
            return look(part)

        return self._reading(read)

    def _reading(self, look: Callable[[Part], T]) -> T:
        def work(again: bool) -> T:
            with self._store.reading() as db:
                return look(Part(self._changes, db))

        return self._store.patiently(work)

    # -- as an index sees it

    def told(self, after: int) -> Iterator[Told]:
        for batch in self._changes.batches(after, ("opened", "purged")):
            for row in batch:
                one = from_row(row)
                if isinstance(one.body, Opened):
                    yield Told(row.position, one.uid, opening(one))
                elif isinstance(one.body, Purged):
                    yield from (Told(row.position, uid, None) for uid in one.body.versions)

    def mark_of(self, position: int) -> str:
        return self._changes.uid(position)

    def held(self, uids: Collection[str], at: float) -> dict[str, MemoryRecord]:
        found = self._versions.held(list(dict.fromkeys(uids)), at)
        records = {one.uid: record for one, record in zip(found, self._told(found, at), strict=True)}
        return {uid: records[uid] for uid in uids if uid in records}

    def around(self, uids: Collection[str], distance: int) -> dict[str, list[tuple[str, int]]]:
        sides: dict[tuple[str, bool], list[tuple[int, str]]] = {}
        for uid, position, beside, other in self._versions.around(list(dict.fromkeys(uids)), distance):
            sides.setdefault((uid, beside > position), []).append((beside, other))
        found = {}
        for uid in uids:
            before = sorted(sides.get((uid, False), ()))
            after = sorted(sides.get((uid, True), ()))
            near = [(other, n - len(before)) for n, (_, other) in enumerate(before)]
            if near or after:
                found[uid] = [*near, *((other, n) for n, (_, other) in enumerate(after, 1))]
        return found


_SOURCES = msgspec.json.Decoder(tuple[Source, ...])


def _record(found: FoundRow) -> MemoryRecord:
    """The record of a version as it is told by all that is known."""
    row = found.version
    body = from_row(ChangeRow(row.position, found.uid, row.created, "", "", "", "", found.body)).body
    assert isinstance(body, Opened)
    return replace(
        body.record,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        created=row.created,
        sources=body.record.sources if row.sources is None else _SOURCES.decode(row.sources),
        uses=row.uses,
        pinned=bool(row.pinned),
    )
