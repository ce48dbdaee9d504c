"""An index and what it has not read yet, searched as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from heapq import nsmallest

from clew.index.bm25 import Document, Scoring, Totals, Wanted, rarity, totals
from clew.index.engine import Asked, Schema
from clew.index.reader import Reader
from clew.index.rows import Hit, Row
from clew.index.tail import Tail, accepted
from clew.text.patterns import Adjacent, But, Every, Exact, In, Leaf, Pattern, Some, Starts, Tag, leaves, matches

CANDIDATES = 100
"""Documents, at least, that are taken from the engine to be scored by our BM25."""

TERMS = 64
"""Terms of a long text that are looked for: the rarest ones."""


class View:
    """What one namespace holds: the index as far as it has read, and the rows after that.

    Scores do not depend on where the border is.
    """

    def __init__(self, schema: Schema, weights: Mapping[str, float], reader: Reader) -> None:
        self._schema = schema
        self._weights = weights
        self._reader = reader
        self._replaced: dict[str, list[Document]] = {}
        self._totals = Totals(0, {})
        self.tail = Tail(schema.names, 0)

    def refresh(self) -> None:
        """Takes up what has been committed to the index."""
        if not self._reader.refresh():
            return
        position = self._reader.state.position if self._reader.state else 0
        if position < self.tail.start:
            self.tail = Tail(self._schema.names, position)
        self.tail.forget(position)
        self._replaced = {}
        self._supersede(self.tail.ids)

    def add(self, rows: Iterable[Row]) -> None:
        """Takes in rows that follow the ones it has."""
        ids = set()
        for row in rows:
            self.tail.add(row)
            ids.add(row.id)
        if ids:
            self._supersede(ids)

    def _supersede(self, ids: Collection[str]) -> None:
        """What the index has of these ids is no longer true."""
        searcher, state = self._reader.searcher, self._reader.state
        if searcher is not None:
            held = [id for id in ids if id not in self._replaced and searcher.doc_freq("id", id)]
            for document in self._schema.documents(searcher, held):
                self._replaced.setdefault(document.id, []).append(document)
        indexed = state.totals if state else Totals(0, {})
        gone = totals(self._superseded(), self._schema.names)
        self._totals = indexed - gone + totals(self.tail.documents, self._schema.names)

    def _superseded(self) -> list[Document]:
        return [document for documents in self._replaced.values() for document in documents]

    def find(self, pattern: Pattern, k: int, filters: Mapping[str, Collection[str]]) -> list[Hit]:
        """The `k` best pieces that match; of equals the newer first."""
        asked = Asked(self._schema, self._reader.searcher, self._weights) if self._reader.searcher else None
        terms = {leaf: worth for leaf in leaves(pattern) if (worth := self._rarity(leaf, asked)) is not None}
        if len(terms) > TERMS and isinstance(pattern, Some) and all(isinstance(p, Leaf) for p in pattern.parts):
            terms = dict(sorted(terms.items(), key=lambda one: -one[1])[:TERMS])
            pattern = Some(tuple(leaf for _, leaf in terms))
        wanted = [Wanted(leaf, field, worth) for (field, leaf), worth in terms.items()]
        scoring = Scoring(wanted, self._weights, self._totals)
        scored = [(scoring.score(document), document) for document in self._matching(pattern, k, filters, asked)]
        best = nsmallest(k, scored, key=lambda one: (-one[0], -one[1].position, one[1].id, one[1].piece))
        return [Hit(d.id, d.piece, d.position, score, partial(scoring.gains, d)) for score, d in best]

    def _matching(
        self, pattern: Pattern, k: int, filters: Mapping[str, Collection[str]], asked: Asked | None
    ) -> Iterator[Document]:
        if asked is not None:
            replaced = [self._schema.of_ids(self._replaced)] if self._replaced else []
            query = asked.restricted(asked.query(pattern), filters, replaced)
            yield from asked.best(query, k, max(CANDIDATES, k + CANDIDATES // 2))
        words = isinstance(pattern, Some) and all(isinstance(part, Exact) for part in pattern.parts)
        for document in self._unread(pattern):
            if accepted(document, filters) and (words or matches(pattern, document.holds, document.facets)):
                yield document

    def _unread(self, pattern: Pattern) -> Collection[Document]:
        """Those of the tail that may match."""
        if _without_terms(pattern):
            return self.tail.documents
        items = [item for _, leaf in leaves(pattern) for item in _items(leaf)]
        return {(d.id, d.piece): d for item in items for d in self.tail.having(item)}.values()

    def _rarity(self, leaf: tuple[str, Leaf], asked: Asked | None) -> float | None:
        """What a leaf is worth: a phrase what its rarest word is. None when no document has it."""
        field, what = leaf
        holding = min(self._holding(item, field, asked) for item in _items(what))
        return rarity(self._totals.documents, holding) if holding else None

    def _holding(self, item: Exact | Starts, field: str, asked: Asked | None) -> int:
        indexed = asked.holding(item, field) if asked else 0
        gone = sum(document.holds(item, field) for document in self._superseded())
        unread = self.tail.having(item)
        return indexed - gone + (sum(document.holds(item, field) for document in unread) if field else len(unread))


def _items(leaf: Leaf) -> list[Exact | Starts]:
    return [item for _, item in leaf.items] if isinstance(leaf, Adjacent) else [leaf]


def _without_terms(pattern: Pattern) -> bool:
    """Whether a document may match by its facets alone."""
    if isinstance(pattern, Some):
        return any(_without_terms(part) for part in pattern.parts)
    if isinstance(pattern, Every):
        return all(_without_terms(part) for part in pattern.parts)
    if isinstance(pattern, But | In):
        return _without_terms(pattern.part)
    return isinstance(pattern, Tag)
