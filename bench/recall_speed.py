"""How long a recall takes, by the number of records: words alone, and with the vectors of an embedder.

Texts of 12 words of a Zipf vocabulary of 20,000, in sessions of 50. The questions are eight of the most frequent
words, which is the worst there is, and three rarer ones. The embedder gives random vectors in no time: that of a
question is not part of what is measured (8 ms with the offline one). Times are processor time, so that other
programs on the machine do not change them. Prints Markdown. `--sizes 1000000` takes half an hour, most of it for
writing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from clew.memory import MemoryRecord, Recall, RecordLog
from measure.table import table

VOCABULARY = 20_000
WORDS = 12
SESSION = 50
BULK = 5_000
ASKED = 40
DIM = 512


class Random:
    """Vectors that depend on the text alone. Those of questions are made beforehand."""

    name, dim = "random-512", DIM

    def __init__(self) -> None:
        self._asked: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> Any:
        seeds = (int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in texts)
        return np.array([np.random.default_rng(seed).standard_normal(DIM, np.float32) for seed in seeds])

    def query(self, text: str) -> Any:
        return self._asked[text]

    def prepare(self, questions: Sequence[str]) -> None:
        self._asked = dict(zip(questions, self.embed(questions), strict=True))


def vocabulary(rng: random.Random) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(VOCABULARY)]


def records(size: int, words: Sequence[str], rng: random.Random) -> Iterator[MemoryRecord]:
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    for n in range(size):
        text = " ".join(rng.choices(words, weights, k=WORDS))
        yield MemoryRecord("user", text, kind="message", id=f"r{n}", metadata={"session": f"s{n // SESSION}"})


def milliseconds(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1e3


def percentiles(recall: Recall, questions: Sequence[str]) -> tuple[str, str]:
    recall.recall(questions[0])
    times = sorted(milliseconds(lambda q=question: recall.recall(q)) for question in questions)
    return f"{statistics.median(times):.1f}", f"{times[int(len(times) * 0.95)]:.1f}"


def measured(size: int, folder: Path, vectors: bool) -> Iterator[tuple[object, ...]]:
    rng = random.Random(size)
    words = vocabulary(rng)
    with RecordLog(folder / "m.db") as log:
        batch: list[MemoryRecord] = []
        start = time.perf_counter()
        for record in records(size, words, rng):
            batch.append(record)
            if len(batch) == BULK:
                log.add_many(batch, again=True)
                batch.clear()
        log.add_many(batch, again=True)
        stored = size / (time.perf_counter() - start)
        frequent = [" ".join(rng.sample(words[:20], 8)) for _ in range(ASKED)]
        rare = [" ".join(rng.sample(words[200:5_000], 3)) for _ in range(ASKED)]
        made = Random()
        made.prepare([*frequent, *rare])
        for name, embedder in (("words", None), ("words and vectors", made)) if vectors else (("words", None),):
            recall = Recall(log, embedder)
            indexed = milliseconds(recall.catch_up) / 1e3
            for kind, questions in (("8 frequent words", frequent), ("3 rarer words", rare)):
                yield f"{size:,}", name, kind, *percentiles(recall, questions), f"{stored:,.0f}", f"{indexed:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--no-vectors", dest="vectors", action="store_false")
    options = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            rows += measured(size, Path(folder), options.vectors)
    head = ("records", "by", "question", "p50 ms", "p95 ms", "stored a second", "indexed in s")
    print(table(head, rows))


if __name__ == "__main__":
    main()
