"""The shape of a session's log: which entry follows which. Pure, and without the entries' content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct


class Node(Struct, frozen=True):
    """An entry in the tree: its parent (None at a root), its children, and its newest label."""

    id: int
    parent: int | None
    kind: str
    at: float
    children: tuple[int, ...] = ()
    label: str = ""


class Damage(Struct, frozen=True):
    """A fault found in a stored session, and what was made of it; nothing in the store is changed.

    `gap`: entries from `entry` on are missing. `parent`: the entry's parent is missing or impossible
    and another stands in. `body`: the entry cannot be read and is left out. `leaf`: the session
    stood at an entry that is not there. `lineage`: the session it continues is not there.
    """

    kind: Literal["gap", "parent", "body", "leaf", "lineage"]
    entry: int
    detail: str


class Tree:
    """Parents by entry id. Ids grow along every branch, so there are no cycles."""

    def __init__(self) -> None:
        self.parents: dict[int, int | None] = {}
        self.newest = 0

    def __contains__(self, id: object) -> bool:
        return id in self.parents

    def add(self, id: int, parent: int | None) -> None:
        """Adds an entry newer than all others, below one that is there or as a root."""
        self.parents[id] = parent
        self.newest = id

    def ids(self) -> list[int]:
        """All ids, ascending, as they are now."""
        return list(self.parents)

    def path(self, leaf: int | None, after: int = 0) -> list[int]:
        """The ids from the root to `leaf`, without those up to `after`; O(length)."""
        ids = []
        while leaf is not None and leaf > after:
            ids.append(leaf)
            leaf = self.parents[leaf]
        ids.reverse()
        return ids

    def continues(self, leaf: int | None, earlier: int | None) -> bool:
        """Whether `earlier` (None: the place before the first entry) is on the path to `leaf`; O(distance)."""
        while leaf is not None and earlier is not None and leaf > earlier:
            leaf = self.parents[leaf]
        return earlier is None or leaf == earlier

    def nearest(self, id: int) -> int | None:
        """The newest entry older than `id`; O(length)."""
        return _before(self.ids(), id)

    def grow(self, links: Iterable[tuple[Any, Any]], base: int, last: int) -> Iterator[Damage]:
        """Adds stored (id, parent) pairs, ascending; ids should run from `base` + 1 to `last`.

        What cannot be right is mended, and yielded: an entry whose parent is missing, is no number
        or does not come before it, is put below the newest entry before that parent.
        """
        due = base + 1
        ids = self.ids()
        for id, parent in links:
            if id > due:
                yield _gap(due, id - 1)
            due = id + 1
            if parent is not None and parent not in self.parents:
                possible = isinstance(parent, int) and 0 < parent < id
                stand_in = _before(ids, parent if possible else id)
                fault = "is missing" if possible else "is impossible"
                yield Damage("parent", id, f"its parent {parent!r} {fault}; it follows {stand_in} instead")
                parent = stand_in
            self.add(id, parent)
            ids.append(id)
        if last >= due:
            yield _gap(due, last)
        self.newest = max(self.newest, base, last)


def _before(ids: Sequence[int], id: int) -> int | None:
    at = bisect_left(ids, id)
    return ids[at - 1] if at else None


def _gap(first: int, last: int) -> Damage:
    span = f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"
    return Damage("gap", first, span)


def runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending ids as runs of consecutive ones (first, last)."""
    first = last = 0
    for id in ids:
        if first and id == last + 1:
            last = id
            continue
        if first:
            yield first, last
        first = last = id
    if first:
        yield first, last
