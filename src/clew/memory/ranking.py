"""What makes a record findable: what is indexed of it, and what its neighbours' scores say about it.

In a conversation the answer to a question often does not have the question's words: they stand in
the turn before, or the date does. So a record is indexed with its date and what was said just before
it, at a lower weight; it shares in the scores of its neighbours and its session; and a long record is
indexed in pieces, of which the best one counts. All of it is deterministic and needs no model. The figures were
chosen on half of the LoCoMo conversations; `bench/recall.py` shows what each is worth on the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple, TypeVar

DEPTH = 50
"""Pieces to take from the index for ten records or twenty: 200 found no more."""

CONTEXT_WEIGHT = 0.2
"""What a word of the context counts, where one of the record's own text counts 1."""

CONTEXT_RECORDS = 2
"""Records before one, of the same session, whose text is its context."""

SHARES = {1: 0.25, 2: 0.1}
"""The part of a neighbour's score that a record gets, by how far away in the session it is."""

SESSION_BEST, SESSION_SHARE = 3, 0.3
"""A record gets `SESSION_SHARE` of the mean of the `SESSION_BEST` best scores of its session: the answer
is most often in the session that speaks of the matter."""

PIECE = 600
"""Characters of a piece, about: the length at which whole messages and pieces were compared."""

_ENDS = (
    re.compile(r"\n\s*\n"),  # paragraphs, lines, sentences, words
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s|(?<=[。！？；])"),
    re.compile(r"\s"),
)

Id = TypeVar("Id", bound=Hashable)


class Piece(NamedTuple):
    """Part of a text, from `start` to `end` in characters."""

    start: int
    end: int


def context(previous: Sequence[str], about: Iterable[str] = ()) -> str:
    """What is indexed beside a record's own text: facts about it (its date, its place) and the records before it.

    `previous` are the texts before it in its session, oldest first; the last `CONTEXT_RECORDS` count.
    """
    return "\n".join(text for text in (*about, *previous[-CONTEXT_RECORDS:]) if text)


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


def best(scores: Mapping[tuple[Id, int], float]) -> dict[Id, float]:
    """The score of each record: that of its best piece. Keys are (record, number of the piece)."""
    found: dict[Id, float] = {}
    for (id, _), score in scores.items():
        found[id] = max(score, found.get(id, score))
    return found


def shared(
    scores: Mapping[Id, float],
    neighbours: Callable[[Id], Iterable[tuple[Id, int]]],
    session: Callable[[Id], Hashable | None],
) -> dict[Id, float]:
    """The scores of records, with what they share of those around them.

    `neighbours(id)` gives the records near one in its session, each with how far away it is (1 for the
    next one, before or after); one without a score of its own comes in by theirs. `session(id)` is the
    session a record is in, None when it is in none.
    """
    found = dict(scores)
    of: dict[Hashable, list[float]] = {}
    for id, score in scores.items():
        where = session(id)
        if where is not None:
            of.setdefault(where, []).append(score)
        for other, distance in neighbours(id):
            found[other] = found.get(other, 0.0) + score * SHARES.get(distance, 0.0)
    level = {where: sum(nlargest(SESSION_BEST, some)) / SESSION_BEST for where, some in of.items()}
    return {id: score + SESSION_SHARE * level.get(session(id), 0.0) for id, score in found.items() if score > 0}


def _cut(text: str, first: int, last: int) -> int:
    for end in _ENDS:
        places = [match.end() for match in end.finditer(text, first, last)]
        if places:
            return places[-1]
    return last
