"""How much of the evidence for a question is found, on public data, beside what one would use instead.

The data sets are not part of Clew: `$CLEW_DATA` (or `../shared/data`) holds `locomo/*.json`,
`memdaily/*.jsonl`, `memorybank/cn.jsonl` and `beam/*.json`. Prints Markdown. One fixed configuration
for all sets, that of `clew.memory.ranking`; it was chosen on every other conversation (`chosen`), and
the rest (`held out`) had no part in it. All systems that use vectors use the same ones.
`--parts` leaves out one part of the recipe after the other. The peers get environments of their own.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clew.index import FullText, Row
from clew.memory import MemoryRecord, RecordLog, ranking
from clew.memory.embedders import Multilingual
from clew.memory.findable import spoken
from clew.memory.recall import Recall
from clew.text import words
from measure.peers import measured
from measure.table import table

DATA = Path(os.environ.get("CLEW_DATA") or Path(__file__).parents[2] / "shared" / "data")
NOISE = 300
"""Messages of other people among which a MemDaily trajectory is hidden."""
TRAJECTORIES = 20
"""MemDaily trajectories of each type."""
K = 20

LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


class Record(NamedTuple):
    """Something to find: who said what, when, what else is known about it, and the session it is in."""

    id: str
    speaker: str
    text: str
    at: float
    about: tuple[str, ...]
    session: str

    @property
    def made(self) -> MemoryRecord:
        metadata = {"session": self.session, "place": " ".join(self.about)}
        return MemoryRecord(
            "user",
            self.text,
            id=self.id,
            kind="message",
            speaker=self.speaker,
            metadata=metadata,
            valid_from=self.at,
        )


class Question(NamedTuple):
    text: str
    evidence: frozenset[str]
    kind: str


class Case(NamedTuple):
    """Questions about one body of records."""

    name: str
    records: list[Record]
    questions: list[Question]


System = Callable[[Case], Iterator[list[str]]]
"""Gives, for each question of a case, the records found, best first."""


class Memo:
    """An embedder that embeds each text once, also from run to run: the vectors are kept in a temporary file."""

    name, dim = Multilingual.name, Multilingual.dim

    def __init__(self) -> None:
        self._base = Multilingual()
        self._file = Path(tempfile.gettempdir()) / f"clew-bench-{self.name}.npz"
        self._known: dict[str, Any] = {}
        if self._file.exists():
            with np.load(self._file, allow_pickle=True) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> list[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 64):
            part = new[start : start + 64]
            self._known.update(zip(part, self._base.embed(part), strict=True))
        return [self._known[text] for text in texts]

    def query(self, text: str) -> Any:
        return self.embed([text])[0]

    def keep(self) -> None:
        """Keeps the vectors for the next run."""
        np.savez(self._file, texts=np.array([*self._known], object), vectors=np.array([*self._known.values()]))


MEMO = Memo()


# -- the systems


def clew(embedder: Memo | None) -> System:
    """Clew's recall as anyone would use it."""

    def found(case: Case) -> Iterator[list[str]]:
        with RecordLog() as log:
            log.add_many([record.made for record in case.records], again=True)
            recall = Recall(log, embedder)
            recall.catch_up()
            for question in case.questions:
                yield [hit.record.id for hit in recall.recall(question.text, K)]

    return found


class Bare:
    """The records as they are."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._rows = [Row(n, one.id, ({"text": spoken(one.made)},)) for n, one in enumerate(records, 1)]

    def rows(self, namespace: str, after: int) -> Sequence[Row]:
        return self._rows[after:]


def bm25(case: Case) -> Iterator[list[str]]:
    """BM25 of the bare texts, with Clew's tokeniser and its k1 and b."""
    with tempfile.TemporaryDirectory() as folder:
        index = FullText(Path(folder), Bare(case.records), {"text": 1.0})
        index.catch_up()
        for question in case.questions:
            yield [hit.id for hit in index.search(words(question.text), K)]


def vectors(case: Case) -> Iterator[list[str]]:
    """Exact search by the vectors of the bare texts."""
    held = np.array(MEMO.embed([spoken(record.made) for record in case.records]))
    for question in case.questions:
        order = np.argsort(-(held @ MEMO.query(question.text)), kind="stable")[:K]
        yield [case.records[n].id for n in order]


CHROMA = """
def main(path, k):
    import chromadb
    cases = json.load(open(path))
    client = chromadb.EphemeralClient()
    found = []
    for n, case in enumerate(cases):
        held = client.create_collection(f"case{n}", metadata={"hnsw:space": "cosine"}, embedding_function=None)
        for at in range(0, len(case["ids"]), 1000):
            part = slice(at, at + 1000)
            held.add(ids=case["ids"][part], embeddings=case["vectors"][part], documents=case["texts"][part])
        found.append([held.query(query_embeddings=[q], n_results=k)["ids"][0] for q in case["queries"]])
    return found
"""
LANGGRAPH = """
def main(path, k):
    from langgraph.store.memory import InMemoryStore
    cases = json.load(open(path))
    found = []
    for case in cases:
        known = dict(zip(case["texts"], case["vectors"]))
        known.update(zip(case["questions"], case["queries"]))
        embed = lambda texts: [known[text] for text in texts]
        store = InMemoryStore(index={"dims": len(case["queries"][0]), "embed": embed, "fields": ["text"]})
        for id, text in zip(case["ids"], case["texts"]):
            store.put(("m",), id, {"text": text})
        found.append([[one.key for one in store.search(("m",), query=q, limit=k)] for q in case["questions"]])
    return found
"""
PEERS = {"Chroma": ("chromadb", CHROMA), "LangGraph InMemoryStore": ("langgraph", LANGGRAPH)}


def peer(package: str, snippet: str, cases: Sequence[Case]) -> System | None:
    """Another library on the same texts and vectors; None when it cannot be had."""
    given = []
    for case in cases:
        texts = [spoken(record.made) for record in case.records]
        questions = [question.text for question in case.questions]
        of = [[float(x) for x in vector] for vector in MEMO.embed([*texts, *questions])]
        ids = [record.id for record in case.records]
        vectors, queries = of[: len(texts)], of[len(texts) :]
        given.append({"ids": ids, "texts": texts, "vectors": vectors, "questions": questions, "queries": queries})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(given, file)
        file.flush()
        found = measured(package, f"import json\n{snippet}", path=file.name, k=K)
    if found is None:
        return None
    answers = {case.name: some for case, some in zip(cases, found, strict=True)}
    return lambda case: iter(answers[case.name])


# -- the figures


class Figures(NamedTuple):
    questions: int
    r5: float
    r10: float
    r20: float
    ndcg: float


def asked(cases: Sequence[Case], system: System) -> tuple[list[list[list[str]]], float]:
    """What a system finds for each question of each case, and the median of the milliseconds of a question."""
    found, times = [], []
    for case in cases:
        start = time.process_time()
        found.append(list(system(case)))
        times.append((time.process_time() - start) / len(case.questions))
    return found, statistics.median(times) * 1e3


def figures(cases: Sequence[Case], found: Sequence[Sequence[Sequence[str]]]) -> dict[str, Figures]:
    """The figures of each kind of question, and of all ("")."""
    held: dict[str, list[Figures]] = defaultdict(list)
    for case, answers in zip(cases, found, strict=True):
        for question, ids in zip(case.questions, answers, strict=True):
            gold = question.evidence
            r5, r10, r20 = (len(gold.intersection(ids[:k])) / len(gold) for k in (5, 10, 20))
            ideal = sum(1 / log2(rank + 2) for rank in range(min(10, len(gold))))
            gain = sum(1 / log2(rank + 2) for rank, id in enumerate(ids[:10]) if id in gold)
            for kind in ("", question.kind):
                held[kind].append(Figures(1, r5, r10, r20, gain / ideal))
    return {
        kind: Figures(len(each), *(statistics.mean(column) for column in list(zip(*each, strict=True))[1:]))
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
            at = _seconds(told[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")
            for turn in told[name]:
                picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                records.append(Record(turn["dia_id"], turn["speaker"], f"{turn['text']}{picture}", at, (), name))
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
        (f"{user['user']} {day['date']}", _seconds(day["date"], "%Y-%m-%d"), text)
        for user in _lines(DATA / "memorybank" / "cn.jsonl")
        for day in user["days"]
        for turn in day["turns"]
        for text in turn.values()
    ]
    cases = []
    for path in sorted((DATA / "memdaily").glob("*.jsonl")):
        for told in _lines(path)[:TRAJECTORIES]:
            records = [
                Record(str(m["mid"]), "", m["text"], _seconds(m["time"][:11], "%Y年%m月%d日"), (m["place"],), "own")
                for m in told["messages"]
            ]
            noise = random.Random(told["id"]).sample(chats, NOISE)
            records += [Record(f"noise{n}", "", text, at, (), of) for n, (of, at, text) in enumerate(noise)]
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
            at = _seconds(date, "%B-%d-%Y")
            records.append(Record(str(turn["id"]), "", turn["content"], at, (), str(turn["batch"])))
        ids = {record.id for record in records}
        questions = [
            Question(q["question"], gold, kind)
            for kind, some in told["probing_questions"].items()
            for q in some
            if (gold := frozenset(ids.intersection(map(str, _flat(q.get("source_chat_ids") or [])))))
        ]
        cases.append(Case(path.stem, records, questions))
    return cases


def longmemeval() -> list[Case]:
    """One question among fifty sessions with an assistant; a record is one message."""
    cases = []
    for path in sorted((DATA / "longmemeval").glob("*.json")):
        told = json.loads(path.read_text())
        for one in told if isinstance(told, list) else [told]:
            records, gold = [], set()
            sessions = zip(one["haystack_dates"], one["haystack_sessions"], strict=True)
            for s, (date, session) in enumerate(sessions):
                for n, turn in enumerate(session):
                    at = _seconds(date, "%Y/%m/%d (%a) %H:%M")
                    records.append(Record(f"{s}:{n}", "", turn["content"], at, (), str(s)))
                    if turn.get("has_answer"):
                        gold.add(f"{s}:{n}")
            cases.append(
                Case(one["question_id"], records, [Question(one["question"], frozenset(gold), one["question_type"])])
            )
    return cases


SETS: dict[str, Callable[[], list[Case]]] = {
    "locomo": locomo,
    "memdaily": memdaily,
    "beam": beam,
    "longmemeval": longmemeval,
}


def _seconds(date: str, form: str) -> float:
    return datetime.strptime(date, form).replace(tzinfo=UTC).timestamp()


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

PARTS: dict[str, Mapping[str, Any]] = {
    "without the context": {"CONTEXT_WEIGHT": 0.0},
    "without neighbours": {"SHARES": {1: 0.0, 2: 0.0}, "ANSWER_SHARE": 0.0},
    "answers as other neighbours": {"ANSWER_SHARE": ranking.SHARES[1]},
    "without sessions": {"SESSION_SHARE": 0.0},
    "without the speaker asked for": {"SPEAKER_GAIN": 0.0},
    "without the time asked for": {"TIME_GAIN": 0.0},
    "long records share as short ones": {"SHORT": 100_000},
}


def without(changes: Mapping[str, Any], system: System) -> System:
    """A system with other figures in the recipe."""

    def found(case: Case) -> Iterator[list[str]]:
        before = {name: getattr(ranking, name) for name in changes}
        vars(ranking).update(changes)
        try:
            yield from system(case)
        finally:
            vars(ranking).update(before)

    return found


def systems(cases: Sequence[Case], options: argparse.Namespace) -> Iterator[tuple[str, System]]:
    yield "BM25", bm25
    yield "vectors", vectors
    for name, (package, snippet) in PEERS.items() if options.peers else ():
        found = peer(package, snippet, cases)
        if found:
            yield name, found
    yield "Clew, words alone", clew(None)
    yield "Clew", clew(MEMO)
    for name, changes in PARTS.items() if options.parts else ():
        yield f"Clew, words alone, {name}", without(changes, clew(None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--parts", action="store_true", help="measure the parts of the recipe, too")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave out other libraries")
    options = parser.parse_args()
    missing = [name for name in options.sets if not (DATA / name).is_dir()]
    if missing:
        parser.exit(0, f"no data for {', '.join(missing)} in {DATA}: set CLEW_DATA\n")
    for name in options.sets:
        cases = SETS[name]()
        halves = {"chosen": slice(0, None, 2), "held out": slice(1, None, 2)} if len(cases) > 1 else {}
        parts = {**halves, "all": slice(None)}
        print(f"## {name}\n")
        rows, kinds, took = [], [], []
        for named, system in systems(cases, options):
            answers, each = asked(cases, system)
            rows += [(f"{part}: {named}", *_row(figures(cases[of], answers[of])[""])) for part, of in parts.items()]
            kinds += [(f"{kind}: {named}", *_row(f)) for kind, f in figures(cases, answers).items() if kind]
            took.append((named, f"{each:.1f}"))
        head = ("questions", "recall@5", "recall@10", "recall@20", "nDCG@10")
        print(table(("", *head), sorted(rows, key=lambda row: list(parts).index(row[0].split(":")[0]))), "\n")
        print(table(("kind of question", *head), sorted(kinds, key=lambda row: row[0].split(":")[0])), "\n")
        print(table(("", "ms a question, loading included"), took), "\n", flush=True)
        MEMO.keep()


def _row(f: Figures) -> tuple[object, ...]:
    return (f.questions, *(f"{figure:.3f}" for figure in f[1:]))


if __name__ == "__main__":
    main()
