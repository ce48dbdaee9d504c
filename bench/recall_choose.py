"""How the figures of `clew.memory.ranking` were chosen, and what such a choice is worth on data it has not seen.

The LoCoMo conversations are halved. On each half the figures are chosen anew, from a plain start: one after the other
takes the value with which most evidence is found (the mean of recall@10 and @20, by words alone and with vectors), in
two rounds. What was chosen on one half is measured on the other: each question once, by figures that did not know it.
Beside it, the figures that ship. Prints Markdown; takes ten minutes.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from clew.index import Hit
from clew.memory import MemoryRecord, Recall, RecordLog, ranking
from clew.text import Query
from measure.table import table
from recall import MEMO, Case, K, locomo

VALUES: Mapping[str, Sequence[float]] = {
    "CONTEXT_WEIGHT": (0.1, 0.2, 0.3),
    "NEAR_1": (0.1, 0.2, 0.3),
    "NEAR_2": (0.0, 0.1, 0.2),
    "ANSWER_SHARE": (0.3, 0.5, 0.7),
    "SESSION_SHARE": (0.2, 0.4, 0.6),
    "SPEAKER_GAIN": (0.5, 1.0, 1.5),
    "TIME_GAIN": (0.25, 0.5, 1.0),
    "VECTOR_WEIGHT": (0.2, 0.3, 0.4),
}
"""What is tried; `NEAR_1` and `NEAR_2` are the shares of the next record and of the one after it."""

ROUNDS = 2
CUTS = (5, 10, 20)

Figures = tuple[float, ...]
Found = list[tuple[float, ...]]


class Log(RecordLog):
    """A log that remembers what it was asked, and whose time stands still."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, MemoryRecord | None] = {}
        self._near: dict[str, list[tuple[str, int]]] = {}

    def now(self) -> float:
        return self._ledger.newest()

    def held(self, uids: Collection[str], at: float | None = None) -> dict[str, MemoryRecord]:
        new = [uid for uid in uids if uid not in self._held]
        found = super().held(new, at) if new else {}
        self._held.update((uid, found.get(uid)) for uid in new)
        return {uid: record for uid in uids if (record := self._held[uid]) is not None}

    def around(self, uids: Collection[str], distance: int = 2) -> dict[str, list[tuple[str, int]]]:
        new = [uid for uid in uids if uid not in self._near]
        found = super().around(new, distance) if new else {}
        self._near.update((uid, found.get(uid, [])) for uid in new)
        return {uid: self._near[uid] for uid in uids}


class Remembering(Recall):
    """A recall that searches once for each question; without its vectors if it is told so."""

    def __init__(self, log: RecordLog) -> None:
        super().__init__(log, MEMO)
        self.catch_up()
        self.words_alone = False
        self._hits: dict[tuple[Query, int], list[Hit]] = {}
        self._nearest: dict[tuple[str, int], list[tuple[str, float]]] = {}

    def found(self, query: Query, depth: int, kinds: Collection[str]) -> list[Hit]:
        key = query, depth
        return self._hits[key] if key in self._hits else self._hits.setdefault(key, super().found(query, depth, kinds))

    def near(self, text: str, depth: int) -> list[tuple[str, float]]:
        if self.words_alone:
            return []
        key = text, depth
        return self._nearest[key] if key in self._nearest else self._nearest.setdefault(key, super().near(text, depth))


class Conversation:
    """A conversation, and the indexes that were made of it."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._log = Log()
        self._log.add_many([record.made for record in case.records], again=True)
        self._recalls: dict[float, Remembering] = {}

    def found(self, words_alone: bool) -> Found:
        """The share of the evidence in the first hits, for each question."""
        weight = ranking.CONTEXT_WEIGHT
        recall = self._recalls.get(weight) or self._recalls.setdefault(weight, Remembering(self._log))
        recall.words_alone = words_alone
        answers = ([hit.record.id for hit in recall.recall(q.text, K)] for q in self._case.questions)
        return [
            tuple(len(q.evidence.intersection(ids[:k])) / len(q.evidence) for k in CUTS)
            for q, ids in zip(self._case.questions, answers, strict=True)
        ]


class Measured(NamedTuple):
    words: Found
    both: Found

    @property
    def worth(self) -> float:
        """What is to be as high as possible."""
        return statistics.mean(statistics.mean(one[1:]) for one in (*self.words, *self.both))


class Half:
    """Half of the conversations."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._told = [Conversation(case) for case in cases]
        self._known: dict[tuple[float, ...], Measured] = {}

    def measured(self, figures: Mapping[str, float]) -> Measured:
        key = tuple(figures.values())
        if key not in self._known:
            vars(ranking).update(_constants(figures))
            self._known[key] = Measured(
                *([one for told in self._told for one in told.found(alone)] for alone in (True, False))
            )
        return self._known[key]

    def chosen(self) -> dict[str, float]:
        """The best figures for this half; of equals the smaller value."""
        figures = {name: values[0] for name, values in VALUES.items()}
        for _ in range(ROUNDS):
            for name, values in VALUES.items():
                figures[name] = max(values, key=partial(self._worth, figures, name))
        return figures

    def _worth(self, figures: Mapping[str, float], name: str, value: float) -> float:
        return self.measured({**figures, name: value}).worth


def shipped() -> dict[str, float]:
    """The figures as they are in `ranking`."""
    near = {"NEAR_1": ranking.SHARES[1], "NEAR_2": ranking.SHARES[2]}
    return {name: near[name] if name in near else getattr(ranking, name) for name in VALUES}


def _constants(figures: Mapping[str, float]) -> dict[str, Any]:
    plain = {name: value for name, value in figures.items() if not name.startswith("NEAR_")}
    return {**plain, "SHARES": {1: figures["NEAR_1"], 2: figures["NEAR_2"]}}


def main() -> None:
    cases, fixed = locomo(), shipped()
    halves = Half(cases[0::2]), Half(cases[1::2])
    names = [" ".join(case.name.removeprefix("conv-") for case in cases[n::2]) for n in (0, 1)]
    chosen = [half.chosen() for half in halves]
    print(table(("", *VALUES), [(f"chosen on {names[n]}", *chosen[n].values()) for n in (0, 1)]))
    print(table(("", *VALUES), [("shipped", *fixed.values())]), "\n")
    rows = []
    for by, field in (("words alone", 0), ("words and vectors", 1)):
        unseen = [halves[1 - n].measured(chosen[n])[field] for n in (0, 1)]
        rows += [(f"chosen on {names[n]}, measured on {names[1 - n]}", by, *_means(unseen[n])) for n in (0, 1)]
        rows.append(("each half by the choice of the other", by, *_means([*chain(*unseen)])))
        rows.append(("the figures that ship", by, *_means([*chain(*(half.measured(fixed)[field] for half in halves))])))
    print(table(("", "by", "questions", *(f"recall@{k}" for k in CUTS)), rows))
    MEMO.keep()


def _means(found: Found) -> tuple[object, ...]:
    return (len(found), *(f"{statistics.mean(one[n] for one in found):.3f}" for n in range(len(CUTS))))


if __name__ == "__main__":
    main()
