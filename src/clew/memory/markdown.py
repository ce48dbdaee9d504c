"""`MarkdownFileMemory`: records in a file that a person can read and edit."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clew.errors import UnknownName
from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.clearing import cleared
from clew.memory.files import appended, locked, replaced
from clew.memory.markdown_raw import MOST_ITEMS, MarkdownRaw
from clew.memory.markdown_text import HEAD, Document, forgotten, read, write
from clew.memory.records import MemoryRecord, digest, plain
from clew.memory.saved import WouldLose
from clew.messages import sanitized


class MarkdownFileMemory(Memory):
    """The records of a Markdown file (see `clew.memory.markdown_text`), of which the last `max_in_memory` are shown.

    The file is the truth: it is read when the memory is opened and whenever it has changed, so what a person or
    another process writes there counts at once. `append` adds a section to its end; `edit` and `forget` change one
    section and leave the rest as it is. Each is on disk when it returns; `edit`, `forget` and `save` replace the
    file as a whole and keep what was there as `<name>.bak`. A forgotten record is not added again. Nothing expires:
    `evict` and `reset` have nothing to do.

    Files of QitOS's own form are read as well. `faithful=True` is QitOS 0.3.0, bit for bit; it never reads the file.
    """

    def __init__(
        self,
        path: str | Path = "memory.md",
        max_in_memory: int = 200,
        *,
        faithful: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.max_in_memory = max_in_memory
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._document = read("")
        self._raw: MarkdownRaw | None = None
        if faithful:
            self._raw = MarkdownRaw(self.path, max_in_memory, lambda: datetime.fromtimestamp(clock(), UTC))
        else:
            self.path = self.path.resolve()  # one file has one lock, by whatever link it is reached
            with locked(self.path):
                if not self.path.exists():
                    appended(self.path, HEAD)

    def append(self, record: MemoryRecord) -> None:
        if self._raw:
            self._raw.append(record)
            return
        if not record.text.strip():
            return
        made = replace(
            cleared(sanitized(replace(record, content=plain(record.content)))[0]),
            id=_id(record.id),
            created=record.created or self._clock(),
        )
        with locked(self.path):
            document = self._read()
            if document.find(made.id) is None and made.id not in document.forgotten:
                self._append(document, document.ending() + write(made))

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        if self._raw:
            return self._raw.retrieve(query)
        query = query or {}
        most = int(query.get("max_items", MOST_ITEMS))
        found = [r for r in self._shown() if wanted(query)(r)]
        return found[-most:] if most > 0 else found

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self._shown(), max_items)

    def evict(self) -> int:
        return self._raw.evict() if self._raw else 0

    def reset(self, run_id: str | None = None) -> None:
        if self._raw:
            self._raw.reset()

    @property
    def records(self) -> list[MemoryRecord]:
        """All records of the file; faithful, those in the process."""
        return list(self._raw.records) if self._raw else self._read().records

    def edit(self, id: str, content: Any) -> None:
        """Gives a record another content. Raises `UnknownName`."""
        with locked(self.path):
            document, section = self._found(id)
            replaced(self.path, document.replaced(section, write(cleared(replace(section.record, content=content)))))

    def forget(self, id: str) -> None:
        """Takes a record out of the file. Raises `UnknownName`."""
        with locked(self.path):
            document, section = self._found(id)
            replaced(self.path, document.replaced(section, forgotten(id)))

    def save(self, records: Sequence[MemoryRecord], *, force: bool = False) -> None:
        """Makes these the records of the file. Raises `WouldLose` when they are fewer than it holds."""
        kept = [cleared(replace(r, id=_id(r.id))) for r in records if r.text.strip()]
        with locked(self.path):
            self._seen = None
            document = self._read()
            if len(kept) < len(document.sections) and not force:
                raise WouldLose(str(self.path), len(document.sections), len(kept))
            gone = document.forgotten | {r.id for r in document.records} - {r.id for r in kept}
            preamble = document.text[: document.sections[0].start] if document.sections else document.text or HEAD
            tombstones = (forgotten(id) for id in sorted(gone) if forgotten(id) not in preamble)
            replaced(self.path, "".join([preamble, *map(write, kept), *tombstones]))

    def _shown(self) -> list[MemoryRecord]:
        records = self._read().records
        return records[-self.max_in_memory :] if self.max_in_memory > 0 else records

    def _append(self, document: Document, text: str) -> None:
        """Adds a text to the file, of which the document is known to be what it holds; it is not read again for that,
        unless another one wrote meanwhile (who edits by hand holds no lock)."""
        torn = document.sections and not document.sections[-1].whole
        size = self._seen[1] + len(text.encode()) if self._seen else -1
        appended(self.path, text)
        seen = _stamp(self.path.stat())
        if seen[1] == size and not torn:
            self._document, self._seen = document.added(text), seen

    def _found(self, id: str) -> tuple[Document, Any]:
        self._seen = None  # what is to be replaced is read to the letter
        document = self._read()
        section = document.find(id)
        if section is None:
            raise UnknownName(f"no record {id!r} in {self.path}")
        return document, section

    def _read(self) -> Document:
        """The file as it is now; parsed again only when it has changed."""
        try:
            with self.path.open("rb") as file:
                now = _stamp(os.fstat(file.fileno()))
                if now != self._seen:
                    self._document = read(file.read().decode("utf-8", "replace"))
                    self._seen = now
        except FileNotFoundError:
            self._document, self._seen = read(""), None
        return self._document


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    """Changes whenever the file does."""
    return found.st_ino, found.st_size, found.st_mtime_ns


def _id(id: str) -> str:
    """The id as it can stand in a line; a new one for an empty one."""
    if not id:
        return secrets.token_hex(8)
    return id if re.fullmatch(r"[\w.:-]{1,100}", id) else digest(id)[:16]
