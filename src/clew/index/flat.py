"""Vectors in memory that are compared one by one: exact search."""

from __future__ import annotations

from collections.abc import Collection, KeysView, Sequence
from typing import NamedTuple

from clew.index.arrays import Floats, NDArray, exact, fit, np, unpacked

SLACK = 1e-4
"""What a score may be off when many are computed at once in single precision. Those that close to the last
one wanted are computed again: so the result does not depend on how vectors lie in memory."""


class Entry(NamedTuple):
    """A piece in an index, by the key of its text."""

    position: int
    id: str
    piece: int
    key: str


class Scored(NamedTuple):
    """A piece that was compared. Sorted, the best comes first; of equals the newer one."""

    minus: float
    behind: int
    id: str
    piece: int

    @classmethod
    def of(cls, score: float, entry: Entry) -> Scored:
        return cls(-score, -entry.position, entry.id, entry.piece)


class Flat:
    """Entries with their vectors (float16 bytes, of length 1). Vectors of nothing but zeros are near to nothing."""

    def __init__(self) -> None:
        self._entries: list[Entry | None] = []
        self._at: dict[str, list[int]] = {}
        self._rows: Floats = np.zeros((0, 0), np.float32)
        self._alive: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return sum(map(len, self._at.values()))

    @property
    def ids(self) -> KeysView[str]:
        """The ids it has entries of."""
        return self._at.keys()

    def add(self, entries: Sequence[Entry], vectors: Sequence[bytes]) -> None:
        """Takes in entries."""
        if not entries:
            return
        new = unpacked(vectors)
        start, end = len(self._entries), len(self._entries) + len(entries)
        if end > len(self._rows):
            self._grow(end, new.shape[1])
        self._rows[start:end] = new
        self._alive[start:end] = new.any(axis=1)
        for at, entry in enumerate(entries, start):
            self._entries.append(entry)
            self._at.setdefault(entry.id, []).append(at)

    @property
    def keys(self) -> set[str]:
        """The keys of its entries' texts."""
        return {entry.key for entry in self._entries if entry is not None}

    def drop(self, ids: Collection[str]) -> list[str]:
        """Takes out the entries of these ids; the keys of their texts."""
        keys: list[str] = []
        for id in ids:
            for at in self._at.pop(id, ()):
                gone = self._entries[at]
                keys += [gone.key] if gone is not None else []
                self._entries[at] = None
                self._alive[at] = False
                self._rows[at] = 0.0
        return keys

    def best(self, query: Floats, k: int, ids: Collection[str] | None = None) -> list[Scored]:
        """The `k` nearest entries, of these ids or of all; sorted."""
        chosen = self._chosen(ids)
        if not k or not len(chosen):
            return []
        fit(query, self._rows.shape[1])
        scores = (self._rows[: len(self._entries)] @ query)[chosen] if ids is None else self._rows[chosen] @ query
        if len(chosen) > k:
            last = np.partition(scores, len(scores) - k)[len(scores) - k]
            chosen = chosen[scores >= last - SLACK]
        entries = [entry for at in chosen if (entry := self._entries[at]) is not None]
        return sorted(map(Scored.of, exact(self._rows[chosen], query), entries))[:k]

    def _chosen(self, ids: Collection[str] | None) -> NDArray[np.intp]:
        if ids is None:
            return np.flatnonzero(self._alive[: len(self._entries)])
        places = sorted(at for id in set(ids) for at in self._at.get(id, ()))
        return np.array([at for at in places if self._alive[at]], np.intp)

    def _grow(self, needed: int, dim: int) -> None:
        if self._entries:
            fit(np.zeros(dim, np.float32), self._rows.shape[1])
        size = max(needed, 2 * len(self._rows), 64)
        rows, alive = np.zeros((size, dim), np.float32), np.zeros(size, np.bool_)
        held = len(self._entries)
        rows[:held], alive[:held] = self._rows[:held, :dim] if held else rows[:0], self._alive[:held]
        self._rows, self._alive = rows, alive
