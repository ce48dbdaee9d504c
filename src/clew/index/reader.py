"""An index as one process reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from tantivy import Searcher

from clew.index import files
from clew.index.engine import Schema, State

TRIES = 10
"""How often opening starts again because another process has committed meanwhile."""


class Reader:
    """What the index in a folder holds at its last commit.

    Nothing while it is missing, damaged, of another make or of another log; `damage` says so. `mark`
    gives the mark of a position of the log.
    """

    def __init__(self, schema: Schema, folder: Path, made: str, mark: Callable[[int], str]) -> None:
        self._schema = schema
        self._folder = folder
        self._made = made
        self._mark = mark
        self._whole: set[str] = set()
        self._stamp: tuple[int, int, int] | None = None
        self.searcher: Searcher | None = None
        self.state: State | None = None
        self.damage = ""

    def refresh(self) -> bool:
        """Takes up the last commit; True when it is another one than before."""
        stamp = files.stamp(self._folder)
        if stamp == self._stamp:
            return False
        for _ in range(TRIES):
            self._take_up()
            now = files.stamp(self._folder)
            if now == stamp:
                break
            stamp = now
        self._stamp = stamp
        return True

    def _take_up(self) -> None:
        self.searcher, self.state, self.damage = None, None, ""
        if files.stamp(self._folder) is None:
            return
        try:
            files.check(self._folder, self._whole)
            searcher = self._schema.open(self._folder).searcher()
            state = self._schema.state(searcher)
        except (files.Damaged, ValueError, msgspec.MsgspecError) as error:
            self.damage = str(error)
            return
        if state.made != self._made:
            self.damage = f"made by version {state.made}, not {self._made}"
        elif searcher.num_docs != state.totals.documents + 1:
            self.damage = f"{searcher.num_docs - 1} documents, not {state.totals.documents}"
        elif state.mark != self._mark(state.position):
            self.damage = f"at position {state.position} the log has something else"
        else:
            self.searcher, self.state = searcher, state
