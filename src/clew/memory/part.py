"""A part of what is known: the records that are asked about, read from the tables into a `State` when they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection

from clew.memory.changes import Change, from_row, order
from clew.memory.records import MemoryRecord, identity
from clew.memory.state import State
from clew.storage.changes import Changes
from clew.storage.rows import ChangeRow


class Part:
    """Some records of a log with all their changes. For these the `state` is what it would be with all changes."""

    def __init__(self, changes: Changes, db: Connection) -> None:
        self.state = State()
        self.changes: dict[str, list[tuple[int, Change]]] = {}
        self._log = changes
        self.db = db
        self._topics: set[str] = set()

    def load(self, ids: Iterable[str]) -> None:
        """Reads these records."""
        new = [id for id in dict.fromkeys(ids) if id not in self.changes]
        if not new:
            return
        self.changes.update((id, []) for id in new)
        rows = self._log.of_records(self.db, new)
        self.keys(row.key for row in rows if row.key)
        found = [(row.position, from_row(row)) for row in rows]
        for row, placed in zip(rows, found, strict=True):
            self.changes[row.record].append(placed)
        for one in sorted((one for _, one in found), key=order):
            self.state.apply(one)

    def topics(self, topics: Collection[str]) -> None:
        """Reads the records about which one of these was ever said."""
        new = [topic for topic in topics if topic not in self._topics]
        self._topics.update(new)
        if new:
            self.load(self._log.about(self.db, new))

    def saying(self, record: MemoryRecord) -> None:
        """Reads the records that ever said the same."""
        self.topics([identity(record)])

    def keys(self, keys: Iterable[str]) -> None:
        """Reads what was asked for under these keys first."""
        new = [key for key in dict.fromkeys(keys) if key not in self.state.keys]
        self.state.keys.update(firsts(self._log.of_keys(self.db, new)))


def firsts(rows: Sequence[ChangeRow]) -> dict[str, Change]:
    """The first change of each key: the one that counts."""
    changes = sorted(map(from_row, rows), key=order, reverse=True)
    return {one.key: one for one in changes if one.key}
