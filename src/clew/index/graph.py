"""The graph of an index of vectors: HNSW of usearch over bytes. All that is particular to it is here.

A vector is kept in the graph as bytes, a quarter of the room and several times as fast to compare; what it
finds are candidates, which are scored by the vectors as they are stored. The thirty nearest by bytes hold all of the
ten nearest (`bench/vectors.py`, real vectors): what is missed is missed by the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from zlib import crc32

from clew.errors import MissingExtra
from clew.index.arrays import Floats, NDArray, np
from clew.index.files import Damaged

try:
    from usearch.index import Index
except ImportError as error:
    raise MissingExtra("vectors", "usearch", "indexes of many vectors") from error

MAKE = f"usearch-{version('usearch').partition('.')[0]}"
"""The make of the files: usearch reads those of its major version."""

LINKS = 16
"""Neighbours of a vector in the graph: 24 take a tenth more room and half as long again to build."""

ADDING, SEARCHING = 128, 512
"""Candidates looked at when a vector is added, and when one is looked for. Among 100,000 vectors 128 of them found 0.95
of the nearest ten, 256 0.99 and 400 0.997; a search takes 0.3, 0.6 and 0.9 ms, less than reading their vectors does."""

_CHUNK = 1 << 20
_FILLER = 1 << 62
"""Keys from here on are of vectors that overwrite forgotten ones."""


class Nearby:
    """A graph of vectors of one dimension. One thread adds them, so that the same ones give the same graph."""

    def __init__(self, index: Any, scale: float) -> None:
        self._index = index
        self._index.expansion_search = SEARCHING
        self.scale = scale

    @classmethod
    def new(cls, sample: Floats) -> Nearby:
        """An empty graph, for vectors like those of the sample: their largest number becomes the largest byte."""
        largest = float(np.abs(sample).max()) if sample.size else 0.0
        made = Index(
            ndim=sample.shape[1],
            metric="cos",
            dtype="i8",
            connectivity=LINKS,
            expansion_add=ADDING,
        )
        return cls(made, 127.0 / (largest or 1.0))

    @classmethod
    def load(cls, path: Path, scale: float, *, write: bool = False) -> Nearby:
        """The graph in a file, whose checksum has been looked at; mapped into memory, or read to add to it."""
        try:
            index = Index.restore(str(path), view=not write)
        except RuntimeError as error:
            raise Damaged(f"{path.name}: {error}") from error
        if index is None:
            raise Damaged(f"{path.name}: not a graph")
        return cls(index, scale)

    def __len__(self) -> int:
        return len(self._index)

    def add(self, keys: Sequence[int], vectors: Floats) -> None:
        """Adds vectors. One of nothing but zeros is near to nothing and is left out."""
        some = vectors.any(axis=1)
        if some.any():
            self._index.add(np.array(keys, np.uint64)[some], self._bytes(vectors[some]), threads=1)

    def erase(self, keys: Iterable[int]) -> None:
        """Takes out vectors, and writes others over them: nothing can be read of them in a file saved afterwards."""
        gone = [key for key in keys if key in self._index]
        for key in gone:
            self._index.remove(key)
        for key in gone:
            self._index.add(_FILLER + key, np.ones(self._index.ndim, np.int8), threads=1)

    def nearest(self, query: Floats, count: int) -> list[int]:
        """The keys of about the nearest vectors."""
        found = self._index.search(self._bytes(query), min(count, len(self._index)), threads=1)
        return [int(key) for key in found.keys if key < _FILLER]

    def save(self, path: Path) -> tuple[int, int]:
        """Writes a file; its size and checksum."""
        try:
            self._index.save(str(path))
        except RuntimeError as error:  # all that usearch says of a full disk
            raise OSError(f"{path}: {error}") from error
        return path.stat().st_size, checksum(path)

    def _bytes(self, vectors: Floats) -> NDArray[np.int8]:
        scaled: NDArray[np.int8] = np.clip(np.rint(vectors * self.scale), -127, 127).astype(np.int8)
        return scaled


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        found = 0
        for at in range(0, len(data), _CHUNK):
            found = crc32(data[at : at + _CHUNK], found)
        return found
