"""What an index has not read yet, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from clew.index.bm25 import Document
from clew.index.rows import Row
from clew.text import terms, value_of
from clew.text.patterns import Exact, Starts


def documents(row: Row, fields: Collection[str]) -> list[Document]:
    """The documents of a row, with all fields an index has."""
    facets = {name: value_of(value) for name, value in row.facets.items()}
    return [
        Document(row.id, i, row.position, {name: terms(piece.get(name, "")) for name in fields}, facets)
        for i, piece in enumerate(row.pieces)
    ]


class Tail:
    """The rows after a position of the log: of each id the last one."""

    def __init__(self, fields: Collection[str], start: int) -> None:
        self._fields = fields
        self._rows: dict[str, tuple[int, list[Document]]] = {}
        self._having: dict[str, dict[tuple[str, int], Document]] = {}
        self.start = start
        self.end = start

    def __len__(self) -> int:
        """How many ids it says something of."""
        return len(self._rows)

    @property
    def ids(self) -> Collection[str]:
        """The ids it says something of: what the index has of them is no longer true."""
        return self._rows.keys()

    @property
    def documents(self) -> list[Document]:
        """The documents of these ids."""
        return [document for _, found in self._rows.values() for document in found]

    def add(self, row: Row) -> None:
        """Takes in the next row."""
        self._drop(row.id)
        found = documents(row, self._fields)
        self._rows[row.id] = (row.position, found)
        self.end = row.position
        for document in found:
            for term in document.terms:
                self._having.setdefault(term, {})[document.id, document.piece] = document

    def forget(self, position: int) -> None:
        """Drops what an index has read meanwhile."""
        for id in [id for id, (at, _) in self._rows.items() if at <= position]:
            self._drop(id)
        self.start = position
        self.end = max(self.end, position)

    def having(self, item: Exact | Starts) -> Collection[Document]:
        """The documents that have a term in some field."""
        if isinstance(item, Exact):
            return self._having.get(item.term, {}).values()
        terms = [term for term in self._having if term.startswith(item.prefix) or term in item.stems]
        return {key: document for term in terms for key, document in self._having[term].items()}.values()

    def _drop(self, id: str) -> None:
        _, gone = self._rows.pop(id, (0, []))
        for document in gone:
            for term in document.terms:
                having = self._having[term]
                del having[document.id, document.piece]
                if not having:
                    del self._having[term]


def accepted(document: Document, filters: Mapping[str, Collection[str]]) -> bool:
    """Whether a document has one of the values of each facet."""
    return all(document.facets.get(facet) in values for facet, values in filters.items())
