"""Vectors: how near the index comes to comparing all, how fast, how large. Prints Markdown.

The vectors are real: texts of the public data sets (`$CLEW_DATA` or `../shared/data`: LoCoMo, MemoryBank, MemDaily,
BEAM in pieces) by the default embedder, kept in `build/` between runs; the queries are LoCoMo's questions. Sizes beyond
what the texts give are filled up with real vectors that are shifted a little at random: a harder case than random
vectors, as their neighbours are near. `--sizes 10000 100000 1000000` for all; a million takes ten minutes and 3 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clew.index import Row
from clew.index.arrays import packed, unpacked
from clew.index.vectors import VectorIndex
from clew.memory.embedded import Vectors
from clew.memory.embedders import Multilingual
from clew.memory.ranking import pieces
from clew.storage import Store, open_store
from clew.storage.vectors import StoredVectors
from measure.table import table

DATA = Path(os.environ.get("CLEW_DATA") or Path(__file__).parents[2] / "shared" / "data")
BUILD = Path(__file__).parent.parent / "build"
SHIFT = 0.5
"""Length of what is added to a real vector of length 1: the cosine to the one it came from is 0.9."""

QUERIES, K = 200, 10


def texts() -> Iterator[str]:
    """All that is said in the data sets, each text once by the caller."""
    for path in sorted((DATA / "locomo").glob("conv-??.json")):
        told = json.loads(path.read_text())["conversation"]
        for name in told:
            if re.fullmatch(r"session_\d+", name):
                yield from (f"{turn['speaker']}: {turn['text']}" for turn in told[name])
    for path in sorted((DATA / "memorybank").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield from (text for day in json.loads(line)["days"] for turn in day["turns"] for text in turn.values())
    for path in sorted((DATA / "memdaily").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield from (message["text"] for message in json.loads(line)["messages"])
    for path in sorted((DATA / "beam").glob("*.json")):
        for turn in json.loads(path.read_text())["turns"]:
            yield from (turn["content"][start:end] for start, end in pieces(turn["content"]))


def questions() -> list[str]:
    found = [
        one["question"]
        for path in sorted((DATA / "locomo").glob("conv-??.json"))
        for one in json.loads(path.read_text())["qa"]
    ]
    return found[:: max(1, len(found) // QUERIES)][:QUERIES]


class Numbered:
    """A log of so many rows; the text of a row is its number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        return (Row(n, f"r{n}", ({"text": str(n)},)) for n in range(after + 1, self.size + 1))


class Given:
    """An embedder for texts whose vectors are there already; it embeds nothing else."""

    name, dim = "given", 512

    def embed(self, texts: Sequence[str]) -> list[Any]:
        assert len(texts) == 1, "only the probe is embedded"
        return [np.ones(self.dim)]

    def query(self, text: str) -> Any:
        raise NotImplementedError


def real(store: Store) -> np.ndarray[Any, Any]:
    """The real vectors, embedded once."""
    vectors = Vectors(Multilingual(), store)
    some = list(dict.fromkeys(text for text in texts() if text.strip()))
    start, done = time.perf_counter(), 0

    def progress(count: int) -> None:
        nonlocal done
        done += count

    made = unpacked(vectors.of(some, progress))
    if done:
        seconds = time.perf_counter() - start
        print(f"Embedded {done:,} texts in {seconds:,.0f} s ({done / seconds:,.0f} a second, stored in batches).\n")
    return made


def filled(base: np.ndarray[Any, Any], size: int) -> Iterator[np.ndarray[Any, Any]]:
    """The real vectors, then shifted ones, some thousand at a time."""
    choose = np.random.default_rng(size)
    yield base[:size]
    for start in range(len(base), size, 10_000):
        count = min(10_000, size - start)
        noise = choose.standard_normal((count, base.shape[1]), dtype=np.float32)
        shifted = base[choose.integers(0, len(base), count)] + noise * (SHIFT / base.shape[1] ** 0.5)
        yield shifted / np.linalg.norm(shifted, axis=1, keepdims=True)


def measured(base: np.ndarray[Any, Any], queries: Sequence[Any], size: int, folder: Path) -> Mapping[str, str]:
    store = open_store(folder / "store.db")
    vectors = Vectors(Given(), store)
    stored = StoredVectors(store, "default", "given")
    best = [(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
    n, start = 1, time.perf_counter()
    for part in filled(base, size):
        kept = packed(part)
        stored.keep({vectors.key(str(n + i)): vector for i, vector in enumerate(kept)})
        part = unpacked(kept)
        for i, query in enumerate(queries):
            scores = np.concatenate([best[i][0], part @ query])
            ids = np.concatenate([best[i][1], np.arange(n, n + len(part))])
            top = np.argsort(-scores)[:K]
            best[i] = scores[top], ids[top]
        n += len(part)
    storing = time.perf_counter() - start
    truth = (folder / "store.db").stat().st_size + (folder / "store.db-wal").stat().st_size
    log = Numbered(size)
    start = time.perf_counter()
    VectorIndex(folder / "index", log, vectors).catch_up()
    building = time.perf_counter() - start
    index = VectorIndex(folder / "index", log, vectors)
    start = time.perf_counter()
    index.search(queries[0], K, fresh=0)
    opening = time.perf_counter() - start
    times, worked, hits = [], time.process_time(), 0
    for query, (_, ids) in zip(queries, best, strict=True):
        start = time.perf_counter()
        found = index.search(query, K, fresh=0)
        times.append(time.perf_counter() - start)
        hits += len({near.id for near in found} & {f"r{id}" for id in ids})
    worked = (time.process_time() - worked) / len(queries)
    disk = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    log.size += 1
    stored.keep({vectors.key(str(log.size)): kept[-1]})
    start = time.perf_counter()
    index.search(queries[0], K, fresh=0)
    one_more = time.perf_counter() - start
    store.close()
    return {
        f"recall@{K} against all compared": f"{hits / (K * len(queries)):.4f}",
        "search p50": f"{statistics.median(times) * 1e3:.1f} ms",
        "search p95": f"{statistics.quantiles(times, n=20)[-1] * 1e3:.1f} ms",
        "search, processor time, mean": f"{worked * 1e3:.1f} ms",
        "search with one more record": f"{one_more * 1e3:.1f} ms",
        "building the index from stored vectors": f"{building:,.1f} s ({size / building:,.0f} a second)",
        "opening it, first search": f"{opening * 1e3:,.0f} ms",
        "bytes per vector, stored": f"{truth / size:,.0f}",
        "bytes per vector, index": f"{disk / size:,.0f}",
        "storing and comparing all (for the truth)": f"{storing:,.0f} s",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args()
    if not (DATA / "locomo").is_dir():
        parser.exit(0, f"no data in {DATA}: set CLEW_DATA\n")
    BUILD.mkdir(exist_ok=True)
    store = open_store(BUILD / "vectors.db")
    base = real(store)
    embedder = Multilingual()
    vectors = Vectors(embedder, store)
    asked = [vectors.query(text) for text in questions()]
    columns = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            columns.append(measured(base, asked, size, Path(folder)))
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    heading = f"{len(base):,} real vectors of {base.shape[1]} numbers, {len(asked)} questions"
    print(f"## {heading}\n\n{table(('', *(f'{size:,}' for size in options.sizes)), rows)}\n")


if __name__ == "__main__":
    main()
