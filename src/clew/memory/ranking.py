"""What makes a record findable: what is indexed of it, and how what speaks for it adds up.

In a conversation the answer to a question often does not have the question's words: they stand in
the turn before, or the date does. So a record is indexed with its date and what was said just before
it, at a lower weight; it shares in the scores of its neighbours and its session; and a long record is
indexed in pieces, of which the best one counts. All of it is deterministic and needs no model. The figures were
chosen on half of the LoCoMo conversations; `bench/recall.py` shows what each is worth on the rest, and
`bench/recall_choose.py` how little it matters on which half they are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp, log
from typing import NamedTuple, TypeVar

DEPTH = 60
"""Pieces to take from the index of words for ten records or fewer: 100 and 200 found no more of the evidence."""

NEAREST = 100
"""Pieces to take from the index of vectors for ten records. The farthest record of them counts 0, the nearest 1."""

CONTEXT_WEIGHT = 0.2
"""What a word of the context counts, where one of the record's own text counts 1."""

CONTEXT_RECORDS = 2
"""Records before one, of the same session, whose text is its context."""

VECTOR_WEIGHT = 0.3
"""What the nearest vector counts, where the best match of words counts 1. Small embedders are weak alone: at equal
weight they lose what words find."""

SHARES = {1: 0.2, 2: 0.1}
"""The part of a neighbour's score that a record gets, by how far away in the session it is."""

ANSWER_SHARE = 0.5
"""The part that the record after a question gets of the question's score: it is most often the answer."""

SESSION_BEST, SESSION_SHARE = 3, 0.4
"""A record gets `SESSION_SHARE` of the mean of the `SESSION_BEST` best scores of its session: the answer
is most often in the session that speaks of the matter."""

SHARING = 30
"""Records, the best ones, that share their score with their neighbours: more of them made no difference."""

INCOMING = 10
"""Records, the best ones, whose neighbours come in although nothing else speaks for them."""

SPEAKER_GAIN = 0.5
"""What the words of a record count more when the question names who said it, and names no one else who spoke."""

TIME_GAIN = 0.5
"""What they count more when the record is of a time that the question names."""

DOUBT = 0.5
"""What a record of no confidence at all counts."""

PIECE = 600
"""Characters of a piece, about: the length at which whole messages and pieces were compared."""

SHORT = 300
"""Characters up to which a record needs those around it to be understood. A longer one gets less from its neighbours,
in proportion, and its pieces are embedded alone."""

_ENDS = (
    re.compile(r"\n\s*\n"),  # paragraphs, lines, sentences, words
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s|(?<=[。！？；])"),
    re.compile(r"\s"),
)
_QUESTION = re.compile("[?？]")

Id = TypeVar("Id", bound=Hashable)


class Piece(NamedTuple):
    """Part of a text, from `start` to `end` in characters."""

    start: int
    end: int


class Place(NamedTuple):
    """What sharing looks at: the session of a record ("" for none), its characters, whether it asks something."""

    session: str
    length: int
    asks: bool = False

    @classmethod
    def of(cls, text: str, session: str = "") -> Place:
        """The place of a text."""
        return cls(session, len(text), len(text) <= SHORT and _QUESTION.search(text) is not None)


class Share(NamedTuple):
    """What a record gets from those around it."""

    neighbours: float = 0.0
    session: float = 0.0


def context(previous: Sequence[str], about: Iterable[str] = ()) -> str:
    """What is indexed beside a record's own text: facts about it (its date, its place) and the records before it.

    `previous` are the texts before it in its session, oldest first; the last `CONTEXT_RECORDS` count.
    """
    return "\n".join(text for text in (*about, *previous[-CONTEXT_RECORDS:]) if text)


def embedded(text: str, previous: Sequence[str] = ()) -> str:
    """What is embedded of a piece: a short one after the text before it, a longer one alone."""
    return f"{previous[-1]}\n{text}" if previous and len(text) <= SHORT else text


def pieces(text: str, size: int = PIECE) -> list[Piece]:
    """Cuts a text into pieces of at most `size` characters and at least half of it, but for the last.

    Cuts after a paragraph if one ends in the second half of a piece, else after a line, a sentence, a
    word, else anywhere. The pieces together are the text.
    """
    found: list[Piece] = []
    start = 0
    while len(text) - start > size:
        end = _cut(text, start + size // 2, start + size)
        found.append(Piece(start, end))
        start = end
    found.append(Piece(start, len(text)))
    return found


def spread(scores: Mapping[Id, float]) -> dict[Id, float]:
    """Scores from 0 (the worst of them) to 1 (the best); 1 when all are equal."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {id: (score - low) / (high - low) if high > low else 1.0 for id, score in scores.items()}


def shares(
    scores: Mapping[Id, float],
    neighbours: Mapping[Id, Iterable[tuple[Id, int]]],
    place: Callable[[Id], Place],
) -> dict[Id, Share]:
    """What records get of the scores of those around them.

    `neighbours` gives the records near each of the `SHARING` best in its session, with how far behind it they are
    (negative: before). One without a score of its own comes in by a neighbour among the `INCOMING` best.
    """
    ranked = nlargest(INCOMING, enumerate(scores), key=lambda one: (scores[one[1]], -one[0]))
    leading = {id for _, id in ranked}
    near: dict[Id, float] = dict.fromkeys(scores, 0.0)
    for id, score in scores.items():
        for other, distance in neighbours.get(id, ()):
            if other in scores or id in leading:
                part = ANSWER_SHARE if distance == 1 and place(id).asks else SHARES.get(abs(distance), 0.0)
                near[other] = near.get(other, 0.0) + score * part * min(1.0, SHORT / max(place(other).length, 1))
    of: dict[str, list[float]] = {}
    for id, score in scores.items():
        of.setdefault(place(id).session, []).append(score)
    level = {name: SESSION_SHARE * sum(nlargest(SESSION_BEST, some)) / SESSION_BEST for name, some in of.items()}
    level[""] = 0.0
    return {id: Share(part, level.get(place(id).session, 0.0)) for id, part in near.items()}


def decay(age: float, half_life: float) -> float:
    """The factor of a score after an age: one half after a half-life, a quarter after two. Both in the same unit; 1
    for what is yet to come and for a half-life of 0."""
    return exp(-log(2) / half_life * max(age, 0.0)) if half_life > 0 else 1.0


def overlap(one: Collection[str], other: Collection[str]) -> float:
    """How alike two sets of terms are (Jaccard): what they share of all they have. Without any term, 0."""
    if not one or not other:
        return 0.0
    both = len(set(one) & set(other))
    return both / (len(set(one)) + len(set(other)) - both)


def diverse(scores: Mapping[Id, float], alike: Callable[[Id, Id], float], balance: float, k: int) -> list[Id]:
    """The `k` best of records in an order in which each next one is good and unlike those before it (maximal marginal
    relevance: Carbonell and Goldstein, 1998).

    `balance` is what the score counts against the likeness, from 0 to 1 (scores alone). Of equals the one with the
    higher score comes first, then the one given first.
    """
    balance = min(max(balance, 0.0), 1.0)
    left = sorted(scores, key=lambda id: -scores[id])
    if balance == 1:
        return left[:k]
    good = spread(scores)
    worst: dict[Id, float] = dict.fromkeys(left, 0.0)
    chosen: list[Id] = []
    while left and len(chosen) < k:
        gain = {id: balance * good[id] - (1 - balance) * worst[id] for id in left}
        first = max(left, key=lambda id: gain[id])  # of equals the first, which has the higher score
        left.remove(first)
        chosen.append(first)
        for id in left:
            worst[id] = max(worst[id], alike(id, first))
    return chosen


def _cut(text: str, first: int, last: int) -> int:
    for end in _ENDS:
        places = [match.end() for match in end.finditer(text, first, last)]
        if places:
            return places[-1]
    return last
