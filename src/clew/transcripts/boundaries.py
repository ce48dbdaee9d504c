"""Recorded compactions as edits: what a boundary hides of the branch above it, and what stays.

The edits name whole spans of the branch, notes included: a span is two numbers in the log, however
long it is, and naming an entry that is not shown does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from clew.messages import Usage
from clew.sessions.edits import Drop, Edit, Ids, Insert, Replace, pack
from clew.sessions.entries import Account, Compaction
from clew.transcripts.events import Boundary


class Above(Struct, frozen=True):
    """What a branch shows right below a compaction.

    `gone` is what its summary stands for, `kept` the entries shown after it, `system` the entries
    the leading system messages stand for.
    """

    gone: Ids = ()
    kept: tuple[int, ...] = ()
    system: tuple[int, ...] = ()


class Branches:
    """The branches of a log being imported, as far as compactions need them."""

    def __init__(self) -> None:
        self.parents: dict[int, int | None] = {}
        self.systems: set[int] = set()
        self.shown: set[int] = set()
        self.below: dict[int, Above] = {}

    def add(self, id: int, parent: int | None, *, shown: bool, system: bool) -> None:
        """An entry below its parent; `shown` when a model sees it."""
        self.parents[id] = parent
        if system:
            self.systems.add(id)
        elif shown:
            self.shown.add(id)

    def compaction(
        self, id: int, parent: int | None, boundary: Boundary, policy: str, kept: Collection[int], kept_from: int | None
    ) -> Compaction:
        """The compaction that entry `id` will be, below `parent`; `kept` and `kept_from` are entry ids."""
        before, fresh = self._above(parent)
        path = [*before.kept, *fresh]
        kept_from = kept_from if kept_from in self.parents and self._holds(before, path, kept_from) else None
        systems = (*before.system, *(i for i in fresh if i in self.systems))
        stay = tuple(i for i in path if i not in self.systems and self._stays(i, kept, kept_from))
        hide = set(path).difference(stay, systems)
        gone = pack((*before.gone, *hide))
        edits: list[Edit] = []
        if gone:
            edits.append(Drop(gone))
        if boundary.system is not None:
            edits.append(
                Replace(pack(systems), boundary.system, "keep") if systems else Insert(None, boundary.system, "keep")
            )
            systems = systems or (id,)
        edits.append(Insert(None, boundary.summary, "summary", gone))
        self.below[id] = Above(pack((*gone, id)), stay, systems)
        self.parents[id] = parent
        hidden = sum(i in self.shown for i in hide) + bool(before.gone)
        return Compaction(
            edits=tuple(edits),
            reason=boundary.reason,
            policy=policy,
            before=boundary.before,
            after=boundary.after,
            account=Account(kept=len(systems) + sum(i in self.shown for i in stay), summarised=hidden),
            calls=1,
            usage=boundary.usage or Usage(),
            details=boundary.details,
        )

    def _above(self, parent: int | None) -> tuple[Above, list[int]]:
        """What the nearest compaction above shows, and the entries since, ascending."""
        fresh: list[int] = []
        at = parent
        while at is not None and at not in self.below:
            fresh.append(at)
            at = self.parents.get(at)
        fresh.reverse()
        return (Above() if at is None else self.below[at]), fresh

    def _stays(self, id: int, kept: Collection[int], kept_from: int | None) -> bool:
        return id in kept or (kept_from is not None and id >= kept_from)

    def _holds(self, before: Above, path: list[int], id: int) -> bool:
        return id in path or id in before.system or any(a <= id <= b for a, b in _spans(before.gone))


def _spans(ids: Ids) -> Iterator[tuple[int, int]]:
    for i in ids:
        yield (i, i) if isinstance(i, int) else i
