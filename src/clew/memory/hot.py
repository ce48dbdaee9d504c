"""A log of which the end can be read by itself: what was said last is shown without reading what was said before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from clew.memory.changes import Change, Tried, from_row
from clew.memory.folded import Folded
from clew.memory.known import Known
from clew.memory.line import Line
from clew.memory.records import MemoryRecord
from clew.memory.state import State
from clew.storage.changes import ChangeLog
from clew.storage.redis import Tail

FIRST = 100
"""Changes read at first; as many again when they do not suffice, and so on."""


class TailedLog(ChangeLog, Protocol):
    """A log whose end can be read."""

    def tail(self, n: int) -> Tail:
        """Its last changes."""


class Hot(Folded):
    """As `Folded`; but as long as it has not been read whole, `latest` and `mark` read its end. So a window over a log
    of a million changes costs as much as over a log of a hundred."""

    def __init__(self, log: TailedLog) -> None:
        super().__init__(log)
        self._tailed = log

    def newest(self) -> float:
        return super().newest() if self.read else self._tailed.tail(1).newest

    def known(self) -> Known:
        return self.folded() if self.read else _End(self)

    @property
    def read(self) -> bool:
        """Whether the log has been read whole; then its news are read, and that is less than its end."""
        return self._position > 0

    def end(self, n: int) -> tuple[State, bool] | None:
        """What the last `n` changes come to, of the records that are first known by them; and whether that is all.

        None when it cannot be told from the end: changes came after newer ones.
        """
        tail = self._tailed.tail(n)
        if tail.mixed:
            return None
        start = tail.length - len(tail.rows)
        rows = {row.position: row for row in tail.marks}
        rows |= {row.position: row for row in tail.rows if tail.firsts.get(row.record, 0) > start}
        return State(from_row(rows[position]) for position in sorted(rows)), start == 0


class _End:
    """What is known, with the end of the log looked at first."""

    def __init__(self, hot: Hot) -> None:
        self._hot = hot

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        n, given = FIRST, 0
        while True:
            found = self._hot.end(n)
            state, whole = found if found is not None else (self._hot.folded(), True)
            for count, record in enumerate(state.latest(kind, at)):
                if count >= given:
                    given += 1
                    yield record
            if whole:
                return
            n *= 10

    def mark(self, name: str) -> float:
        found = self._hot.end(1)
        return (found[0] if found is not None else self._hot.folded()).mark(name)

    def knows(self, id: str) -> bool:
        return self._hot.folded().knows(id)

    def keyed(self, key: str) -> Change | None:
        return self._hot.folded().keyed(key)

    def line(self, id: str) -> Line | None:
        return self._hot.folded().line(id)

    def of_kind(self, kind: str) -> Iterator[Line]:
        return self._hot.folded().of_kind(kind)

    def record(self, id: str, at: float) -> MemoryRecord | None:
        return self._hot.folded().record(id, at)

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        return self._hot.folded().records(at, *kinds)

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        return self._hot.folded().same(record, at)

    def closed_since(self, record: MemoryRecord) -> bool:
        return self._hot.folded().closed_since(record)

    def has(self, record: MemoryRecord) -> bool:
        return self._hot.folded().has(record)

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        return self._hot.folded().tried(task, id)

    def trials(self, task: str) -> Mapping[str, Sequence[Tried]]:
        return self._hot.folded().trials(task)
