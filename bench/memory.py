"""Records of a memory: durable adds, bulk, opening, and what is asked of them, by how many there are.

Prints Markdown. Everything lies on the same disk; a bare insert into SQLite of the same durability takes turns with the
adds, so that both have the same weather. How fast recall is: `bench/recall_speed.py`. Other memories stand beside
Clew's at 10,000 records: texts of 12 words of a Zipf vocabulary, random vectors made beforehand, questions of eight
of the most frequent words (`--peers no` leaves them out).
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from clew.memory import MemoryRecord, RecordLog, Source
from measure import memories, peers
from measure.table import table
from recall_speed import ASKED, records, vocabulary

BATCH = 1_000
WORDS = (
    *("the", "agent", "reads", "a", "file", "and", "finds", "that", "this", "test", "fails", "because", "of", "an"),
    *("index", "which", "is", "one", "too", "high", "我们", "明天", "检查", "日志"),
)
BLOCK_VERSIONS = 1_000
BESIDE = 10_000
"""Records, among which other memories search."""
DIM = 384


def told() -> Iterator[MemoryRecord]:
    """What is said in sessions of 50 records, each about 200 characters, without end."""
    chance, n = random.Random(1), 0
    while True:
        text = f"{n}: " + " ".join(chance.choices(WORDS, k=40))
        source = Source.of(f"e{n}", text, f"session {n // 50}")
        yield MemoryRecord("user" if n % 2 == 0 else "assistant", text, n, kind="message", sources=(source,))
        n += 1


def spent(rounds: int, act: Callable[[int], object]) -> list[float]:
    """How long each round takes, in milliseconds, ascending."""
    times = []
    for n in range(rounds):
        start = time.perf_counter()
        act(n)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)


def shown(times: list[float]) -> str:
    return f"{times[len(times) // 2]:.2f} / {times[int(len(times) * 0.95)]:.2f} ms"


def bare(path: Path) -> sqlite3.Connection:
    """SQLite by itself, with the durability of a store."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return db


def measured(folder: Path, size: int, rounds: int) -> dict[str, str]:
    """The figures for a memory of so many records."""
    path, records = folder / f"{size}.db", told()
    log = RecordLog(path)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(0, size, BATCH):
        log.add_many(list(islice(records, BATCH)), again=True)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    log.close()
    found = {
        "bulk, durable, by 1,000": f"{size / took:,.0f} records/s",
        "of one core alone": f"{size / cpu:,.0f} records/s",
        "bytes per record": f"{path.stat().st_size / size:,.0f}",
    }
    start = time.perf_counter()
    log = RecordLog(path)
    log.get("nobody")
    found["open, with the first question"] = f"{(time.perf_counter() - start) * 1e3:.0f} ms"
    db = bare(folder / f"{size} bare.db")
    adds, inserts = [], []
    for record in islice(records, rounds):
        adds += spent(1, lambda _, record=record: log.add(record, again=True))  # type: ignore[misc]
        inserts += spent(1, lambda _: db.execute("INSERT INTO log (body) VALUES (?)", (b"x" * 400,)))
    found["add, p50 / p95"] = shown(sorted(adds))
    found["a bare insert"] = shown(sorted(inserts))
    ids = [r.id for r in islice(log.latest("message"), rounds)]
    chosen = [t.uid for t in islice(log.told(size // 2), 100)]
    middle = next(log.told(size // 2)).record
    assert middle is not None
    found["edit"] = shown(spent(len(ids), lambda n: log.edit(ids[n], f"edited {n}")))
    found["use of 10"] = shown(spent(rounds, lambda n: log.use(*ids[:10])))
    found["get"] = shown(spent(len(ids), lambda n: log.get(ids[n])))
    found["the last 20"] = shown(spent(rounds, lambda n: list(islice(log.latest("message"), 20))))
    found["which of 100 hold"] = shown(spent(rounds, lambda n: log.held(chosen)))
    found["neighbours of 50"] = shown(spent(rounds, lambda n: log.around(chosen[:50])))
    found["all records"] = f"{spent(1, lambda n: log.records())[0]:,.0f} ms"
    found["all, as of the middle"] = f"{spent(1, lambda n: log.records(at=middle.created))[0]:,.0f} ms"
    log.close()
    return found


def long_line(rounds: int) -> str:
    """What an edit takes of a record that has been edited a thousand times."""
    with RecordLog() as log:
        block = log.add(MemoryRecord("system", "x" * 1_000, kind="block"))
        assert block is not None
        for n in range(BLOCK_VERSIONS):
            log.edit(block.id, f"{n} " + "x" * 1_000)
        return shown(spent(rounds, lambda n: log.edit(block.id, f"again {n}")))


def beside(folder: Path, rounds: int) -> str:
    """Clew's memory and others, on the same texts and vectors."""
    chance = random.Random(BESIDE)
    words = vocabulary(chance)
    asked = [" ".join(chance.sample(words[:20], 8)) for _ in range(ASKED)]
    texts = [record.text for record in records(BESIDE + rounds + ASKED, words, chance)]
    vectors = np.random.default_rng(BESIDE).standard_normal((len(texts) + ASKED, DIM), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    memories.write(folder, texts[:BESIDE], texts[BESIDE:], asked, vectors.tobytes())
    return table(memories.HEAD, [memories.row(name, folder) for name in memories.MEMORIES])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 100_000], help="records (1000000 takes minutes)"
    )
    parser.add_argument("--rounds", type=int, default=200, help="operations for each figure")
    parser.add_argument("--peers", choices=("yes", "no"), default="yes", help="measure other memories, too")
    options = parser.parse_args()
    build = peers.ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        columns = [measured(Path(folder), size, options.rounds) for size in options.sizes]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    print("## Records of a memory (SQLite; WAL, synchronous FULL)\n")
    print(table(["p50 / p95", *(f"{size:,} records" for size in options.sizes)], rows))
    print(f"\nAn edit of a record with {BLOCK_VERSIONS:,} versions, without the disk: {long_line(20)}.")
    print("The aims: an add at 5 ms or less (p95), bulk at 5,000 records/s or more, 100,000 records open in 1 s.")
    if options.peers == "yes":
        print(f"\n## Clew's memory and others, {BESIDE:,} records; processor time, in brackets by the clock\n")
        with tempfile.TemporaryDirectory(dir=build) as folder:
            print(beside(Path(folder), options.rounds))


if __name__ == "__main__":
    main()
