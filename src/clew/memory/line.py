"""All that is known of one record: its versions and tombstones in one line of time.

At a time `t` the record is the last version of those that began by then and were known by then; if that is a
tombstone, there is none. So a version that is told late takes its place in the past, and cannot bring back what was
closed after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from clew.memory.changes import Change, Closed, Opened, Purged
from clew.memory.records import MemoryRecord, Source, identity
from clew.memory.validity import Interval, closed

Version = Opened | Closed


class Dated(Struct, frozen=True, gc=False):
    """A version or tombstone of a record, with when it begins to hold and when it became known."""

    start: float
    known: float
    uid: str
    body: Version

    @property
    def interval(self) -> Interval:
        """What the version itself says about when it holds."""
        return Interval(self.start, self.body.record.valid_to if isinstance(self.body, Opened) else None)


class Line(Struct, gc=False):
    """All that is known of one record, over time. Tuples, so that the collector need not watch a hundred thousand."""

    versions: tuple[Dated, ...] = ()
    cited: tuple[tuple[float, tuple[Source, ...]], ...] = ()
    used: tuple[float, ...] = ()
    pinned: tuple[tuple[float, bool], ...] = ()
    forgotten: float = inf

    def add(self, version: Dated) -> None:
        """Puts a version in its place."""
        self.versions = (*self.versions, version)
        if len(self.versions) > 1 and _place(version) < _place(self.versions[-2]):
            self.versions = tuple(sorted(self.versions, key=_place))
        if isinstance(version.body, Closed) and version.body.final:
            self.forgotten = min(self.forgotten, version.known)

    def record(self, at: float) -> MemoryRecord | None:
        """The record as it held at a time, by what was known then."""
        known = self._known(at)
        place = _shown(known, at)
        return None if place is None else self._told(known, place, at)

    def shown(self, at: float) -> str | None:
        """Which version that is, by the change that opened it."""
        known = self._known(at)
        place = _shown(known, at)
        return None if place is None else known[place].uid

    def _known(self, at: float) -> Sequence[Dated]:
        return () if self.forgotten <= at else [v for v in self.versions if v.known <= at]

    def history(self) -> Iterator[MemoryRecord | Closed]:
        """Every version, each with its end, and the tombstones between them; in the order of time."""
        for place, version in enumerate(self.versions):
            if not isinstance(version.body, Opened):
                yield version.body
            elif _runs_on(self.versions, place) == place:
                yield self._told(self.versions, place, inf)

    def version(self, place: int, created: float) -> MemoryRecord:
        """A version as it is told by all that is known; `created` is `first`."""
        return self._told(self.versions, place, inf, created)

    @property
    def changed(self) -> float:
        """The time of the last change."""
        known = (v.known for v in self.versions)
        cited, pinned = (at for at, _ in self.cited), (at for at, _ in self.pinned)
        return max(*known, *cited, *pinned, *self.used[-1:], 0.0, 0.0)

    def newest(self) -> MemoryRecord:
        """The version opened last, whether or not it holds now."""
        opened = [(v.known, v.uid, i) for i, v in enumerate(self.versions) if isinstance(v.body, Opened)]
        return self._told(self.versions, max(opened)[2], inf)

    @property
    def told(self) -> bool:
        """Whether there is a version of the record; a tombstone may come before any."""
        return any(isinstance(v.body, Opened) for v in self.versions)

    @property
    def first(self) -> tuple[float, str]:
        """When the record came to be known, and by which change."""
        return min((v.known, v.uid) for v in self.versions if isinstance(v.body, Opened))

    def sources(self) -> set[Source]:
        """All that ever said it."""
        opened = (v.body.record.sources for v in self.versions if isinstance(v.body, Opened))
        return {source for some in (*opened, *(sources for _, sources in self.cited)) for source in some}

    def _told(self, known: Sequence[Dated], place: int, at: float, created: float | None = None) -> MemoryRecord:
        version = known[place]
        assert isinstance(version.body, Opened)
        record = version.body.record
        first = _goes_back(known, place)
        interval = Interval(known[first].start, version.interval.end)
        for i in range(place + 1, len(known)):
            later = known[i]
            if interval.end is not None and interval.end <= later.start > version.start:
                break  # it has ended before this one, and before all that follow
            interval = closed(interval, later.interval)
            if later.start == version.start:  # said again for the same time: this one never held
                interval = Interval(interval.start, interval.start)
        if created is None:
            created = min(v.known for v in known if isinstance(v.body, Opened))
        earlier = [s for v in known[first:place] if isinstance(v.body, Opened) for s in v.body.record.sources]
        later_told = [s for when, sources in self.cited if when <= at for s in sources]
        return replace(
            record,
            valid_from=interval.start,
            valid_to=interval.end,
            created=created,
            sources=tuple(dict.fromkeys([*earlier, *record.sources, *later_told])),
            uses=sum(when <= at for when in self.used),
            pinned=next((p for when, p in reversed(self.pinned) if when <= at), record.pinned),
        )


def opening(change: Change) -> MemoryRecord:
    """The record as it was told by the change that opened a version of it."""
    assert isinstance(change.body, Opened)
    record = change.body.record
    return replace(record, valid_from=change.at if record.valid_from is None else record.valid_from, created=change.at)


def purging(id: str, line: Line) -> Purged:
    """What purges a record: for good if it has no `key`; under a key something new may be told later."""
    versions = tuple(v.uid for v in line.versions if isinstance(v.body, Opened))
    return Purged(id, not line.newest().key, versions)


def _place(version: Dated) -> tuple[float, float, str]:
    return version.start, version.known, version.uid


def _shown(known: Sequence[Dated], at: float) -> int | None:
    """The version that holds at a time: the last that has begun, if it is no tombstone and has not ended."""
    place = max((i for i, v in enumerate(known) if v.start <= at), default=-1)
    holds = place >= 0 and isinstance(known[place].body, Opened) and known[place].interval.holds(at)
    return place if holds else None


def _goes_back(known: Sequence[Dated], place: int) -> int:
    """Where the run of versions begins that say the same as this one without a break."""
    while place and _same(known[place - 1], known[place]):
        place -= 1
    return place


def _runs_on(known: Sequence[Dated], place: int) -> int:
    """Where the run ends."""
    while place + 1 < len(known) and _same(known[place], known[place + 1]):
        place += 1
    return place


def _same(old: Dated, new: Dated) -> bool:
    if not isinstance(old.body, Opened) or not isinstance(new.body, Opened):
        return False
    return (old.interval.end or inf) >= new.start and identity(old.body.record) == identity(new.body.record)
