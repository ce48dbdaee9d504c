"""Files that several processes write: one at a time, whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PRIVATE = 0o600
"""Mode of the files made here: what is remembered is nobody else's."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other processes that use this from the file until the block ends. The lock ends with the process.

    It is a lock on `.<name>.lock` beside the file, because the file itself is replaced.
    """
    for folder in reversed(path.absolute().parents):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def replaced(path: Path, text: str) -> None:
    """Puts a text in the place of a file: after a crash there is the old one or the new one, whole.

    What was there is kept beside it as `<name>.bak`. The mode of the file stays.
    """
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(made, path.stat().st_mode & 0o777)
            backup = path.with_name(f"{path.name}.bak")
            backup.unlink(missing_ok=True)
            os.link(path, backup)
        os.replace(made, path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    _synced(path.parent)


def appended(path: Path, text: str) -> None:
    """Adds a text to the end of a file, made if need be; on disk when this returns."""
    new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    try:
        data = text.encode("utf-8")
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    if new:
        _synced(path.parent)


def _synced(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
