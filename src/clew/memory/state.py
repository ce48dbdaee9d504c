"""What the changes of a memory come to. A pure function of the set of changes: their order of arrival is nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from clew.memory.changes import (
    Change,
    Cited,
    Closed,
    Erased,
    Marked,
    Opened,
    Pinned,
    Purged,
    Tried,
    Used,
    concerns,
    erased,
    order,
)
from clew.memory.line import Dated, Line
from clew.memory.records import MemoryRecord, Source, identity


class State:
    """The records of a memory. `apply` takes changes in the order of `at` (then `uid`)."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.lines: dict[str, Line] = {}
        self.keys: dict[str, Change] = {}
        self.newest = (0.0, "")
        self._kinds: dict[str, set[str]] = {}
        self._ranks: dict[str, int] = {}
        self._next = count()
        self._said: dict[str, dict[str, None]] = {}
        self._unread: list[tuple[str, MemoryRecord]] = []
        self._left: dict[str, tuple[Source, ...]] = {}
        self._purged: set[str] = set()
        self._marks: dict[str, float] = {}
        self._tried: dict[tuple[str, str], list[Tried]] = {}
        for one in sorted(changes, key=order):
            self.apply(one)

    def apply(self, change: Change) -> None:
        """Takes in a change that is newer than all before of its record and key."""
        self.newest = max(self.newest, order(change))
        if concerns(change.body) in self._purged:
            change = erased(change)
        if change.key and self.keys.setdefault(change.key, change).uid != change.uid:
            return  # asked for twice in different places: the first one counts
        match change.body:
            case Opened(record):
                start = change.at if record.valid_from is None else record.valid_from
                self._line(record.id).add(Dated(start, change.at, change.uid, change.body))
                self._kinds.setdefault(record.kind, set()).add(record.id)
                if record.id not in self._ranks:
                    self._ranks[record.id] = next(self._next)
                self._unread.append((record.id, record))
            case Erased(id, said, sources):
                self._said.setdefault(said, {})[id] = None
                self._left[id] = (*self._left.get(id, ()), *sources)
            case Tried(id, task):
                self._tried.setdefault((task, id), []).append(change.body)
            case Marked(name, after):
                self._marks[name] = max(after, self._marks.get(name, 0.0))
            case Purged(id, final):
                self._purge(id, final)
            case body if body.id not in self._purged:
                self._told(change.at, change.uid, body)

    def _told(self, at: float, uid: str, body: Closed | Cited | Used | Pinned) -> None:
        line = self._line(body.id)
        match body:
            case Closed(_, start):
                line.add(Dated(start, at, uid, body))
            case Cited(_, sources):
                line.cited += ((at, sources),)
            case Used():
                line.used += (at,)
            case Pinned(_, pinned):
                line.pinned += ((at, pinned),)

    def _purge(self, id: str, final: bool) -> None:
        line = self.lines.pop(id, Line())
        self._read()
        self._left[id] = (*self._left.get(id, ()), *line.sources())
        self._ranks.pop(id, None)
        for kind in self._kinds.values():
            kind.discard(id)
        for (_, tried), attempts in self._tried.items():
            if tried == id:
                attempts[:] = [Tried(id, t.task, t.status) for t in attempts]
        self.keys.update((key, erased(one)) for key, one in list(self.keys.items()) if concerns(one.body) == id)
        if final:
            self._purged.add(id)

    # -- what is known

    def knows(self, id: str) -> bool:
        """Whether anything was ever told of a record."""
        return id in self.lines or id in self._left

    def keyed(self, key: str) -> Change | None:
        """The change that was asked for under a key."""
        return self.keys.get(key)

    def line(self, id: str) -> Line | None:
        """All that is known of a record."""
        return self.lines.get(id)

    def of_kind(self, kind: str) -> Iterator[Line]:
        """The lines of the records that are or were of a kind, those known first come first."""
        return (self.lines[id] for id in sorted(self._kinds.get(kind, ()), key=self._ranks.__getitem__))

    def record(self, id: str, at: float) -> MemoryRecord | None:
        """The record with this id as it held at a time."""
        line = self.lines.get(id)
        return line.record(at) if line is not None else None

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        """The records that held at a time, of some kinds or all, in the order in which they came to be known."""
        found = (self.lines[id].record(at) for id in self._ids(kinds))
        return (r for r in found if r is not None and (not kinds or r.kind in kinds))

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        """The records of a kind that held at a time, the one known last first."""
        found = (self.lines[id].record(at) for id in reversed(self._ids([kind])))
        return (r for r in found if r is not None and r.kind == kind)

    def _ids(self, kinds: Sequence[str]) -> Sequence[str]:
        if not kinds:
            return list(self._ranks)
        of_kinds = {id for kind in kinds for id in self._kinds.get(kind, ())}
        return sorted(of_kinds, key=self._ranks.__getitem__)

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        """A record that says the same at a time: of several the one that was known first."""
        found = [r for id in self._saying(record) if (r := self.record(id, at)) is not None]
        same = [r for r in found if identity(r) == identity(record)]
        return min(same, key=lambda r: self.lines[r.id].first, default=None)

    def closed_since(self, record: MemoryRecord) -> bool:
        """True when the same was told from the same sources before, and has been closed or deleted since."""
        for id in self._saying(record) if record.sources else ():
            line = self.lines.get(id, Line())
            if {*line.sources(), *self._left.get(id, ())}.issuperset(record.sources):
                return True
        return False

    def has(self, record: MemoryRecord) -> bool:
        """True when there is a version of this record that says the same from the same time on."""
        line = self.lines.get(record.id)
        return line is not None and any(
            isinstance(v.body, Opened) and v.start == record.valid_from and identity(v.body.record) == identity(record)
            for v in line.versions
        )

    def mark(self, name: str) -> float:
        """The time after which the memory of a name shows records."""
        return self._marks.get(name, 0.0)

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        """What came of a task for a record, oldest first."""
        return tuple(self._tried.get((task, id), ()))

    def trials(self, task: str) -> Mapping[str, Sequence[Tried]]:
        """The same for all records."""
        return {id: tuple(tried) for (named, id), tried in self._tried.items() if named == task}

    def _saying(self, record: MemoryRecord) -> list[str]:
        """The records that ever said the same."""
        self._read()
        return list(self._said.get(identity(record), ()))

    def _read(self) -> None:
        """Indexes what was said, when first asked, so that reading alone does not pay for it."""
        for id, record in self._unread:
            self._said.setdefault(identity(record), {})[id] = None
        self._unread.clear()

    def _line(self, id: str) -> Line:
        line = self.lines.get(id)
        if line is None:
            line = self.lines[id] = Line()
        return line
