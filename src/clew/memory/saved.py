"""A memory in one JSON file: to move it, to keep a copy, to read it. Its whole past is in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from clew.errors import ClewError
from clew.memory.changes import Change
from clew.memory.files import locked, replaced
from clew.memory.log import RecordLog

VERSION = 1
"""Version of the file's form."""


class Saved(Struct, frozen=True):
    """The file: its version, whose memory it was, how many records held when it was saved, and all changes."""

    clew_memory: int
    namespace: str
    records: int
    changes: tuple[Change, ...]


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
    path = Path(path)
    made = Saved(VERSION, log.path, len(log.records()), tuple(log.export()))
    with locked(path):
        before = _read(path).records if path.exists() and not force else 0
        if made.records < before:
            raise WouldLose(str(path), before, made.records)
        text = msgspec.json.format(msgspec.json.encode(made), indent=2).decode()
        replaced(path, text + "\n")
    return Report(before, made.records)


def load(path: str | Path, log: RecordLog) -> int:
    """Takes a saved memory into a log; how many changes were new. Nothing deleted in the log comes back.

    Raises `BadFile`; a file that is not there is an error too.
    """
    return log.merge(_read(Path(path)).changes)


def _read(path: Path) -> Saved:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Saved)
    except FileNotFoundError as error:
        raise BadFile(f"there is no file {path}") from error
    except msgspec.MsgspecError as error:
        raise BadFile(f"{path} is no saved memory ({error}); it was left as it is: move it aside") from error
    if found.clew_memory > VERSION:
        raise BadFile(f"{path} has version {found.clew_memory}; this Clew knows {VERSION}: update Clew to read it")
    return found
