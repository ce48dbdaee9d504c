"""The files of an index: who may write them, and whether they are whole.

Tantivy trusts its files: damage makes it find wrong things or end the program. Each of its segment files ends
with a checksum, though, so they are checked here when an index is opened, each file once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

META = "meta.json"
"""Names the segments that count; replaced in one step by each commit."""

_MAGIC = 1337
_TRAILER = 8
_CHUNK = 1 << 20
_DELETES = "del"


class Damaged(Exception):
    """The files are not what an index wrote; it has to be made again."""


@contextmanager
def writing(folder: Path, seconds: float) -> Iterator[bool]:
    """Holds the right to write an index; False when another has it for longer than `seconds`.

    It is a lock of SQLite's on a file of its own: the same on every system, and gone with its process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = sqlite3.connect(folder / "lock", timeout=seconds, isolation_level=None, check_same_thread=False)
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            yield False
        else:
            yield True
    finally:
        lock.close()


def stamp(folder: Path) -> tuple[int, int, int] | None:
    """Changes with each commit; None when there is no index."""
    try:
        found = (folder / META).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def sweep(folder: Path) -> None:
    """Removes what killed writers left of the files that would have replaced others. Only for the one who may write."""
    for path in folder.glob(".tmp*"):
        path.unlink(missing_ok=True)


def check(folder: Path, whole: set[str]) -> None:
    """Raises `Damaged` unless all files that count are whole. `whole` are those that are known to be; it grows."""
    for name in _names(folder):
        if name not in whole:
            try:
                _check(folder / name)
            except OSError as error:
                raise Damaged(f"{name}: {error}") from error
            whole.add(name)


class _Deletes(Struct):
    opstamp: int


class _Segment(Struct):
    segment_id: str
    deletes: _Deletes | None = None


class _Meta(Struct):
    segments: list[_Segment]


def _names(folder: Path) -> list[str]:
    """The files of the segments that count."""
    try:
        meta = msgspec.json.decode((folder / META).read_bytes(), type=_Meta)
        held = os.listdir(folder)
    except (OSError, msgspec.MsgspecError) as error:
        raise Damaged(f"{META}: {error}") from error
    names = []
    for segment in meta.segments:
        id = segment.segment_id.replace("-", "")
        names += [name for name in held if name.startswith(f"{id}.") and not name.endswith(f".{_DELETES}")]
        if segment.deletes:
            names.append(f"{id}.{segment.deletes.opstamp}.{_DELETES}")
    return names


class _Footer(Struct):
    crc: int


def _check(path: Path) -> None:
    """A file is its content, a footer in JSON with the content's CRC-32, the footer's length and a magic number."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _TRAILER:
            raise Damaged(f"{path.name}: {size} bytes")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            length, magic = (int.from_bytes(data[at : at + 4], "little") for at in (size - 8, size - 4))
            end = size - _TRAILER - length
            if magic != _MAGIC or end < 0:
                raise Damaged(f"{path.name}: no footer")
            try:
                footer = msgspec.json.decode(data[end : size - _TRAILER], type=_Footer)
            except msgspec.MsgspecError as error:
                raise Damaged(f"{path.name}: {error}") from error
            found = 0
            for at in range(0, end, _CHUNK):
                found = crc32(data[at : min(at + _CHUNK, end)], found)
            if found != footer.crc:
                raise Damaged(f"{path.name}: checksum {found}, not {footer.crc}")
