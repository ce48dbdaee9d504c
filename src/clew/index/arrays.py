"""Vectors as NumPy has them, and as they are stored: the bytes of float16 numbers, of length 1 or all zeros.

What uses NumPy takes it from here: when it is not installed, the error says what to install.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.errors import EmbeddingError, MissingExtra

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise MissingExtra("vectors", "numpy", "vectors") from error

__all__ = ["Floats", "NDArray", "exact", "fit", "np", "packed", "unpacked"]

Floats = NDArray[np.float32]

DIGITS = 6
"""Decimals of a score: more are noise."""


def packed(vectors: NDArray[np.floating]) -> list[bytes]:
    """Rows of numbers, as they are stored."""
    return [vector.tobytes() for vector in vectors.astype("<f2")]


def unpacked(vectors: Sequence[bytes]) -> Floats:
    """Kept vectors as rows of numbers. Raises `EmbeddingError` when they are not of one dimension."""
    if len({len(vector) for vector in vectors}) > 1:
        sizes = sorted({len(vector) // 2 for vector in vectors})
        raise EmbeddingError(f"one model has vectors of {sizes} numbers; give it another name when it changes")
    return np.frombuffer(b"".join(vectors), "<f2").reshape(len(vectors), -1).astype(np.float32)


def exact(rows: Floats, query: Floats) -> list[float]:
    """The dot product of each row with the query, the same wherever the row comes from."""
    products = (rows.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return [round(float(score), DIGITS) for score in products]


def fit(query: Floats, dim: int) -> None:
    """Raises `EmbeddingError` unless a vector has this dimension."""
    if query.shape != (dim,):
        raise EmbeddingError(
            f"a vector of {'x'.join(map(str, query.shape))} numbers was given, those of the index have {dim}: "
            "search with the model that made them"
        )
