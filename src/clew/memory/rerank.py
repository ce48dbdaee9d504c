"""Rerankers: what looks at the question and each of the best records together, and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from clew.text import pattern, terms, words
from clew.text.patterns import Exact, Starts, leaves


class Reranker(Protocol):
    """Gives each text a score, higher for a better answer to the question. A cross-encoder, for instance."""

    def __call__(self, question: str, texts: Sequence[str]) -> Sequence[float]: ...


class Lexical:
    """The reference: how much of the question a text has, and how close together. Deterministic, without a model.

    The score is the share of the question's words that the text has, and up to half as much again for pairs of words
    that follow each other in the question and stand at most `within` words apart in the text.
    """

    def __init__(self, within: int = 3) -> None:
        self.within = within

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        wanted = [_term(leaf) for _, leaf in leaves(pattern(words(question))) if isinstance(leaf, Exact | Starts)]
        return [self._score(wanted, text) for text in texts]

    def _score(self, wanted: Sequence[str], text: str) -> float:
        places: dict[str, list[int]] = {}
        for place, term in enumerate(terms(text).stream):
            places.setdefault(term, []).append(place)
        if not wanted:
            return 0.0
        held = sum(term in places for term in wanted) / len(wanted)
        close = [
            any(abs(a - b) <= self.within for a in places.get(one, ()) for b in places.get(other, ()))
            for one, other in pairwise(wanted)
        ]
        return held * (1 + 0.5 * sum(close) / len(close)) if close else held


def _term(leaf: Exact | Starts) -> str:
    return leaf.term if isinstance(leaf, Exact) else leaf.prefix
