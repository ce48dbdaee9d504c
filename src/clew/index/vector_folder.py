"""The index of vectors in a folder: what one process reads of it, and how it is written."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from clew.errors import StoreError
from clew.index import files, vector_writer
from clew.index.embedded import Progress, Texts
from clew.index.vector_reader import Reader
from clew.index.vector_writer import Unwritable, bring_up, filing

WAIT_SECONDS = 60.0
"""How long to wait for another process that is writing."""


class Folder(Reader):
    """A folder of an index. Any number of processes may read, one at a time writes."""

    def __init__(self, place: Path, texts: Texts, made: str) -> None:
        super().__init__(place, texts, made, set())

    def write(self, wait: float, until: int | None, progress: Progress) -> bool:
        """Has the index read the log, up to a position. False when another process writes for longer than `wait`
        seconds. Raises `Unwritable`, `Damaged`, and what embedders and stores raise."""
        with ExitStack() as stack:
            with filing():
                mine = stack.enter_context(files.writing(self._folder, wait))
            if mine:
                bring_up(self._folder, self._texts, self._made, self._whole, until=until, progress=progress)
            return mine

    def clear(self) -> None:
        """Deletes the index. Raises `StoreError` when it cannot be deleted, or another process writes there for longer
        than a minute."""
        self.drop()
        if not self._folder.exists():
            return
        try:
            with filing(), files.writing(self._folder, WAIT_SECONDS) as mine:
                if not mine:
                    raise StoreError(f"the index in {self._folder} is being written by another process; try again")
                vector_writer.clear(self._folder)
        except (Unwritable, files.Damaged) as error:
            raise StoreError(f"the index in {self._folder} cannot be deleted: {error}; delete the folder") from error
