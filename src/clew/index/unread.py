"""What an index of vectors has not read yet, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from clew.index.arrays import Floats
from clew.index.embedded import Texts
from clew.index.flat import Entry, Flat, Scored
from clew.index.rows import Row


class Unread:
    """The rows after a position of the log: of each id the last one, with the vectors there are."""

    def __init__(self, texts: Texts, start: int) -> None:
        self._texts = texts
        self._flat = Flat()
        self._rows: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[Entry, str]]] = {}
        self.start = start
        self.end = start

    def __len__(self) -> int:
        """How many ids it says something of."""
        return len(self._rows)

    @property
    def ids(self) -> Collection[str]:
        """The ids it says something of: what the index has of them is no longer true."""
        return self._rows.keys()

    @property
    def keys(self) -> set[str]:
        """The keys of its texts that have a vector."""
        return self._flat.keys

    @property
    def waiting(self) -> int:
        """How many texts have no vector yet."""
        return sum(map(len, self._waiting.values()))

    def add(self, rows: Sequence[Row]) -> set[str]:
        """Takes in the next rows, with the vectors of their texts that are there already. Gives the keys of texts of
        its own that stand nowhere here any more."""
        last = {row.id: row for row in rows}
        pieces = {id: self._texts.pieces(row) for id, row in last.items()}
        held = self._texts.vectors.held(list({entry.key for some in pieces.values() for entry, _ in some}))
        known: list[Entry] = []
        gone: set[str] = set()
        for row in sorted(last.values(), key=lambda row: row.position):
            gone.update(self._drop(row.id))
            self._rows[row.id] = self.end = row.position
            known += [entry for entry, _ in pieces[row.id] if entry.key in held]
            missing = [one for one in pieces[row.id] if one[0].key not in held]
            if missing:
                self._waiting[row.id] = missing
        self._flat.add(known, [held[entry.key] for entry in known])
        return gone - self._flat.keys if gone else gone

    def embed(self, limit: int | None) -> int:
        """Has texts embedded that have no vector yet: those of the newest rows, at most so many. Gives how many."""
        chosen: list[tuple[Entry, str]] = []
        while self._waiting and (limit is None or len(chosen) < limit):
            id, pieces = self._waiting.popitem()
            most = len(pieces) if limit is None else limit - len(chosen)
            chosen += pieces[:most]
            if pieces[most:]:
                self._waiting[id] = pieces[most:]
        try:
            vectors = self._texts.vectors.of([text for _, text in chosen])
        except BaseException:
            back: dict[str, list[tuple[Entry, str]]] = {}
            for one in reversed(chosen):
                back.setdefault(one[0].id, []).insert(0, one)
            for id, pieces in back.items():
                self._waiting[id] = pieces + self._waiting.get(id, [])
            raise
        self._flat.add([entry for entry, _ in chosen], vectors)
        return len(chosen)

    def forget(self, position: int) -> None:
        """Drops what the index has read meanwhile."""
        for id in [id for id, at in self._rows.items() if at <= position]:
            self._drop(id)
        self.start = position
        self.end = max(self.end, position)

    def best(self, query: Floats, k: int, ids: Collection[str] | None) -> list[Scored]:
        """The `k` nearest of those that have a vector, of some ids or of all; sorted."""
        return self._flat.best(query, k, ids)

    def _drop(self, id: str) -> list[str]:
        keys: list[str] = []
        if self._rows.pop(id, None) is not None:
            keys = self._flat.drop([id])
            self._waiting.pop(id, None)
        if not self._rows:
            self._flat = Flat()
        return keys
