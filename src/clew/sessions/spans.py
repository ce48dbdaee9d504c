"""Asking about entry ids without writing them out: a summary of 100,000 entries costs what its runs cost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from clew.sessions.edits import Ids, pack


class Spans:
    """A set of entry ids that grows, held as runs; each question takes the logarithm of their number."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ids: Iterable[int | tuple[int, int]] = ()) -> None:
        runs = [_run(i) for i in pack(ids)]
        self._firsts = [first for first, _ in runs]
        self._lasts = [last for _, last in runs]

    @property
    def ids(self) -> Ids:
        """The ids of the set, packed."""
        return pack(zip(self._firsts, self._lasts, strict=True))

    def add(self, ids: Ids) -> None:
        """Takes in more ids."""
        for first, last in map(_run, ids):
            i, j = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
            if i < j:
                first, last = min(first, self._firsts[i]), max(last, self._lasts[j - 1])
            self._firsts[i:j], self._lasts[i:j] = [first], [last]

    def covers(self, ids: Ids) -> bool:
        """Whether all of these ids are in the set."""
        for first, last in map(_run, ids):
            at = bisect_right(self._firsts, first) - 1
            if at < 0 or self._lasts[at] < last:
                return False
        return True

    def within(self, ids: Sequence[int]) -> list[int]:
        """Those of the ascending ids that are in the set."""
        found: list[int] = []
        for first, last in zip(self._firsts, self._lasts, strict=True):
            found += ids[bisect_left(ids, first) : bisect_right(ids, last)]
        return found

    def without(self, ids: Ids) -> Ids:
        """The ids of the set that are not among these."""
        left: list[tuple[int, int]] = []
        gone = [_run(i) for i in pack(ids)]
        for first, last in zip(self._firsts, self._lasts, strict=True):
            for start, end in gone:
                if start <= last and end >= first:
                    left.append((first, start - 1))
                    first = end + 1
            left.append((first, last))
        return pack(run for run in left if run[0] <= run[1])


class Index:
    """Which of several groups of ids hold an id; groups are known by their place in the order given."""

    __slots__ = ("_firsts", "_reach", "_runs")

    def __init__(self, groups: Iterable[Ids]) -> None:
        self._runs = sorted((*_run(i), n) for n, ids in enumerate(groups) for i in ids)
        self._firsts = [first for first, _, _ in self._runs]
        self._reach: list[int] = []  # how far any run up to here goes
        for _, last, _ in self._runs:
            self._reach.append(max(last, self._reach[-1]) if self._reach else last)

    def sharing(self, ids: Ids) -> list[int]:
        """The groups that share an id with these, ascending."""
        found: set[int] = set()
        for first, last in map(_run, ids):
            at = bisect_right(self._firsts, last) - 1
            while at >= 0 and self._reach[at] >= first:
                if self._runs[at][1] >= first:
                    found.add(self._runs[at][2])
                at -= 1
        return sorted(found)


def _run(i: int | tuple[int, int]) -> tuple[int, int]:
    return (i, i) if isinstance(i, int) else i
