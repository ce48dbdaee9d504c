"""A log as an index of vectors reads it: pieces of text, and what a model makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from clew.index.flat import Entry
from clew.index.rows import Row, Source
from clew.index.rows import mark as of_rows

Progress = Callable[[int], None]
"""Is told, time and again, how many more texts have been embedded."""


def silent(texts: int) -> None:
    """Progress that nobody wants to know of."""


class Vectors(Protocol):
    """What one model makes of texts: each is embedded once, and kept by its key. A vector is the bytes of float16
    numbers and has length 1, or is all zeros."""

    @property
    def name(self) -> str: ...

    @property
    def lasting(self) -> bool:
        """Whether they are kept when the process ends. An index of others would not fit the next ones."""
        ...

    def key(self, text: str) -> str: ...

    def held(self, keys: Sequence[str]) -> dict[str, bytes]: ...

    def of(self, texts: Sequence[str], progress: Progress = ...) -> list[bytes]: ...

    def forget(self, keys: Sequence[str]) -> None: ...


class Texts:
    """The rows of a log in one namespace. `text` says what of a piece is embedded, `mark` what identifies a position of
    the log (None: the rows that are there)."""

    def __init__(
        self,
        source: Source,
        namespace: str,
        vectors: Vectors,
        text: Callable[[Mapping[str, str]], str],
        mark: Callable[[int], str] | None = None,
    ) -> None:
        self.vectors = vectors
        self._mark = mark or partial(of_rows, source, namespace)
        self._source = source
        self._namespace = namespace
        self._text = text

    def rows(self, after: int) -> Iterable[Row]:
        """The rows after a position."""
        return self._source.rows(self._namespace, after)

    def mark(self, position: int) -> str:
        """Tells what stands at a position; of none, nothing."""
        return self._mark(position) if position else ""

    def pieces(self, row: Row) -> list[tuple[Entry, str]]:
        """The entries of a row and their texts; a blank text has no meaning to be found by."""
        texts = [(piece, self._text(fields)) for piece, fields in enumerate(row.pieces)]
        key = self.vectors.key
        return [(Entry(row.position, row.id, n, key(text)), text) for n, text in texts if text.strip()]
