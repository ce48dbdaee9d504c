"""What turns texts into vectors, and exact search among them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isfinite, sqrt
from operator import mul
from typing import Protocol, runtime_checkable

from clew.errors import ClewError
from clew.memory.records import digest

Vector = Sequence[float]
Hit = tuple[int, float]


class EmbeddingError(ClewError):
    """There is no embedder, or it did not give one finite vector of its dimension for each text."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. `name` tells one model from another, `dim` is the length of its vectors."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]: ...


class FunctionEmbedder:
    """A function of one text as an embedder, as QitOS takes it. The dimension is that of the first vector."""

    def __init__(self, function: Callable[[str], Vector], name: str = "function") -> None:
        self.function = function
        self.name = name
        self.dim = 0

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = [self.function(text) for text in texts]
        self.dim = self.dim or (len(vectors[0]) if vectors else 0)
        return vectors


class Vectors:
    """The vectors of texts: each text is embedded once, several at a time."""

    def __init__(self, embedder: Embedder, batch: int = 64) -> None:
        self.embedder = embedder
        self.batch = batch
        self._known: dict[str, array[float]] = {}

    def of(self, texts: Sequence[str]) -> list[array[float]]:
        """The vectors, of length 1 (a zero vector stays one). Raises `EmbeddingError`."""
        keys = [digest(text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        new = list(missing.items())
        for start in range(0, len(new), self.batch):
            part = new[start : start + self.batch]
            vectors = checked(self.embedder, [text for _, text in part])
            self._known.update((key, vector) for (key, _), vector in zip(part, vectors, strict=True))
        return [self._known[key] for key in keys]


def checked(embedder: Embedder, texts: Sequence[str]) -> list[array[float]]:
    """What the embedder makes of the texts, as vectors of length 1. Raises `EmbeddingError` when unusable."""
    vectors = embedder.embed(texts)
    if len(vectors) != len(texts):
        raise EmbeddingError(f"{embedder.name} gave {len(vectors)} vectors for {len(texts)} texts")
    for vector in vectors:
        if len(vector) != embedder.dim:
            raise EmbeddingError(f"{embedder.name} gave a vector of {len(vector)} numbers, not {embedder.dim}")
        if not all(map(isfinite, vector)):
            raise EmbeddingError(f"{embedder.name} gave a vector that is not of finite numbers")
    return [unit(vector) for vector in vectors]


def unit(vector: Vector) -> array[float]:
    """The vector with length 1; a zero vector as it is."""
    length = sqrt(sum(x * x for x in vector))
    return array("f", (x / length for x in vector) if length else vector)


def nearest(
    query: Vector, vectors: Iterable[Vector], k: int, threshold: float | None = None
) -> list[tuple[int, float]]:
    """The places of the `k` vectors with the highest dot product, and that product; the earlier one first if equal.

    Only those of at least `threshold`, if one is given. All are compared.
    """
    scored = [(place, sum(map(mul, query, vector))) for place, vector in enumerate(vectors)]
    good = [s for s in scored if threshold is None or s[1] >= threshold]
    return sorted(good, key=lambda s: -s[1])[: max(k, 0)]
