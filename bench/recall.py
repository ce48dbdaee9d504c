"""How much of the evidence for a question is found: keywords only, on public data.

The data sets are not part of Clew: `$CLEW_DATA` (or `../shared/data`) holds `locomo/*.json`,
`memdaily/*.jsonl`, `memorybank/cn.jsonl` and `beam/*.json`. Prints Markdown. One fixed configuration
for all sets, that of `clew.memory.ranking`; it was chosen on every other LoCoMo conversation (`chosen`),
and the rest (`held out`) had no part in it. `--parts` leaves out one part of the recipe after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

from clew.index import FullText, Row
from clew.memory import ranking
from clew.text import words
from table import table

DATA = Path(os.environ.get("CLEW_DATA") or Path(__file__).parents[2] / "shared" / "data")
NOISE = 300
"""Messages of other people among which a MemDaily trajectory is hidden."""

LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


class Record(NamedTuple):
    """Something to find: its text, what is known about it, and the session it is in."""

    id: str
    text: str
    about: tuple[str, ...]
    session: str


class Question(NamedTuple):
    text: str
    evidence: frozenset[str]
    kind: str


class Case(NamedTuple):
    """Questions about one body of records."""

    name: str
    records: list[Record]
    questions: list[Question]


class Recipe(NamedTuple):
    """Which parts of the recipe are in use."""

    context: bool = True
    about: bool = True
    shares: bool = True
    pieces: bool = True


class Log:
    """Records as an index reads them."""

    def __init__(self, records: Sequence[Record], recipe: Recipe) -> None:
        self._rows = list(_rows(records, recipe))

    def rows(self, namespace: str, after: int) -> Sequence[Row]:
        return self._rows[after:]


def _rows(records: Sequence[Record], recipe: Recipe) -> Iterator[Row]:
    said: dict[str, list[str]] = defaultdict(list)
    for n, record in enumerate(records):
        cuts = ranking.pieces(record.text) if recipe.pieces else [ranking.Piece(0, len(record.text))]
        pieces = []
        for start, end in cuts:
            text = record.text[start:end]
            before = said[record.session] if recipe.context else []
            pieces.append({"text": text, "context": ranking.context(before, record.about if recipe.about else ())})
            said[record.session].append(text)
        yield Row(n + 1, record.id, tuple(pieces))


def ranked(case: Case, recipe: Recipe, times: list[float]) -> Iterator[tuple[Question, list[str]]]:
    """Each question with the records that are found for it, best first."""
    near: dict[str, list[tuple[str, int]]] = {}
    session = {record.id: record.session for record in case.records}
    for name in set(session.values()):
        line = [record.id for record in case.records if record.session == name]
        for at, id in enumerate(line):
            near[id] = [(line[i], abs(i - at)) for i in range(max(at - 2, 0), min(at + 3, len(line))) if i != at]
    with tempfile.TemporaryDirectory() as folder:
        fields = {"text": 1.0, "context": ranking.CONTEXT_WEIGHT}
        index = FullText(Path(folder), Log(case.records, recipe), fields)
        index.catch_up()
        order = {record.id: n for n, record in enumerate(case.records)}
        for question in case.questions:
            start = time.process_time()
            hits = index.search(words(question.text), ranking.DEPTH)
            scores = ranking.best({(hit.id, hit.piece): hit.score for hit in hits})
            if recipe.shares:
                scores = ranking.shared(scores, near.__getitem__, session.__getitem__)
            found = sorted(scores, key=lambda id: (-scores[id], order[id]))
            times.append(time.process_time() - start)
            yield question, found


class Figures(NamedTuple):
    questions: int
    r5: float
    r10: float
    r20: float
    ndcg: float


def measured(cases: Sequence[Case], recipe: Recipe, times: list[float]) -> dict[str, Figures]:
    """The figures of each kind of question, and of all ("")."""
    held: dict[str, list[Figures]] = defaultdict(list)
    for case in cases:
        for question, found in ranked(case, recipe, times):
            gold = question.evidence
            recall = [len(gold.intersection(found[:k])) / len(gold) for k in (5, 10, 20)]
            ideal = sum(1 / log2(rank + 2) for rank in range(min(10, len(gold))))
            gain = sum(1 / log2(rank + 2) for rank, id in enumerate(found[:10]) if id in gold)
            for kind in ("", question.kind):
                held[kind].append(Figures(1, *recall, gain / ideal))
    return {
        kind: Figures(len(each), *(statistics.mean(f[i] for f in each) for i in range(1, 5)))
        for kind, each in sorted(held.items())
    }


# -- the data


def locomo() -> list[Case]:
    """Turns of conversations between two people; a record is one turn."""
    cases = []
    for path in sorted((DATA / "locomo").glob("conv-??.json")):
        sample = json.loads(path.read_text())
        told = sample["conversation"]
        records = []
        for name in sorted((k for k in told if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
            date = told[f"{name}_date_time"]
            for turn in told[name]:
                picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                text = f"{turn['speaker']}: {turn['text']}{picture}"
                records.append(Record(turn["dia_id"], text, (date,), name))
        ids = {record.id for record in records}
        questions = [
            Question(q["question"], frozenset(ids.intersection(q["evidence_norm"])), LOCOMO[q["category"]])
            for q in sample["qa"]
            if ids.intersection(q["evidence_norm"])
        ]
        cases.append(Case(path.stem, records, questions))
    return cases


def memdaily() -> list[Case]:
    """Chinese: a person's notes of some days, hidden among messages of other people's chats (MemoryBank)."""
    chats = [
        (f"{user['user']} {day['date']}", day["date"], text)
        for user in _lines(DATA / "memorybank" / "cn.jsonl")
        for day in user["days"]
        for turn in day["turns"]
        for text in turn.values()
    ]
    cases = []
    for path in sorted((DATA / "memdaily").glob("*.jsonl")):
        for told in _lines(path):
            records = [Record(str(m["mid"]), m["text"], (m["time"], m["place"]), "own") for m in told["messages"]]
            noise = random.Random(told["id"]).sample(chats, NOISE)
            records += [Record(f"noise{n}", text, (date,), of) for n, (of, date, text) in enumerate(noise)]
            questions = [
                Question(q["question"], frozenset(map(str, q["target_step_id"])), told["type"])
                for q in told["questions"]
                if q["target_step_id"]
            ]
            cases.append(Case(told["id"], records, questions))
    return cases


def beam() -> list[Case]:
    """Long chats with an assistant, messages of some thousand characters; a record is one message."""
    cases = []
    for path in sorted((DATA / "beam").glob("*.json")):
        told = json.loads(path.read_text())
        records = []
        date = ""
        for turn in told["turns"]:
            date = turn["time_anchor"] or date
            records.append(Record(str(turn["id"]), turn["content"], (date,), str(turn["batch"])))
        ids = {record.id for record in records}
        questions = [
            Question(q["question"], gold, kind)
            for kind, some in told["probing_questions"].items()
            for q in some
            if (gold := frozenset(ids.intersection(map(str, _flat(q.get("source_chat_ids") or [])))))
        ]
        cases.append(Case(path.stem, records, questions))
    return cases


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _flat(ids: Any) -> Iterator[Any]:
    parts = ids.values() if isinstance(ids, Mapping) else ids if isinstance(ids, list) else None
    if parts is None:
        yield ids
    else:
        for part in parts:
            yield from _flat(part)


# -- the report


PARTS = {
    "all of it": Recipe(),
    "without the scores around": Recipe(shares=False),
    "without date and place": Recipe(about=False),
    "without what was said before": Recipe(context=False),
    "without pieces": Recipe(pieces=False),
    "bare text": Recipe(False, False, False, False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets", nargs="+", choices=("locomo", "memdaily", "beam"), default=["locomo", "memdaily", "beam"]
    )
    parser.add_argument("--parts", action="store_true", help="measure the parts of the recipe, too")
    options = parser.parse_args()
    missing = [name for name in options.sets if not (DATA / name).is_dir()]
    if missing:
        parser.exit(0, f"no data for {', '.join(missing)} in {DATA}: set CLEW_DATA\n")
    for name in options.sets:
        cases = {"locomo": locomo, "memdaily": memdaily, "beam": beam}[name]()
        split = {"chosen": cases[0::2], "held out": cases[1::2]} if name == "locomo" else {"held out": cases}
        times: list[float] = []
        rows = []
        for half, some in split.items():
            for recipe, parts in PARTS.items() if options.parts else (("all of it", Recipe()),):
                for kind, f in measured(some, parts, times).items():
                    if not kind or recipe == "all of it":
                        named = f"{half}: {kind or recipe}"
                        rows.append((named, f.questions, *(f"{figure:.3f}" for figure in f[1:])))
        print(f"## {name}\n\n{table(('', 'questions', 'recall@5', 'recall@10', 'recall@20', 'nDCG@10'), rows)}\n")
        print(f"A question took {statistics.median(times) * 1e3:.1f} ms of processor time (median).\n", flush=True)


if __name__ == "__main__":
    main()
