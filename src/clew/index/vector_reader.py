"""An index of vectors as one process reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from clew.index.arrays import Floats, exact, unpacked
from clew.index.embedded import Texts
from clew.index.files import Damaged
from clew.index.flat import Entry, Flat, Scored
from clew.index.graph import Nearby
from clew.index.shelf import FILE, Shelf, State
from clew.index.vector_writer import CHUNK, load

CANDIDATES = 50
"""Texts, at least, that are taken from the graph to be scored by their stored vectors."""

TIMES = 4
"""How many times as many candidates as results are wanted."""

TRIES = 10
"""How often taking up an index starts again because another process has written it anew meanwhile."""


class Lost(Exception):
    """The index has entries whose vectors are no longer in the store."""


class Reader:
    """What the index in a folder holds. Nothing while it is missing, damaged, of another make or of another log;
    `damage` says so. `whole` are the inodes of files that are known to be undamaged; it grows."""

    def __init__(self, folder: Path, texts: Texts, made: str, whole: set[int]) -> None:
        self._folder = folder
        self._texts = texts
        self._made = made
        self._whole = whole
        self._shelf: Shelf | None = None
        self._seen: tuple[int, int] = (0, 0)
        self._nearby: Nearby | None = None
        self._flat = Flat()
        self._hidden: set[str] = set()
        self.state: State | None = None
        self.damage = ""

    @property
    def position(self) -> int:
        """How far the index has read."""
        return self.state.position if self.state else 0

    @property
    def keys(self) -> set[str]:
        """The keys of the texts it has."""
        if self._shelf is None:
            return set()
        try:
            return {key for _, keys in self._shelf.texts(CHUNK) for key in keys}
        except (Damaged, sqlite3.Error) as error:
            self._nothing(str(error))
            return set()

    def refresh(self) -> None:
        """Takes up what has been written."""
        for _ in range(TRIES):
            try:
                self._refresh()
            except FileNotFoundError:  # the graph has been replaced
                self._seen = (0, 0)
            except (Damaged, sqlite3.Error, OSError) as error:
                self._nothing(str(error))
                return
            else:
                return
        self._nothing("its graph is not there")

    def drop(self) -> None:
        """Lets go of what was taken up: it is taken up anew."""
        self._nothing("")

    def without(self, keys: Collection[str]) -> list[str]:
        """Those of the keys of texts that the index does not have."""
        return list(keys) if self._shelf is None else self._shelf.without(keys)

    def hide(self, ids: Collection[str]) -> None:
        """What the index has of these ids is no longer true; until it is taken up anew."""
        new = set(ids) - self._hidden
        if self._shelf is not None:
            new = (new & self._flat.ids) | self._shelf.having(new)  # an id it never had hides nothing
        self._flat.drop(new)
        self._hidden |= new

    def best(self, query: Floats, k: int, ids: Collection[str] | None) -> list[Scored]:
        """The `k` nearest entries, of some ids or of all; sorted. Raises `Lost`."""
        if self._shelf is None or self.state is None:
            return []
        scored = self._flat.best(query, k, ids)
        if self._nearby is not None:
            if ids is None:
                ns = self._nearby.nearest(query, max(CANDIDATES, TIMES * k))
                found = self._shelf.newest(ns, k + len(self._hidden))
            else:
                found = self._shelf.folded(ids, self.state.graph.end)
            scored += rescored(self._texts, query, [entry for entry in found if entry.id not in self._hidden])
        return sorted(scored)[:k]

    def _refresh(self) -> None:
        try:
            inode = (self._folder / FILE).stat().st_ino
        except (FileNotFoundError, NotADirectoryError):
            self._nothing("")
            return
        if self._shelf is None or inode != self._seen[0]:
            self._nothing("")
            self._shelf = Shelf(self._folder)
            self._shelf.check(self._whole, inode)
        seen = (inode, self._shelf.version())
        if seen == self._seen:
            return
        with self._shelf.snapshot() as state:
            self._take_up(self._shelf, state)
        self._seen = seen

    def _take_up(self, shelf: Shelf, state: State) -> None:
        old = self.state
        if state.made != self._made:
            raise Damaged(f"made by version {state.made or 'none'}, not {self._made}")
        if (old is None or old.mark != state.mark) and state.mark != self._texts.mark(state.position):
            raise Damaged(f"at position {state.position} the log has something else")
        if old is None or old.graph.file != state.graph.file:
            self._nearby = load(self._folder, state.graph) if state.graph.file else None
        if old is None or old.graph != state.graph or old.removals != state.removals or self._hidden:
            self._flat, self._hidden, old = Flat(), set(), None
        self._flat.add(*shelf.unfolded(old.position if old else -1))
        self.state, self.damage = state, ""

    def _nothing(self, damage: str) -> None:
        if self._shelf is not None:
            self._shelf.close()
        self._shelf, self._nearby, self.state, self.damage = None, None, None, damage
        self._flat, self._hidden, self._seen = Flat(), set(), (0, 0)


def rescored(texts: Texts, query: Floats, entries: list[Entry]) -> list[Scored]:
    """The entries with their scores by the stored vectors. Raises `Lost`."""
    keys = list({entry.key for entry in entries})
    held = texts.vectors.held(keys)
    if len(held) < len(keys):
        raise Lost(f"{len(keys) - len(held)} of {len(keys)} texts")
    if not keys:
        return []
    scores = dict(zip(keys, exact(unpacked([held[key] for key in keys]), query), strict=True))
    return [Scored.of(scores[entry.key], entry) for entry in entries]
