"""The index of vectors in PostgreSQL: the same follower, kept by the server instead of in a folder."""

from __future__ import annotations

from collections.abc import Collection

from clew.index.arrays import Floats, unpacked
from clew.index.embedded import Progress, Texts
from clew.index.flat import Entry, Scored
from clew.index.rows import batches
from clew.index.vector_reader import CANDIDATES, TIMES, rescored
from clew.index.vector_writer import BATCH, EXACT
from clew.storage.pgvector import Nearby, Piece, Stand
from clew.storage.store import Store


class Server:
    """What an index keeps in the tables of a server. All processes read the same; whoever is behind writes."""

    def __init__(self, store: Store, namespace: str, follower: str, texts: Texts, made: str) -> None:
        self._nearby = Nearby(store, namespace, follower)
        self._texts = texts
        self._made = made
        self._stand: Stand | None = None
        self._hidden: set[str] = set()

    @property
    def position(self) -> int:
        """How far the index has read."""
        return self._stand.position if self._stand else 0

    @property
    def keys(self) -> set[str]:
        """The keys of the texts it has."""
        return self._nearby.all()

    def refresh(self) -> None:
        """Takes up what has been written."""
        found = self._nearby.stand()
        if found != self._stand:
            fits = found is not None and found.made == self._made and found.mark == self._texts.mark(found.position)
            self._stand = found if fits else None
            self._hidden = set()

    def drop(self) -> None:
        """Lets go of what was taken up."""
        self._stand, self._hidden = None, set()

    def hide(self, ids: Collection[str]) -> None:
        """What the index has of these ids is no longer true."""
        self._hidden |= set(ids)

    def without(self, keys: Collection[str]) -> list[str]:
        """Those of the keys of texts that the index does not have."""
        held = self._nearby.has(list(keys)) if keys else set()
        return [key for key in keys if key not in held]

    def best(self, query: Floats, k: int, ids: Collection[str] | None) -> list[Scored]:
        """The `k` nearest entries, of some ids or of all; sorted. Raises `Lost`."""
        if self._stand is None or (ids is not None and not ids):
            return []
        count = max(CANDIDATES, TIMES * k) + len(self._hidden)
        found = self._nearby.nearest(_literal(query), len(query), count, ids)
        entries = [Entry(p.position, p.id, p.piece, p.digest) for p in found if p.id not in self._hidden]
        return sorted(rescored(self._texts, query, entries))[:k]

    def write(self, wait: float, until: int | None, progress: Progress) -> bool:
        """Takes in what the log has more. Another process may do so at the same time: each batch is taken once."""
        while not self._written(until, progress):
            pass
        return True

    def clear(self) -> None:
        """Deletes the index."""
        self.drop()
        self._nearby.clear()

    def _written(self, until: int | None, progress: Progress) -> bool:
        """False when another process was faster: what it has read is not to be read again."""
        before = self._nearby.stand()
        if before and (before.made != self._made or before.mark != self._texts.mark(before.position)):
            self._nearby.clear()
            before = None
        dim = 0
        for rows in batches(self._texts.rows(before.position if before else 0), BATCH, until):
            last = {row.id: row for row in rows}
            found = [one for row in last.values() for one in self._texts.pieces(row)]
            vectors = self._texts.vectors.of([text for _, text in found], progress)
            new = {entry.key for entry, _ in found}
            self._texts.vectors.forget([key for key in self._nearby.digests(list(last)) if key not in new])
            added = []
            for (entry, _), vector in zip(found, unpacked(vectors) if vectors else (), strict=True):
                if vector.any():
                    added.append((Piece(entry.id, entry.piece, entry.position, entry.key), _literal(vector)))
                    dim = len(vector)
            position = rows[-1].position
            after = Stand(self._made, position, self._texts.mark(position))
            if not self._nearby.take(before, after, list(last), added):
                return False
            before = after
        if dim:
            self._nearby.graph(dim, EXACT)
        return True


def _literal(vector: Floats) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{float(x):.6g}" for x in vector) + "]"
