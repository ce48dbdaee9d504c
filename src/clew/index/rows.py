"""What an index reads, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import groupby
from typing import Protocol

from msgspec import Struct


class Row(Struct, frozen=True, gc=False):
    """What there is to find of one thing from now on; it replaces what earlier rows said of the same `id`.

    `position` is its place in the log. Each of `pieces` is a text by field, found by itself; without
    pieces nothing is found any more. `facets` are exact values to filter by.
    """

    position: int
    id: str
    pieces: tuple[Mapping[str, str], ...] = ()
    facets: Mapping[str, str] = {}


class Source(Protocol):
    """A log of rows, by namespace. It may be read by several threads."""

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        """The rows after a position, in the order of their positions; several may have the same one."""


def by_position(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each position: what is read of a log is read up to a whole position."""
    return (list(together) for _, together in groupby(rows, key=lambda row: row.position))


def batches(rows: Iterable[Row], size: int, until: int | None = None) -> Iterator[list[Row]]:
    """The rows up to a position (None: all), at least `size` at a time but for the last, cut between positions."""
    batch: list[Row] = []
    for together in by_position(rows):
        if until is not None and together[0].position > until:
            break
        batch += together
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def mark(source: Source, namespace: str, position: int) -> str:
    """A digest of what the log has at a position: an index made from another log, or from one that was put back
    to an earlier state, is told by it."""
    rows = next(by_position(source.rows(namespace, position - 1)), [])
    held = repr([row for row in rows if row.position == position])
    return blake2b(held.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


class Gain(Struct, frozen=True, gc=False):
    """What one term of the query gave to a score, and how often each field has it."""

    term: str
    score: float
    counts: Mapping[str, int]


class Hit:
    """A piece that was found. `score` is the sum of what the terms gave; `gains`, worked out when it is asked for,
    is what each gave."""

    def __init__(
        self, id: str, piece: int, position: int, score: float, explain: Callable[[], tuple[Gain, ...]]
    ) -> None:
        self.id = id
        self.piece = piece
        self.position = position
        self.score = score
        self._explain = explain

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """What each term gave."""
        return self._explain()

    def __repr__(self) -> str:
        return f"Hit(id={self.id!r}, piece={self.piece}, position={self.position}, score={self.score})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hit) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    @property
    def _value(self) -> tuple[str, int, int, float]:
        return self.id, self.piece, self.position, self.score
