"""What an index of vectors keeps in its folder, but for the graph: a SQLite file of its own.

    pieces   n, position, id, piece, key    every entry; n is never given twice, and names it in the graph
    fresh    n, vector                      the vectors of those that are in no graph
    gone     n                              entries that were taken out and are still in the graph
    state    how far the index has read, and which graph counts; replaced with every transaction

SQLite tells broken pages, not changed letters: so every row has a checksum.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from clew.index.files import Damaged
from clew.index.flat import Entry

FILE = "pieces.db"

WAIT_SECONDS = 60.0

MANY = 500
"""Values in one statement."""

_TABLES = """
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS pieces (
        n INTEGER PRIMARY KEY, position INTEGER NOT NULL, id TEXT NOT NULL, piece INTEGER NOT NULL,
        key TEXT NOT NULL, sum INTEGER NOT NULL
    );
    CREATE INDEX IF NOT EXISTS pieces_id ON pieces (id);
    CREATE INDEX IF NOT EXISTS pieces_key ON pieces (key);
    CREATE TABLE IF NOT EXISTS fresh (n INTEGER PRIMARY KEY, vector BLOB NOT NULL, sum INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS gone (n INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY, body BLOB NOT NULL, sum INTEGER NOT NULL);
"""


class Graph(Struct, frozen=True):
    """The graph that counts: its file, that file's size and checksum, what a number is multiplied by to be a byte, the
    first n that is not in it, and how many of its vectors were taken out of it."""

    file: str = ""
    size: int = 0
    sum: int = 0
    scale: float = 0.0
    end: int = 0
    gone: int = 0


class State(Struct, frozen=True):
    """What an index says of itself: who made it, how far it has read and what stood there (its `mark`), the next n,
    how many entries it has, how often entries were taken out, and its graph."""

    made: str = ""
    position: int = 0
    mark: str = ""
    next: int = 1
    pieces: int = 0
    removals: int = 0
    graph: Graph = Graph()


class Shelf:
    """The file, opened. `write=True` makes it if there is none. Raises `sqlite3.Error` and `Damaged`."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        path = folder / FILE
        mode = "rwc" if write else "rw"
        self._db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        weakref.finalize(self, self._db.close)  # for those that are dropped and not closed
        try:
            self._db.execute("PRAGMA secure_delete = ON")  # what was forgotten is not left in free pages
            self._db.execute("PRAGMA synchronous = NORMAL")
            if write:
                self._db.executescript(_TABLES)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def snapshot(self) -> Iterator[State]:
        """All that is read inside is of one moment, whose state is given."""
        self._db.execute("BEGIN")
        try:
            yield self.state()
        finally:
            self._db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written inside, or nothing of it."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def check(self, state: State) -> None:
        """Raises `Damaged` unless the file is whole. Reads all of it."""
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise Damaged(f"{FILE}: {found[0]}")
        (pieces,) = self._db.execute("SELECT count(*) FROM pieces").fetchone()
        (without,) = self._db.execute(
            "SELECT count(*) FROM pieces LEFT JOIN fresh USING (n) WHERE pieces.n >= ? AND vector IS NULL",
            (state.graph.end,),
        ).fetchone()
        if pieces != state.pieces or without:
            raise Damaged(f"{FILE}: {pieces} pieces, not {state.pieces}; {without} without a vector")

    # -- reading

    def state(self) -> State:
        """What the index says of itself; of a new one, that it is empty."""
        found = self._db.execute("SELECT body, sum FROM state").fetchone()
        if found is None:
            return State()
        if crc32(found[0]) != found[1]:
            raise Damaged(f"{FILE}: its state")
        try:
            return msgspec.json.decode(found[0], type=State)
        except msgspec.MsgspecError as error:
            raise Damaged(f"{FILE}: its state: {error}") from error

    def version(self) -> int:
        """Changes when another connection has written."""
        (found,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(found)

    def fresh(self, start: int, limit: int = -1) -> tuple[list[int], list[Entry], list[bytes]]:
        """The entries from n = `start` on that are in no graph, with their vectors; the first `limit` ones."""
        ns: list[int] = []
        entries: list[Entry] = []
        vectors: list[bytes] = []
        found = self._db.execute(
            "SELECT pieces.*, vector, fresh.sum FROM fresh JOIN pieces USING (n) WHERE n >= ? ORDER BY n LIMIT ?",
            (start, limit),
        )
        for *row, vector, vector_sum in found:
            if crc32(vector) != vector_sum:
                raise Damaged(f"{FILE}: vector {row[0]}")
            ns.append(row[0])
            entries.append(_entry(row))
            vectors.append(vector)
        return ns, entries, vectors

    def entries(self, ns: Sequence[int]) -> dict[int, Entry]:
        """The entries that are there, of these n."""
        return {row[0]: _entry(row) for row in self._among("SELECT * FROM pieces WHERE n IN", ns)}

    def of_ids(self, ids: Collection[str]) -> dict[int, Entry]:
        """The entries of some ids."""
        return {row[0]: _entry(row) for row in self._among("SELECT * FROM pieces WHERE id IN", list(ids))}

    def batches(self, start: int, end: int, size: int) -> Iterator[tuple[list[int], list[str]]]:
        """The n and keys of the entries from `start` up to `end`, so many at a time."""
        while True:
            rows = self._db.execute(
                "SELECT n, key FROM pieces WHERE n >= ? AND n < ? ORDER BY n LIMIT ?", (start, end, size)
            ).fetchall()
            if not rows:
                return
            yield [row[0] for row in rows], [row[1] for row in rows]
            start = rows[-1][0] + 1

    # -- writing

    def put(self, state: State) -> None:
        """Replaces the state."""
        body = msgspec.json.encode(state)
        self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (body, crc32(body)))

    def add(self, start: int, entries: Sequence[Entry], vectors: Sequence[bytes]) -> None:
        """Adds entries; the first one is n = `start`."""
        numbered = list(enumerate(entries, start))
        self._db.executemany(
            "INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?)", [(n, *entry, _sum(n, entry)) for n, entry in numbered]
        )
        made = zip(numbered, vectors, strict=True)
        self._db.executemany("INSERT INTO fresh VALUES (?, ?, ?)", [(n, v, crc32(v)) for (n, _), v in made])

    def remove(self, ns: Sequence[int], end: int) -> None:
        """Takes out entries; those before n = `end` are in a graph."""
        self._db.executemany("DELETE FROM pieces WHERE n = ?", [(n,) for n in ns])
        self._db.executemany("DELETE FROM fresh WHERE n = ?", [(n,) for n in ns])
        self._db.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in ns if n < end])

    def gone(self) -> list[int]:
        """The entries that were taken out and are still in the graph."""
        return [n for (n,) in self._db.execute("SELECT n FROM gone")]

    def unused(self, keys: Collection[str]) -> list[str]:
        """Those of the keys that no entry has."""
        used = {row[0] for row in self._among("SELECT key FROM pieces WHERE key IN", list(keys))}
        return [key for key in keys if key not in used]

    def covered(self, end: int) -> None:
        """The entries before n = `end` are in a graph now, and those that were taken out are not."""
        self._db.execute("DELETE FROM fresh WHERE n < ?", (end,))
        self._db.execute("DELETE FROM gone")

    def clear(self) -> None:
        """Takes out all there is."""
        for table in ("pieces", "fresh", "gone", "state"):
            self._db.execute(f"DELETE FROM {table}")

    def _among(self, query: str, values: Sequence[int] | Sequence[str]) -> Iterator[tuple[Any, ...]]:
        for at in range(0, len(values), MANY):
            part = values[at : at + MANY]
            yield from self._db.execute(f"{query} ({','.join('?' * len(part))})", tuple(part))


def broken(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is no good, and not that it cannot be read or written just now."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _sum(n: int, entry: Entry) -> int:
    return crc32(repr((n, *entry)).encode("utf-8", "backslashreplace"))


def _entry(row: Sequence[Any]) -> Entry:
    n, *told, found = row
    entry = Entry(*told)  # SQLite may hold anything: the checksum tells
    if _sum(n, entry) != found:
        raise Damaged(f"{FILE}: entry {n}")
    return entry
