"""Why a record was recalled: what each thing that speaks for it gave to its score."""

from __future__ import annotations

from msgspec import Struct

from clew.index import Gain
from clew.memory.records import MemoryRecord

SHOWN = 5
"""Words that are shown of those a record was found by."""


class Why(Struct, frozen=True, gc=False):
    """The parts of a score, and what it was multiplied by.

    `words` is how well its words match, where 1 is the best match there was: without `speaker` and `time`, which is
    what it got because the question names who said it or when. `terms` says which words, `vector` how near in meaning
    it is, `neighbours` and `session` what it has from records around it. `confidence` and `age` are factors.
    `reranked` is what a reranker gave it, which then decides the order.
    """

    words: float = 0.0
    terms: tuple[Gain, ...] = ()
    speaker: float = 0.0
    time: float = 0.0
    vector: float = 0.0
    neighbours: float = 0.0
    session: float = 0.0
    confidence: float = 1.0
    age: float = 1.0
    reranked: float | None = None

    @property
    def total(self) -> float:
        """The score."""
        parts = self.words + self.speaker + self.time + self.vector + self.neighbours + self.session
        return parts * self.confidence * self.age

    def __str__(self) -> str:
        ranked = sorted(self.terms, key=lambda gain: (-gain.score, gain.term))
        found = ", ".join(_shown(gain) for gain in ranked[:SHOWN])
        more = f", {len(ranked) - SHOWN} more" if len(ranked) > SHOWN else ""
        parts = [
            (self.words, f"words ({found}{more})" if found else "words"),
            (self.speaker, "the speaker asked for"),
            (self.time, "the time asked for"),
            (self.vector, "meaning"),
            (self.neighbours, "what was said around it"),
            (self.session, "its session"),
        ]
        told = " + ".join(f"{score:.2f} {name}" for score, name in parts if score > 0)
        for factor, name in ((self.confidence, "confidence"), (self.age, "age")):
            if factor != 1.0:
                told = f"({told}) × {factor:.2f} {name}"
        if self.reranked is not None:
            told += f"; reranked: {self.reranked:.2f}"
        return told


class Recalled(Struct, frozen=True, gc=False):
    """A record that was recalled. `str(why)` says why."""

    record: MemoryRecord
    score: float
    why: Why


def _shown(gain: Gain) -> str:
    """A word; in brackets if it stands only around the record, and not in its own text."""
    return gain.term if gain.counts.get("text") else f"[{gain.term}]"
