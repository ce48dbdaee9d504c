"""BM25 over fields (BM25F): a word counts by how rare it is, how often the fields have it, how long they are.

S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009): the
occurrences in the fields are weighted and added up first and saturate together, so that a word in text
and context does not count twice. On LoCoMo this finds one and a half points more of the evidence in ten
hits than adding up a score for each field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import log

from msgspec import Struct

from clew.index.rows import Gain
from clew.text.patterns import Exact, Leaf, Starts, count
from clew.text.tokenise import Terms

K1 = 0.9
"""How soon more occurrences stop to matter. For short texts, less than the usual 1.2."""
B = 0.4
"""How much of a text's length counts against it: for short texts, less than the usual 0.75."""


class Document:
    """A piece as it is scored: its terms by field."""

    def __init__(
        self, id: str, piece: int, position: int, fields: Mapping[str, Terms], facets: Mapping[str, str]
    ) -> None:
        self.id = id
        self.piece = piece
        self.position = position
        self.fields = fields
        self.facets = facets

    @cached_property
    def counts(self) -> dict[str, Counter[str]]:
        """How often each field has each term."""
        return {name: Counter((*terms.stream, *terms.extra)) for name, terms in self.fields.items()}

    @property
    def terms(self) -> set[str]:
        """The terms of all fields."""
        return {term for counts in self.counts.values() for term in counts}

    def length(self, field: str) -> int:
        """Words of a field."""
        return len(self.fields[field].stream)

    def count(self, leaf: Leaf, field: str) -> int:
        """How often a field has a leaf."""
        if isinstance(leaf, Exact):
            return self.counts[field][leaf.term]
        if isinstance(leaf, Starts):
            counts = self.counts[field].items()
            return sum(n for term, n in counts if term.startswith(leaf.prefix) or term in leaf.stems)
        return count(leaf, self.fields[field])

    def holds(self, leaf: Leaf, field: str) -> bool:
        """Whether a field has a leaf, or with "" any field."""
        return any(self.count(leaf, name) for name in ([field] if field else self.fields) if name in self.fields)


class Totals(Struct, frozen=True):
    """What is known of all documents: how many there are, and the words they have by field."""

    documents: int
    words: Mapping[str, int]

    def __add__(self, other: Totals) -> Totals:
        words = {name: self.words.get(name, 0) + other.words.get(name, 0) for name in {**self.words, **other.words}}
        return Totals(self.documents + other.documents, words)

    def __sub__(self, other: Totals) -> Totals:
        return self + Totals(-other.documents, {name: -n for name, n in other.words.items()})


def totals(documents: Sequence[Document], fields: Sequence[str]) -> Totals:
    """The totals of some documents."""
    return Totals(len(documents), {name: sum(d.length(name) for d in documents) for name in fields})


def rarity(documents: int, holding: int) -> float:
    """What a term is worth that `holding` of `documents` have."""
    return log(1 + max(documents - holding + 0.5, 0.5) / (holding + 0.5))


class Wanted(Struct, frozen=True):
    """A leaf of the query, confined to a field or not (""), and its rarity."""

    leaf: Leaf
    field: str
    rarity: float


class Scoring:
    """Scores documents for one query: `wanted`, with what a word of each field counts, among all documents."""

    def __init__(self, wanted: Sequence[Wanted], weights: Mapping[str, float], all: Totals) -> None:
        self._wanted = wanted
        self._weights = weights
        self._per_word = {name: B * all.documents / max(all.words.get(name, 0), 1) for name in weights}
        plain = [one for one in wanted if not one.field and isinstance(one.leaf, Exact)]
        self._words = {one.leaf.term: one.rarity for one in plain if isinstance(one.leaf, Exact)}
        self._asked = frozenset(self._words)
        self._others = [one for one in wanted if one not in plain]

    def score(self, document: Document) -> float:
        """A document's score."""
        frequencies: dict[str, float] = {}  # most queries are words alone, and this is done for hundreds of documents
        for name, factor in self._factors(document).items():
            stream, extra = document.fields[name]
            held = self._asked.intersection(stream)
            if extra:
                held |= self._asked.intersection(extra)
            for term in held:
                n = stream.count(term) + extra.count(term)
                frequencies[term] = frequencies.get(term, 0.0) + factor * n
        total = 0.0
        for term, worth in self._words.items():  # in the order of the query: sums are the same in each process
            if frequency := frequencies.get(term):
                total += worth * frequency * (K1 + 1) / (frequency + K1)
        return total + sum(gain.score for gain in self._gains(document, self._others)) if self._others else total

    def gains(self, document: Document) -> tuple[Gain, ...]:
        """What each leaf gives to a document's score; those it does not have are left out."""
        return tuple(self._gains(document, self._wanted))

    def _gains(self, document: Document, wanted: Sequence[Wanted]) -> Iterator[Gain]:
        factors = self._factors(document) if wanted else {}
        for one in wanted:
            names = [one.field] if one.field else list(self._weights)
            counts = {name: n for name in names if (n := document.count(one.leaf, name))}
            if counts:
                frequency = sum(factors[name] * n for name, n in counts.items())
                yield Gain(label(one.leaf), one.rarity * frequency * (K1 + 1) / (frequency + K1), counts)

    def _factors(self, document: Document) -> dict[str, float]:
        """What one word of each field counts in a document, by the field's weight and length."""
        return {
            name: weight / (1 - B + self._per_word[name] * document.length(name))
            for name, weight in self._weights.items()
        }


def label(leaf: Leaf) -> str:
    """How a leaf is shown."""
    if isinstance(leaf, Exact):
        return leaf.term
    if isinstance(leaf, Starts):
        return f"{leaf.prefix}*"
    return f'"{" ".join(label(item) for _, item in leaf.items)}"'
