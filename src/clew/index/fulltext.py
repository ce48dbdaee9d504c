"""The full-text index: a follower of a log, searched together with what it has not read yet.

Each namespace has an index of its own, in a folder of its own: how rare a word is in one tenant's texts
says nothing to another, and forgetting a tenant is deleting a folder. Any number of processes may search;
one at a time writes. An index that is missing, damaged, or of another version or log is made again.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path

from clew.errors import StoreError
from clew.index import files
from clew.index.engine import Schema
from clew.index.reader import Reader
from clew.index.rows import Hit, Row, Source, by_position
from clew.index.rows import mark as of_rows
from clew.index.view import View
from clew.index.writer import bring_up
from clew.text import Query, fingerprint, pattern, value_of
from clew.text.patterns import characters

VERSION = 2
"""Of what is written. An index of another version is made again."""

BEHIND = 500
"""Rows the index may be behind. A search that finds more has it catch up, if no other process is doing so."""

FAR_BEHIND = 10_000
"""Rows from which on a search rather waits for another process that is catching up."""

WAIT_SECONDS = 60.0
"""How long it waits."""


class FullText:
    """An index of texts with several fields.

    `folder` is where it is kept, `source` the log it follows, `fields` what a word in each field counts
    (`{"text": 1.0, "context": 0.2}`), `facets` the names of exact values that queries may ask for.
    `mark` identifies what the log of a namespace has at a position (None: the rows that are there).
    `failure` is why the index could not be written the last time, if so: searches still see everything,
    more slowly.
    """

    def __init__(
        self,
        folder: Path,
        source: Source,
        fields: Mapping[str, float],
        facets: Collection[str] = (),
        *,
        mark: Callable[[str, int], str] | None = None,
    ) -> None:
        self.failure: StoreError | None = None
        self._folder = folder
        self._source = source
        self._mark = mark or partial(of_rows, source)
        self._weights = dict(fields)
        self._facets = frozenset(facets)
        self._schema = Schema(self._weights)
        self._made = f"{VERSION}-{fingerprint()}"
        self._views: dict[str, View] = {}
        self._lock = threading.RLock()

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        namespace: str = "default",
        filters: Mapping[str, Collection[str]] | None = None,
    ) -> list[Hit]:
        """The `k` best pieces for a query, of those that have one of the values given for each facet.

        All that the log held when the call began is searched. Of equal scores the newer comes first. When nothing
        is found of a query in Chinese, its single characters are looked for.
        """
        values = {facet: {value_of(value) for value in some} for facet, some in (filters or {}).items()}
        with self._lock:
            view = self._view(namespace)
            found = view.find(pattern(query, self._facets), k, values)
            return found or view.find(characters(query), k, values)

    def catch_up(self, namespace: str = "default", *, wait: float = WAIT_SECONDS) -> bool:
        """Has the index read all of the log. False when another process is doing so for longer than `wait` seconds.

        Raises `StoreError` when the index cannot be written.
        """
        done = self._write(namespace, wait)
        if self.failure:
            raise self.failure
        return done

    def clear(self, namespace: str = "default") -> None:
        """Deletes a namespace's files: they hold what was forgotten until they happen to be merged. The index is
        made again from the log when it is needed.

        Raises `StoreError` when they cannot be deleted, or another process writes there for longer than a minute.
        """
        place = self._place(namespace)
        with self._lock:
            self._views.pop(namespace, None)
            if not (place / "index").exists():
                return
            try:
                with files.writing(place, WAIT_SECONDS) as mine:
                    if not mine:
                        raise StoreError(f"the index in {place} is being written by another process; try again")
                    shutil.rmtree(place / "index")
            except (OSError, sqlite3.Error) as error:
                raise StoreError(f"the index in {place} cannot be deleted: {error}; delete the folder") from error

    def _write(self, namespace: str, wait: float) -> bool:
        place = self._place(namespace)
        self.failure = None
        try:
            with files.writing(place, wait) as mine:
                if mine:
                    marked = partial(self._mark, namespace)
                    bring_up(self._schema, place / "index", self._source, namespace, self._made, marked)
                return mine
        except (OSError, ValueError, sqlite3.Error) as error:
            self.failure = StoreError(f"the index in {place} cannot be written: {error}; searches go without it")
            return False

    def _view(self, namespace: str) -> View:
        """The namespace's index as it is now, and all that the log has beside it."""
        view = self._views.get(namespace)
        if view is None:
            marked = partial(self._mark, namespace)
            reader = Reader(self._schema, self._place(namespace) / "index", self._made, marked)
            view = self._views[namespace] = View(self._schema, self._weights, reader)
        view.refresh()
        if not self._read(namespace, view, BEHIND):
            far = not self._read(namespace, view, FAR_BEHIND)
            self._write(namespace, WAIT_SECONDS if far else 0.0)
            view.refresh()
            self._read(namespace, view, None)
        return view

    def _read(self, namespace: str, view: View, limit: int | None) -> bool:
        """Reads on in the log until more than `limit` rows are beside the index; True when there are no more."""
        new: list[Row] = []
        for rows in by_position(self._source.rows(namespace, view.tail.end)):
            new += rows
            if limit is not None and len(view.tail) + len(new) > limit:
                break
        view.add(new)
        return limit is None or len(view.tail) <= limit

    def _place(self, namespace: str) -> Path:
        return self._folder / blake2b(namespace.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
