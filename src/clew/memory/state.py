"""What the changes of a memory come to. A pure function of the set of changes: their order of arrival is nothing.

All versions of a record, and its tombstones, stand in one line of time. At a time `t` the record is the last of
those that began by then and were known by then; if that is a tombstone, there is none. So a version that is told
late takes its place in the past, and cannot bring back what was closed after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from clew.memory.changes import Change, Cited, Closed, Marked, Opened, Pinned, Tried, Used
from clew.memory.records import MemoryRecord, Source, digest, folded
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
        self.versions = tuple(sorted((*self.versions, version), key=lambda v: (v.start, v.known, v.uid)))
        if isinstance(version.body, Closed) and version.body.final:
            self.forgotten = min(self.forgotten, version.known)

    def record(self, at: float) -> MemoryRecord | None:
        """The record as it held at a time, by what was known then."""
        if self.forgotten <= at:
            return None
        known = tuple(v for v in self.versions if v.known <= at)
        place = max((i for i, v in enumerate(known) if v.start <= at), default=-1)
        if place < 0 or not isinstance(known[place].body, Opened) or not known[place].interval.holds(at):
            return None
        return self._told(known, place, at)

    def history(self) -> Iterator[MemoryRecord | Closed]:
        """Every version, each with its end, and the tombstones between them; in the order of time."""
        for place, version in enumerate(self.versions):
            if not isinstance(version.body, Opened):
                yield version.body
            elif _runs_on(self.versions, place) == place:
                yield self._told(self.versions, place, inf)

    def newest(self) -> MemoryRecord:
        """The version opened last, whether or not it holds now."""
        opened = [(v.known, v.uid, i) for i, v in enumerate(self.versions) if isinstance(v.body, Opened)]
        return self._told(self.versions, max(opened)[2], inf)

    def _told(self, known: Sequence[Dated], place: int, at: float) -> MemoryRecord:
        version = known[place]
        assert isinstance(version.body, Opened)
        record = version.body.record
        first = _goes_back(known, place)
        interval = Interval(known[first].start, version.interval.end)
        for later in known[place + 1 :]:
            interval = closed(interval, later.interval)
            if later.start == version.start:  # said again for the same time: this one never held
                interval = Interval(interval.start, interval.start)
        earlier = [s for v in known[first:place] if isinstance(v.body, Opened) for s in v.body.record.sources]
        later_told = [s for when, sources in self.cited if when <= at for s in sources]
        return replace(
            record,
            valid_from=interval.start,
            valid_to=interval.end,
            created=min(v.known for v in known if isinstance(v.body, Opened)),
            sources=tuple(dict.fromkeys([*earlier, *record.sources, *later_told])),
            uses=sum(when <= at for when in self.used),
            pinned=next((p for when, p in reversed(self.pinned) if when <= at), record.pinned),
        )


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


class State:
    """The records of a memory. `apply` takes changes in the order of `at` (then `uid`)."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.lines: dict[str, Line] = {}
        self.kinds: dict[str, dict[str, None]] = {}
        self._said: dict[str, dict[str, None]] = {}
        self._unread: list[MemoryRecord] = []
        self.keys: dict[str, Change] = {}
        self.marks: dict[str, float] = {}
        self.tried: dict[tuple[str, str], list[Tried]] = {}
        self.newest = (0.0, "")
        for one in sorted(changes, key=order):
            self.apply(one)

    def apply(self, change: Change) -> None:
        """Takes in a change that is newer than all before."""
        self.newest = order(change)
        if change.key and change.key in self.keys:
            return  # asked for twice in different places: the first one counts
        if change.key:
            self.keys[change.key] = change
        match change.body:
            case Opened(record):
                start = change.at if record.valid_from is None else record.valid_from
                self._line(record.id).add(Dated(start, change.at, change.uid, change.body))
                self.kinds.setdefault(record.kind, {})[record.id] = None
                self._unread.append(record)
            case Closed(id, start):
                self._line(id).add(Dated(start, change.at, change.uid, change.body))
            case Cited(id, sources):
                self._line(id).cited += ((change.at, sources),)
            case Used(ids):
                for id in ids:
                    self._line(id).used += (change.at,)
            case Pinned(id, pinned):
                self._line(id).pinned += ((change.at, pinned),)
            case Marked(name, after):
                self.marks[name] = max(after, self.marks.get(name, 0.0))
            case Tried(id, task):
                self.tried.setdefault((task, id), []).append(change.body)

    def record(self, id: str, at: float) -> MemoryRecord | None:
        """The record with this id as it held at a time."""
        line = self.lines.get(id)
        return line.record(at) if line is not None else None

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        """The records that held at a time, of some kinds or all, in the order in which they came to be known."""
        ids = [id for kind in kinds for id in self.kinds.get(kind, ())] if kinds else list(self.lines)
        return (found for id in ids if (found := self.lines[id].record(at)) is not None)

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        """The records of a kind that held at a time, the one known last first."""
        ids = reversed(self.kinds.get(kind, {}))
        return (found for id in ids if (found := self.lines[id].record(at)) is not None)

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        """A record that says the same at a time."""
        found = (self.record(id, at) for id in self._saying(record))
        return next((r for r in found if r is not None and identity(r) == identity(record)), None)

    def closed_since(self, record: MemoryRecord) -> bool:
        """True when the same was told from the same sources before, and has been closed or deleted since."""
        for id in self._saying(record):
            told = {s for v in self.lines[id].history() if isinstance(v, MemoryRecord) for s in v.sources}
            if record.sources and told.issuperset(record.sources):
                return True
        return False

    def has(self, record: MemoryRecord) -> bool:
        """True when there is a version of this record that says the same from the same time on."""
        line = self.lines.get(record.id)
        return line is not None and any(
            isinstance(v.body, Opened) and v.start == record.valid_from and identity(v.body.record) == identity(record)
            for v in line.versions
        )

    def _saying(self, record: MemoryRecord) -> list[str]:
        """The records that ever said the same. Indexed when first asked, so that reading alone does not pay for it."""
        for one in self._unread:
            self._said.setdefault(identity(one), {})[one.id] = None
        self._unread.clear()
        return list(self._said.get(identity(record), ()))

    def _line(self, id: str) -> Line:
        line = self.lines.get(id)
        if line is None:
            line = self.lines[id] = Line()
        return line


def order(change: Change) -> tuple[float, str]:
    """The order in which changes count."""
    return change.at, change.uid


def identity(record: MemoryRecord) -> str:
    """What two records that say the same have in common."""
    return digest("\0".join((record.kind, record.key, record.speaker, folded(record.value or record.text))))
