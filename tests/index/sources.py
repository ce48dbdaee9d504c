"""A log for indexes to follow: in memory for most tests, in a file when processes share it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from clew.index import Row


class Rows:
    """Rows in memory, by namespace."""

    def __init__(self) -> None:
        self.all: dict[str, list[Row]] = {}

    def say(self, id: str, *texts: str, namespace: str = "default", **facets: str) -> None:
        rows = self.all.setdefault(namespace, [])
        rows.append(Row(len(rows) + 1, id, tuple({"text": text} for text in texts), facets))

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        return [row for row in self.all.get(namespace, []) if row.position > after]


class File:
    """Rows in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS log (position INTEGER PRIMARY KEY, row BLOB NOT NULL)")

    def say(self, id: str, text: str) -> None:
        row = msgspec.json.encode(Row(0, id, ({"text": text},)))
        self._db.execute("INSERT INTO log (row) VALUES (?)", (row,))

    def rows(self, namespace: str, after: int) -> Iterator[Row]:
        for position, row in self._db.execute(
            "SELECT position, row FROM log WHERE position > ? ORDER BY position", (after,)
        ):
            yield msgspec.structs.replace(msgspec.json.decode(row, type=Row), position=position)
