"""What an index of vectors keeps in its folder, but for the graph: a SQLite file of its own.

    texts    n, key                      every text once; n is never given twice, and names it in the graph
    pieces   id, piece, position, n      where the texts stand
    fresh    n, vector                   the vectors of those that are in no graph
    gone     n                           texts that stand nowhere any more and are still in the graph
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
from msgspec.structs import replace

from clew.index.files import Damaged
from clew.index.flat import Entry

FILE = "pieces.db"

WAIT_SECONDS = 60.0

MANY = 500
"""Values in one statement."""

_TABLES = """
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS texts (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS pieces (
        id TEXT NOT NULL, piece INTEGER NOT NULL, position INTEGER NOT NULL, n INTEGER NOT NULL, sum INTEGER NOT NULL,
        PRIMARY KEY (id, piece)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS pieces_text ON pieces (n, position);
    CREATE INDEX IF NOT EXISTS pieces_position ON pieces (position);
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
    how many pieces and texts it has, how often pieces were taken out, and its graph."""

    made: str = ""
    position: int = 0
    mark: str = ""
    next: int = 1
    pieces: int = 0
    texts: int = 0
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

    def check(self, whole: set[int], inode: int) -> None:
        """Raises `Damaged` unless the file is whole. Reads all of it, once: `whole` are the inodes of files that are
        known to be, it grows."""
        if inode not in whole:
            with self.snapshot() as state:
                self._check(state)
            whole.add(inode)

    def _check(self, state: State) -> None:
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise Damaged(f"{FILE}: {found[0]}")
        (pieces,) = self._db.execute("SELECT count(*) FROM pieces").fetchone()
        (texts,) = self._db.execute("SELECT count(*) FROM texts").fetchone()
        (without,) = self._db.execute(
            "SELECT count(*) FROM texts LEFT JOIN fresh USING (n) WHERE n >= ? AND vector IS NULL", (state.graph.end,)
        ).fetchone()
        if (pieces, texts, without) != (state.pieces, state.texts, 0):
            raise Damaged(f"{FILE}: {pieces} pieces of {texts} texts, {without} without a vector")

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

    def unfolded(self, after: int) -> tuple[list[Entry], list[bytes]]:
        """The pieces after a position whose texts are in no graph, with their vectors."""
        entries: list[Entry] = []
        vectors: list[bytes] = []
        for *row, vector, sum in self._db.execute(
            f"SELECT {_ENTRY}, vector, fresh.sum FROM pieces INDEXED BY pieces_position JOIN texts USING (n) "
            "JOIN fresh USING (n) WHERE position > ? ORDER BY position",
            (after,),
        ):
            entries.append(_entry(row))
            vectors.append(_vector(row[3], vector, sum))
        return entries, vectors

    def fresh(self, start: int, size: int) -> Iterator[tuple[list[int], list[bytes]]]:
        """The texts from n = `start` on that are in no graph, by their n, and their vectors; so many at a time."""
        while True:
            found = self._db.execute(
                "SELECT n, vector, sum FROM fresh WHERE n >= ? ORDER BY n LIMIT ?", (start, size)
            ).fetchall()
            if not found:
                return
            yield [row[0] for row in found], [_vector(*row) for row in found]
            start = found[-1][0] + 1

    def texts(self, size: int) -> Iterator[tuple[list[int], list[str]]]:
        """All texts by their n, and their keys; so many at a time."""
        start = 0
        while True:
            found = self._db.execute(
                "SELECT n, key, sum FROM texts WHERE n >= ? ORDER BY n LIMIT ?", (start, size)
            ).fetchall()
            if not found:
                return
            yield [row[0] for row in found], [_key(*row) for row in found]
            start = found[-1][0] + 1

    def newest(self, ns: Sequence[int], limit: int) -> list[Entry]:
        """The pieces of texts, of each text at most the newest `limit` ones."""
        query = (
            f"SELECT {_ENTRY} FROM pieces JOIN texts USING (n) WHERE n = ? ORDER BY position DESC, id, piece LIMIT ?"
        )
        return [_entry(row) for n in ns for row in self._db.execute(query, (n, limit))]

    def folded(self, ids: Collection[str], end: int) -> list[Entry]:
        """The pieces of some ids whose texts come before n = `end`: those in the graph."""
        query = f"SELECT {_ENTRY} FROM pieces JOIN texts USING (n) WHERE id IN"
        return [_entry(row) for row in self._among(query, list(ids)) if row[3] < end]

    def having(self, ids: Collection[str]) -> set[str]:
        """Those of the ids that it has pieces of."""
        return {row[0] for row in self._among("SELECT DISTINCT id FROM pieces WHERE id IN", list(ids))}

    def without(self, keys: Collection[str]) -> list[str]:
        """Those of the keys of texts that it does not have."""
        held = {row[0] for row in self._among("SELECT key FROM texts WHERE key IN", list(keys))}
        return [key for key in keys if key not in held]

    # -- writing

    def put(self, state: State) -> None:
        """Replaces the state."""
        body = msgspec.json.encode(state)
        self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (body, crc32(body)))

    def add(self, state: State, entries: Sequence[Entry], vectors: Sequence[bytes]) -> State:
        """Adds pieces, whose vectors are these; the state after that."""
        numbered = {row[0]: row[1] for row in self._among("SELECT key, n FROM texts WHERE key IN", _keys(entries))}
        new: dict[str, bytes] = {}
        for entry, vector in zip(entries, vectors, strict=True):
            if entry.key not in numbered:
                numbered[entry.key] = state.next + len(new)
                new[entry.key] = vector
        texts = [(numbered[key], key) for key in new]
        self._db.executemany("INSERT INTO texts VALUES (?, ?, ?)", [(*text, _sum(*text)) for text in texts])
        fresh = [(n, new[key], crc32(new[key])) for n, key in texts]
        self._db.executemany("INSERT INTO fresh VALUES (?, ?, ?)", fresh)
        pieces = [(entry.id, entry.piece, entry.position, numbered[entry.key]) for entry in entries]
        self._db.executemany("INSERT INTO pieces VALUES (?, ?, ?, ?, ?)", [(*one, _sum(*one)) for one in pieces])
        return replace(
            state,
            next=state.next + len(new),
            pieces=state.pieces + len(entries),
            texts=state.texts + len(new),
        )

    def remove(self, state: State, ids: Collection[str]) -> tuple[State, list[int]]:
        """Takes out the pieces of these ids; the state after that, and the texts' n."""
        ns = [row[0] for row in self._among("SELECT n FROM pieces WHERE id IN", list(ids))]
        self._db.executemany("DELETE FROM pieces WHERE id = ?", [(id,) for id in ids])
        return replace(state, pieces=state.pieces - len(ns), removals=state.removals + len(ns)), ns

    def forget(self, state: State, ns: Sequence[int]) -> tuple[State, list[str]]:
        """Takes out those of the texts that stand nowhere; the state after that, and their keys."""
        used = {row[0] for row in self._among("SELECT DISTINCT n FROM pieces WHERE n IN", ns)}
        unused = [n for n in dict.fromkeys(ns) if n not in used]
        keys = [row[0] for row in self._among("SELECT key FROM texts WHERE n IN", unused)]
        self._db.executemany("DELETE FROM texts WHERE n = ?", [(n,) for n in unused])
        self._db.executemany("DELETE FROM fresh WHERE n = ?", [(n,) for n in unused])
        self._db.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in unused if n < state.graph.end])
        return replace(state, texts=state.texts - len(keys)), keys

    def gone(self) -> list[int]:
        """The texts that stand nowhere any more and are still in the graph."""
        return [n for (n,) in self._db.execute("SELECT n FROM gone ORDER BY n")]

    def covered(self, end: int) -> None:
        """The texts before n = `end` are in a graph now, and those that stand nowhere are not."""
        self._db.execute("DELETE FROM fresh WHERE n < ?", (end,))
        self._db.execute("DELETE FROM gone")

    def settle(self) -> None:
        """Empties the file of what has been written lately: it still has what was taken out since."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def clear(self) -> None:
        """Takes out all there is."""
        for table in ("texts", "pieces", "fresh", "gone", "state"):
            self._db.execute(f"DELETE FROM {table}")

    def _among(self, query: str, values: Sequence[int] | Sequence[str]) -> Iterator[tuple[Any, ...]]:
        for at in range(0, len(values), MANY):
            part = values[at : at + MANY]
            yield from self._db.execute(f"{query} ({','.join('?' * len(part))})", tuple(part))


def broken(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is no good, and not that it cannot be read or written just now."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


_ENTRY = "id, piece, position, n, pieces.sum, key, texts.sum"


def _entry(row: Sequence[Any]) -> Entry:
    """SQLite may hold anything: the checksums tell."""
    id, piece, position, n, sum, key, key_sum = row
    if _sum(id, piece, position, n) != sum:
        raise Damaged(f"{FILE}: a piece of text {n}")
    return Entry(position, id, piece, _key(n, key, key_sum))


def _key(n: Any, key: Any, sum: Any) -> str:
    if _sum(n, key) != sum:
        raise Damaged(f"{FILE}: text {n}")
    return str(key)


def _vector(n: Any, vector: Any, sum: Any) -> bytes:
    if not isinstance(vector, bytes) or crc32(vector) != sum:
        raise Damaged(f"{FILE}: the vector of text {n}")
    return vector


def _sum(*values: object) -> int:
    return crc32(repr(values).encode("utf-8", "backslashreplace"))


def _keys(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.key for entry in entries))
