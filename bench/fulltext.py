"""The engine of the full-text index: Tantivy beside SQLite's FTS5, both fed the terms of our tokeniser.

Prints Markdown: size, building, how soon one added text is found, and the time of queries, medians of
one run, everything on the same disk. `--sizes` are texts: `--sizes 10000 100000 1000000` for all of them.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import tantivy

from clew.text import terms
from measure.table import table

WORDS = 40
VOCABULARY = 20_000
CHINESE = 0.2
BATCH = 10_000
K = 10
ADDED = 20

Kind = str
KINDS: tuple[Kind, ...] = ("a common word", "two words, both", "phrase", "beginning of a word", "8 frequent words, any")


class Engine(Protocol):
    """What is measured of an engine. Texts are terms with spaces between them."""

    def build(self, streams: Iterator[str]) -> None: ...
    def add(self, id: int, stream: str) -> None: ...
    def find(self, kind: Kind, words: Sequence[str]) -> list[int]: ...


class Tantivy:
    """Tantivy with its terms as they are given; `find` ranks by its own BM25."""

    name = "Tantivy"

    def __init__(self, folder: Path) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("id", stored=True, indexed=True, fast=True)
        builder.add_text_field("text", stored=True, tokenizer_name="spaces")
        self._schema = builder.build()
        folder.mkdir()
        self._index = tantivy.Index(self._schema, str(folder))
        self._index.register_tokenizer("spaces", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self._index.config_reader("manual")
        self._searcher = self._index.searcher()

    def build(self, streams: Iterator[str]) -> None:
        writer = self._index.writer(128_000_000, 1)
        for id, stream in enumerate(streams):
            self._put(writer, id, stream)
            if id % BATCH == BATCH - 1:
                writer.commit()
        writer.commit()
        writer.wait_merging_threads()
        self._reload()

    def add(self, id: int, stream: str) -> None:
        writer = self._index.writer(15_000_000, 1)
        self._put(writer, id, stream)
        writer.commit()
        writer.wait_merging_threads()
        self._reload()

    def find(self, kind: Kind, words: Sequence[str]) -> list[int]:
        found = self._searcher.search(self._query(kind, words), K, count=False)
        return [self._searcher.doc(at).get_first("id") for _, at in found.hits]

    def _query(self, kind: Kind, words: Sequence[str]) -> tantivy.Query:
        query = tantivy.Query
        if kind == "phrase":
            return query.phrase_query(self._schema, "text", list(words))
        if kind == "beginning of a word":
            begun = self._searcher.terms_with_prefix("text", words[0], limit=64)
            words = [term for term, _ in begun]
        must = tantivy.Occur.Must if kind == "two words, both" else tantivy.Occur.Should
        return query.boolean_query([(must, query.term_query(self._schema, "text", word, "freq")) for word in words])

    def _put(self, writer: tantivy.IndexWriter, id: int, stream: str) -> None:
        document = tantivy.Document()
        document.add_unsigned("id", id)
        document.add_text("text", stream)
        writer.add_document(document)

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()


class Fts5:
    """FTS5 in a file of its own, WAL and synchronous NORMAL, as an index that can be made again needs no more."""

    name = "SQLite FTS5"

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._db = sqlite3.connect(folder / "index.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA cache_size=-65536")
        tokens = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"
        self._db.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize="{tokens}")')

    def build(self, streams: Iterator[str]) -> None:
        self._db.execute("BEGIN")
        for id, stream in enumerate(streams):
            self._db.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (id, stream))
            if id % BATCH == BATCH - 1:
                self._db.execute("COMMIT")
                self._db.execute("BEGIN")
        self._db.execute("COMMIT")
        self._db.execute("INSERT INTO texts (texts) VALUES ('optimize')")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def add(self, id: int, stream: str) -> None:
        self._db.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (id, stream))

    def find(self, kind: Kind, words: Sequence[str]) -> list[int]:
        quoted = [f'"{word}"' for word in words]
        query = {
            "phrase": f'"{" ".join(words)}"',
            "beginning of a word": f"{quoted[0]}*",
            "two words, both": " AND ".join(quoted),
        }.get(kind, " OR ".join(quoted))
        ranked = self._db.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (query, K))
        return [row[0] for row in ranked]


def streams(size: int) -> Iterator[str]:
    """Texts of about `WORDS` words, frequent and rare ones as in language (Zipf), a part of them Chinese."""
    choose = random.Random(size)
    words = [_word(i) for i in range(VOCABULARY)]
    weights = [1 / (i + 2) for i in range(VOCABULARY)]
    han = [chr(0x4E00 + i * 7) for i in range(2_000)]
    for _ in range(0, size, 1_000):
        bag = choose.choices(words, weights, k=WORDS * 1_000)
        dense = choose.choices(han, weights[: len(han)], k=WORDS * 1_000)
        for at in range(0, len(bag), WORDS):
            text = "".join(dense[at : at + WORDS]) if choose.random() < CHINESE else " ".join(bag[at : at + WORDS])
            yield " ".join(terms(text).stream)


def _word(i: int) -> str:
    """A pronounceable word for a number."""
    syllables = [f"{c}{v}" for c in "bdfgklmnprstvz" for v in "aou"]
    word = ""
    i += len(syllables)
    while i:
        i, rest = divmod(i, len(syllables))
        word = syllables[rest] + word
    return word


def queries(kind: Kind, rounds: int) -> list[list[str]]:
    choose = random.Random(kind)
    stem = [terms(_word(i)).stream[0] for i in range(400)]
    return [
        {
            "a common word": [stem[choose.randrange(20)]],
            "two words, both": [stem[choose.randrange(20)], stem[choose.randrange(20, 400)]],
            "phrase": [stem[choose.randrange(20)], stem[choose.randrange(20)]],
            "beginning of a word": [stem[choose.randrange(400)][:4]],
            "8 frequent words, any": choose.sample(stem[:40], 8),
        }[kind]
        for _ in range(rounds)
    ]


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def measured(engine: Engine, folder: Path, size: int, rounds: int) -> dict[str, float]:
    """Seconds, and megabytes of the index."""
    made = list(streams(size))
    found = {"building": timed(lambda: engine.build(iter(made)))}
    found["size"] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    for kind in KINDS:
        found[kind] = statistics.median(timed(lambda k=kind, w=w: engine.find(k, w)) for w in queries(kind, rounds))
    times = []
    for n in range(ADDED):
        id, name = size + n, f"added{n}"
        times.append(timed(lambda id=id, name=name: engine.add(id, f"{made[0]} {name}")))
        assert engine.find("a common word", [name]) == [id], "a text that was added is not found"
    found["one more, until it is found"] = statistics.median(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=20, help="queries for each figure")
    options = parser.parse_args()
    build = Path(__file__).parent.parent / "build"
    build.mkdir(exist_ok=True)
    for size in options.sizes:
        columns = []
        for engine in (Tantivy, Fts5):
            with tempfile.TemporaryDirectory(dir=build) as folder:
                place = Path(folder) / "index"
                columns.append(measured(engine(place), place, size, options.rounds))
        rows = [("size on disk", *(f"{c['size']:,.0f} MB" for c in columns))]
        rows += [("building", *(f"{c['building']:,.1f} s" for c in columns))]
        rows += [(k, *(f"{c[k] * 1e3:,.1f} ms" for c in columns)) for k in ("one more, until it is found", *KINDS)]
        print(f"## {size:,} texts of {WORDS} words\n\n{table(('', Tantivy.name, Fts5.name), rows)}\n", flush=True)


if __name__ == "__main__":
    main()
