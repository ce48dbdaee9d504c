"""The index of vectors: a follower of a log, searched together with what it has not read yet.

    index = VectorIndex(folder, source, vectors)
    index.search(vectors.query("what the cat eats"), 10)

Each namespace and each model has an index in a folder of its own. Any number of processes may search; one at a time
writes. An index that is missing, damaged, or of another version or log is made again, from vectors that are
stored: no text is embedded twice.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from clew.errors import StoreError
from clew.index import files
from clew.index.arrays import Floats, np
from clew.index.embedded import Progress, Texts, Vectors, silent
from clew.index.graph import MAKE
from clew.index.rows import Row, Source, batches
from clew.index.unread import Unread
from clew.index.vector_folder import WAIT_SECONDS, Folder
from clew.index.vector_reader import Lost
from clew.index.vector_writer import Unwritable

if TYPE_CHECKING:
    from clew.index.pgvector import Server
    from clew.storage.store import Store

VERSION = 1
"""Of what is written. An index of another version is made again."""

BEHIND = 500
"""Rows the index may be behind. A search that finds more writes those into it whose vectors are there."""

STEP = 1_000
"""Rows that a search reads at a time."""

MOST = 1 << 32
"""Pieces that a search gives at most, whatever it is asked for: databases count so far."""

FRESH = 32
"""Texts that a search has embedded, if nothing else is said: what a turn or two have brought."""


class Near(NamedTuple):
    """A piece that was found, and the cosine of its vector with what was looked for."""

    id: str
    piece: int
    score: float


class VectorIndex:
    """An index of the vectors of texts.

    `folder` is where it is kept (None: as long as this object, as it is for vectors that are not stored), `source`
    the log it follows in one `namespace`, `vectors` what makes and keeps the vectors, `text` what of a piece is
    embedded. `mark` identifies what stands at a position of the log, also when that was purged (None: the rows there
    do): an index that has read something else there is of another log. `failure` is why the index could not be
    written the last time, if so: searches still see everything, more slowly.

    With the `store` of the log, if that is on PostgreSQL, the index is kept there, under its `name`, and no folder is
    needed: all machines share it, and pgvector finds the nearest.
    """

    def __init__(
        self,
        folder: Path | None,
        source: Source,
        vectors: Vectors,
        *,
        namespace: str = "default",
        text: Callable[[Mapping[str, str]], str] = lambda piece: piece.get("text", ""),
        mark: Callable[[int], str] | None = None,
        store: Store | None = None,
        name: str = "",
    ) -> None:
        self.failure: StoreError | None = None
        self._texts = Texts(source, namespace, vectors, text, mark)
        made = f"{VERSION}-{vectors.name}"
        self._kept: Folder | Server
        if store is not None and store.database.dialect.name == "postgresql" and vectors.lasting:
            from clew.index.pgvector import Server

            self._place = store.where
            self._kept = Server(store, namespace, f"{name}:{vectors.name}", self._texts, made)
        else:
            if folder is None or not vectors.lasting:
                folder = Path(mkdtemp(prefix="clew-index-"))
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            of = blake2b(f"{namespace}\0{vectors.name}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
            self._place = str(folder / of)
            self._kept = Folder(folder / of, self._texts, f"{made}-{MAKE}")
        self._unread = Unread(self._texts, 0)
        self._more = False
        self._lock = threading.RLock()

    @property
    def waiting(self) -> int:
        """Texts that the last search did not compare, as they have no vector yet; there may be more after them.
        `catch_up` has all of them embedded."""
        return self._unread.waiting + self._more

    def search(
        self,
        vector: Floats | Sequence[float],
        k: int = 10,
        uids: Collection[str] | None = None,
        *,
        fresh: int | None = FRESH,
    ) -> list[Near]:
        """The `k` pieces nearest to a vector of length 1, of these ids or of all. Of equal ones the newer first.

        All that the log held when the call began is compared, as far as it has vectors. About `fresh` texts that have
        none are embedded first (None: all, however long it takes); `waiting` says how many are left.
        Up to 20,000 pieces all are compared; among more, a part in a hundred may be missed. Scores
        are those of the stored vectors.
        """
        wanted, k = np.asarray(vector, np.float32), min(max(k, 0), MOST)
        with self._lock:
            for mend in (self._kept.drop, self.clear):
                try:
                    return self._search(wanted, k, uids, fresh)
                except (Lost, files.Damaged, sqlite3.Error):
                    mend()
            return self._search(wanted, k, uids, fresh)

    def catch_up(self, progress: Progress = silent, *, wait: float = WAIT_SECONDS) -> bool:
        """Has all of the log embedded and the index read it. False when another process is doing so for longer than
        `wait` seconds. `progress` is told after each batch how many texts were embedded.

        Raises `StoreError` when the index cannot be written, and what the embedder raises: what was embedded before
        is kept, and the next call goes on there.
        """
        with self._lock:
            done = self._write(wait, None, progress)
            if self.failure:
                raise self.failure
            return done

    def clear(self) -> None:
        """Deletes the index. It is made again, from the stored vectors, when it is needed.

        Raises `StoreError` when it cannot be deleted, or another process writes there for longer than a minute.
        """
        with self._lock:
            self._unread = Unread(self._texts, 0)
            self._kept.clear()

    def renew(self) -> None:
        """Deletes the index, and the vectors of those of its texts that the log no longer has. Reads all of the log:
        for logs that may tell something else than they did when the index read them. Raises as `clear` does."""
        with self._lock:
            self._kept.refresh()
            gone = self._kept.keys | self._unread.keys
            for row in self._texts.rows(0) if gone else ():
                gone.difference_update(entry.key for entry, _ in self._texts.pieces(row))
            if gone:
                self._texts.vectors.forget(list(gone))
            self.clear()

    # -- inside

    def _search(self, wanted: Floats, k: int, uids: Collection[str] | None, fresh: int | None) -> list[Near]:
        self._take_up()
        self._read_on(fresh)
        found = self._unread.best(wanted, k, uids) + self._kept.best(wanted, k, uids)
        return [Near(one.id, one.piece, min(-one.minus, 1.0)) for one in sorted(found)[:k]]

    def _take_up(self) -> None:
        """The index as it is now, and beside it only what it has not read."""
        self._kept.refresh()
        if self._kept.position < self._unread.start:
            self._unread = Unread(self._texts, self._kept.position)
        self._unread.forget(self._kept.position)
        self._kept.hide(self._unread.ids)

    def _read_on(self, fresh: int | None) -> None:
        """Reads the log to its end, or as far as the texts that may be embedded last."""
        self._more, vectors = True, self._texts.vectors
        while self._more:
            rows = self._next()
            self._more = len(rows) >= STEP
            vectors.forget(self._kept.without(self._unread.add(rows)))
            embedded = self._unread.embed(fresh)
            fresh = None if fresh is None else fresh - embedded
            self._kept.hide(self._unread.ids)
            if self._unread.waiting:
                return
            noted = embedded or any(not row.pieces for row in rows)  # what is embedded is to be forgotten some day
            if (noted or len(self._unread) > BEHIND) and self._write(0.0, self._unread.end, silent):
                self._take_up()

    def _next(self) -> list[Row]:
        return next(batches(self._texts.rows(self._unread.end), STEP), [])

    def _write(self, wait: float, until: int | None, progress: Progress) -> bool:
        self.failure = None
        try:
            return self._kept.write(wait, until, progress)
        except (Unwritable, files.Damaged) as error:
            self.failure = StoreError(f"the index in {self._place} cannot be written: {error}; searches go without it")
            return False
