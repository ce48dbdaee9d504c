"""Memories in a JSON file (`json:FILE`): one that a person can read, edit, and keep with a project.

The file is that of `clew.memory.saved`, kept up to date: each write replaces it whole, so it is for some thousands of
changes, not for millions. Several processes may use it, and an editor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from clew.errors import StoreError
from clew.memory.changes import from_row, kept, purges_of, to_row
from clew.memory.files import locked
from clew.memory.folded import Folded
from clew.memory.known import Ledger
from clew.memory.saved import BadFile, Saved, read, written
from clew.storage.changes import Decide, Restarted
from clew.storage.locate import open_store
from clew.storage.rows import ChangeRow

Stamp = tuple[int, int, int]


class JsonFile:
    """A JSON file as the place of one memory. `store` is in memory: vectors are made anew by each process."""

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise StoreError("json: needs the path of a file, as in json:memory.json")
        try:
            self.path = Path(path).expanduser().resolve()  # one file has one lock, by whatever link it is reached
        except (OSError, ValueError) as error:
            raise StoreError(f"json:{path}: {error}; give the path of a file") from error
        self.store = open_store("memory://")

    def ledger(self, namespace: str) -> Ledger:
        """The log in the file. Raises `BadFile` when it holds another memory, or something else."""
        return Folded(FileChanges(self.path, namespace))

    def namespaces(self) -> list[str]:
        """The namespace of the memory in the file, if there is one."""
        return [read(self.path).namespace] if self.path.exists() else []

    def close(self) -> None:
        """Lets go of the file."""
        self.store.close()


class FileChanges:
    """The changes in a file: a `ChangeLog`. What is edited in the file is noticed at the next reading.

    What is purged is not written again; the copy beside the file, which has it, is deleted.
    """

    def __init__(self, path: Path, namespace: str) -> None:
        self._path = path
        self._namespace = namespace
        self._stamp: Stamp | None = None
        self._rows: list[ChangeRow] = []
        self._most = 0
        self._read()

    def after(self, position: int) -> list[ChangeRow]:
        before = self._rows[:position]
        self._read()
        if self._rows[:position] != before:
            raise Restarted(f"{self._path} has been edited")
        return self._rows[position:]

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        with self._reporting(), locked(self._path):
            fresh = self.after(after)
            here = {row.uid for row in self._rows}
            rows = [row for row in {row.uid: row for row in decide(fresh)}.values() if row.uid not in here]
            placed = [row._replace(position=n) for n, row in enumerate(rows, len(self._rows) + 1)]
            if placed:
                self._write([*self._rows, *placed])
        return placed

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        """As in every log."""
        with self._reporting(), locked(self._path):
            self._read()
            less = {row.position: row for row in rows}
            if less:
                self._write([less.get(row.position, row) for row in self._rows])

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._path}: {error.strerror}; nothing was written: check the folder and the disk"
            ) from error

    def _read(self) -> None:
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        found = read(self._path) if stamp is not None else None
        if found is not None and found.namespace != self._namespace:
            raise BadFile(
                f"{self._path} holds the memory of {found.namespace}, not of {self._namespace}; "
                "each namespace needs a file of its own"
            )
        changes = found.changes if found is not None else ()
        self._rows = [to_row(one)._replace(position=n) for n, one in enumerate(changes, 1)]
        self._stamp = stamp
        self._most = max(self._most, len(self._rows))

    def _write(self, rows: list[ChangeRow]) -> None:
        if len(self._rows) < self._most:
            raise BadFile(
                f"{self._path} held {self._most} changes and now holds {len(self._rows)}: nothing was written over it; "
                f"restore it from {self._path.name}.bak, or open the memory anew to go on from what is there"
            )
        told = [from_row(row) for row in rows]
        purges = purges_of(told)
        left = tuple(kept(one, purges) for one in told)  # with the purge itself: no crash leaves what it erases
        written(self._path, Saved(self._namespace, left))
        if any(new is not old for new, old in zip(left, told, strict=True)):
            self._path.with_name(f"{self._path.name}.bak").unlink(missing_ok=True)
            rows = [to_row(one)._replace(position=n) for n, one in enumerate(left, 1)]
        self._rows, self._most, self._stamp = rows, len(rows), self._stamped()

    def _stamped(self) -> Stamp | None:
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}; check the folder and its permissions") from error
        return found.st_ino, found.st_size, found.st_mtime_ns
