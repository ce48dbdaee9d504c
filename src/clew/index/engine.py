"""Tantivy: its schema, documents and queries. All that is particular to it is here and in `files`.

It was chosen over SQLite's FTS5 by measurement with the same terms (`bench/fulltext.py`): at 100,000
texts FTS5 took 37 ms for a common word and 156 ms for eight frequent ones, Tantivy 0.4 and 0.9 ms, in
two thirds of the space. That it takes a tenth of a second to commit does not show: what it has not
read yet is searched beside it.

A field is indexed as its terms with spaces between them, each extra term set off so that no phrase
spans it. The terms are stored beside it in a form that is read at once: candidates are scored by our BM25, since
Tantivy's parameters are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tantivy
from msgspec import Struct
from tantivy import Occur

from clew.index.bm25 import Document, Totals
from clew.text.patterns import Adjacent, But, Every, Exact, Leaf, Pattern, Some, Starts, Tag
from clew.text.tokenise import Terms

HEAP = 64_000_000
"""Bytes that indexing may use before it writes a segment."""

EXPANDED = 64
"""Terms a beginning of a word stands for, the most frequent ones, that are scored before candidates are
chosen; those with rarer ones come after them."""

COUNTED = 20_000
"""Documents that are counted one by one to know how rare a word is."""

_BREAK = "\x1f"
_APART = f" {_BREAK} "
_STATE = "state"


class State(Struct, frozen=True):
    """What an index says of itself, written with each commit: how far it has read, what stood there (its `mark`),
    and who made it."""

    position: int
    mark: str
    totals: Totals
    made: str


class _Held(Struct, frozen=True, array_like=True, gc=False):
    """A document as it is stored."""

    id: str
    piece: int
    position: int
    facets: dict[str, str]
    fields: tuple[Terms, ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Held)


class Schema:
    """The fields of an index: those of texts by name, and what every document has."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        builder = tantivy.SchemaBuilder()
        for name in ("id", "state"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("facets", tokenizer_name="spaces", index_option="basic")
        for name in self.names:
            builder.add_text_field(_text(name), tokenizer_name="spaces", index_option="position")
        builder.add_unsigned_field("position", fast=True)
        builder.add_bytes_field("held", stored=True)
        self.built = builder.build()

    def open(self, folder: Path) -> tantivy.Index:
        """The index in a folder, new when there is none. Raises `ValueError` when it is of another schema."""
        index = tantivy.Index(self.built, str(folder))
        index.register_tokenizer("spaces", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        index.config_reader("manual")
        index.reload()
        return index

    def put(self, writer: tantivy.IndexWriter, document: Document) -> None:
        """Adds a document."""
        made = tantivy.Document()
        fields = tuple(document.fields[name] for name in self.names)
        held = _Held(document.id, document.piece, document.position, dict(document.facets), fields)
        made.add_text("id", document.id)
        made.add_unsigned("position", document.position)
        made.add_text("facets", " ".join(_facet(name, value) for name, value in document.facets.items()))
        for name, terms in zip(self.names, fields, strict=True):
            made.add_text(_text(name), _APART.join((" ".join(terms.stream), *terms.extra)))
        made.add_bytes("held", _ENCODER.encode(held))
        writer.add_document(made)

    def put_state(self, writer: tantivy.IndexWriter, state: State) -> None:
        """Replaces what the index says of itself."""
        writer.delete_documents_by_term("state", _STATE)
        made = tantivy.Document()
        made.add_text("state", _STATE)
        made.add_bytes("held", _ENCODER.encode(state))
        writer.add_document(made)

    def state(self, searcher: tantivy.Searcher) -> State:
        """What the index says of itself. Raises `ValueError` when it says nothing, or too much."""
        found = searcher.search(tantivy.Query.term_query(self.built, "state", _STATE), 2).hits
        if len(found) != 1:
            raise ValueError(f"{len(found)} states")
        return msgspec.msgpack.decode(_stored(searcher, found[0][1]), type=State)

    def document(self, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> Document:
        """A document as it was put."""
        held = _DECODER.decode(_stored(searcher, address))
        fields = dict(zip(self.names, held.fields, strict=True))
        return Document(held.id, held.piece, held.position, fields, held.facets)

    def of_ids(self, ids: Collection[str]) -> tantivy.Query:
        """The documents of some ids."""
        return tantivy.Query.term_set_query(self.built, "id", list(ids))

    def documents(self, searcher: tantivy.Searcher, ids: Collection[str]) -> list[Document]:
        """The documents of some ids."""
        found = searcher.search(self.of_ids(ids), searcher.num_docs).hits if ids else []
        return [self.document(searcher, address) for _, address in found]


class Asked:
    """Turns patterns into queries of one searcher."""

    def __init__(self, schema: Schema, searcher: tantivy.Searcher, weights: Mapping[str, float]) -> None:
        self._schema = schema
        self._searcher = searcher
        self._weights = weights

    def query(self, pattern: Pattern, field: str = "") -> tantivy.Query:
        """The query of a pattern, confined to a field or not ("")."""
        if isinstance(pattern, Exact | Starts | Adjacent):
            return _some([self._boosted(pattern, name) for name in self._weights if field in ("", name)])
        if isinstance(pattern, Tag):
            term = _facet(pattern.facet, pattern.value)
            return _silent(tantivy.Query.term_query(self._schema.built, "facets", term, "basic"))
        if isinstance(pattern, Some):
            return _some([self.query(part, field) for part in pattern.parts])
        if isinstance(pattern, Every):
            return tantivy.Query.boolean_query([(Occur.Must, self.query(part, field)) for part in pattern.parts])
        if isinstance(pattern, But):
            return self.restricted(
                self.query(pattern.part, field), {}, [self.query(p, field) for p in pattern.excluded]
            )
        return self.query(pattern.part, pattern.field)

    def restricted(
        self, query: tantivy.Query, filters: Mapping[str, Collection[str]], excluded: Collection[tantivy.Query] = ()
    ) -> tantivy.Query:
        """A query's documents that have one of the values of each facet and are not among the excluded."""
        parts = [(Occur.Must, query)]
        for facet, values in filters.items():
            terms = [_facet(facet, value) for value in values]
            parts.append((Occur.Must, _silent(tantivy.Query.term_set_query(self._schema.built, "facets", terms))))
        parts += [(Occur.MustNot, one) for one in excluded]
        return tantivy.Query.boolean_query(parts) if len(parts) > 1 else query

    def holding(self, leaf: Exact | Starts, field: str) -> int:
        """How many documents have a leaf in a field, or with "" in any.

        Counted one by one up to `COUNTED`; above, where a few more do not matter, the number of the field
        that has most.
        """
        names = [name for name in self._weights if field in ("", name)]
        held = [sum(n for _, n in self._terms(leaf, name)) for name in names]
        if sum(held) > COUNTED:
            return min(max(held), self._searcher.num_docs)
        if not any(held):
            return 0
        counted: Any = self._searcher.search(self.query(leaf, field), 1)  # its type stub forgets the count
        return int(counted.count)

    def best(self, query: tantivy.Query, k: int, limit: int) -> Iterator[Document]:
        """The `limit` documents that are best by the engine's own BM25. Of equals it prefers the older ones: where
        there are more of them than can be among the best `k`, the newest that match come with them."""
        limit = min(limit, self._searcher.num_docs)  # for which the engine sets memory aside beforehand
        hits = self._searcher.search(query, limit, count=False).hits
        found = {(address.segment_ord, address.doc): address for _, address in hits}
        if k and len(hits) == limit > k and hits[k - 1][0] == hits[-1][0]:
            newest = self._searcher.search(query, limit, count=False, order_by_field="position").hits
            found.update(((address.segment_ord, address.doc), address) for _, address in newest)
        for address in found.values():
            yield self._schema.document(self._searcher, address)

    def _boosted(self, leaf: Leaf, name: str) -> tantivy.Query:
        return tantivy.Query.boost_query(self._leaf(leaf, name), self._weights[name])

    def _leaf(self, leaf: Leaf, name: str) -> tantivy.Query:
        query, schema, field = tantivy.Query, self._schema.built, _text(name)
        if isinstance(leaf, Exact):
            return query.term_query(schema, field, leaf.term, "freq")
        if isinstance(leaf, Starts):
            terms = self._terms(leaf, name)
            parts = [query.term_query(schema, field, term, "freq") for term, _ in terms[:EXPANDED]]
            if len(terms) > EXPANDED:
                parts.append(_silent(query.regex_query(schema, field, _regex(leaf))))
            return _some(parts)
        if all(isinstance(item, Exact) for _, item in leaf.items):
            words: list[str | tuple[int, str]] = [(at, item.term) for at, item in leaf.items if isinstance(item, Exact)]
            return query.phrase_query(schema, field, words)
        return query.regex_phrase_query(schema, field, [(at, _regex(item)) for at, item in leaf.items])

    def _terms(self, leaf: Exact | Starts, name: str) -> list[tuple[str, int]]:
        """The terms of a field that a leaf stands for, with the documents each has; the most frequent first."""
        field = _text(name)
        terms = (leaf.term,) if isinstance(leaf, Exact) else leaf.stems
        found = [(term, n) for term in terms if (n := self._searcher.doc_freq(field, term))]
        if isinstance(leaf, Starts):
            found += self._searcher.terms_with_prefix(field, leaf.prefix)
        return sorted(found, key=lambda one: (-one[1], one[0]))


def _text(name: str) -> str:
    return f"text_{name}"


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bytes:
    held: Any = searcher.doc(address).get_first("held")
    return bytes(held)


def _facet(name: str, value: str) -> str:
    return f"{name}={value}"


def _some(queries: list[tantivy.Query]) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def _silent(query: tantivy.Query) -> tantivy.Query:
    """Matches the same and gives no score."""
    return tantivy.Query.const_score_query(query, 0.0)


def _regex(item: Exact | Starts) -> str:
    if isinstance(item, Exact):
        return _escaped(item.term)
    return "|".join([f"{_escaped(item.prefix)}.*", *map(_escaped, item.stems)])


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", text)  # any other escape is an error there
