"""A memory in one JSON file: to move it, to keep a copy, to read it. Its whole past is in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from clew.errors import ClewError
from clew.memory.changes import Change
from clew.memory.files import locked, replaced
from clew.memory.log import RecordLog
from clew.memory.state import State

VERSION = 1
"""Version of the file's form."""


class Saved(Struct, frozen=True):
    """The file: whose memory it is, all its changes in the order in which they came, and the version of the form."""

    namespace: str
    changes: tuple[Change, ...]
    clew_memory: int = VERSION

    @property
    def records(self) -> int:
        """How many records hold by these changes."""
        state = State(self.changes)
        return sum(1 for _ in state.records(state.newest[0]))


class Report(Struct, frozen=True):
    """How many records the file held before, and holds now."""

    before: int
    after: int


class WouldLose(ClewError):
    """A fuller memory would be replaced by an emptier one; `force=True` does it all the same."""

    def __init__(self, where: str, before: int, after: int) -> None:
        super().__init__(f"{where} holds {before} records and would be left with {after}; force=True does it anyway")
        self.before = before
        self.after = after


class BadFile(ClewError):
    """A file is no saved memory. It was left as it is."""


def save(log: RecordLog, path: str | Path, *, force: bool = False) -> Report:
    """Saves a memory, atomically; what the file held is kept as `<name>.bak`.

    Raises `WouldLose` when it holds more records than the memory, and `BadFile` when it holds something else.
    """
    path = Path(path).resolve()
    made = Saved(log.path, tuple(log.export()))
    after = made.records
    with locked(path):
        before = read(path).records if path.exists() and not force else 0
        if after < before:
            raise WouldLose(str(path), before, after)
        written(path, made)
    return Report(before, after)


def load(path: str | Path, log: RecordLog) -> int:
    """Takes a saved memory into a log; how many changes were new. Nothing deleted in the log comes back.

    Raises `BadFile`; a file that is not there is an error too.
    """
    return log.merge(read(Path(path)).changes)


def written(path: Path, saved: Saved) -> None:
    """Puts a memory in the place of a file, which is `locked`."""
    text = msgspec.json.format(msgspec.json.encode(saved), indent=2).decode()
    replaced(path, text + "\n")


def read(path: Path) -> Saved:
    """What a file holds. Raises `BadFile`."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Saved)
    except FileNotFoundError as error:
        raise BadFile(f"there is no file {path}") from error
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}; check what it is and its permissions") from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadFile(f"{path} is no saved memory ({error}); it was left as it is: move it aside") from error
    if found.clew_memory > VERSION:
        raise BadFile(f"{path} has version {found.clew_memory}; this Clew knows {VERSION}: update Clew to read it")
    return found
