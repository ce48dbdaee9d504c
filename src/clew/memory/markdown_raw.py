"""QitOS's Markdown memory (0.3.0): `faithful=True` of `MarkdownFileMemory`.

It writes what happens to a file that it never reads. Its form is not safe: contents are Python text and may hold the
fence, metadata is a Python literal. `clew.memory.markdown_text.read` reads it nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from clew.memory.base import LINE, Memory, Query
from clew.memory.records import MemoryRecord

HEAD = "# QitOS Memory Log\n\nThis file is append-only runtime memory for one or more agent runs.\n"
MOST_ITEMS = 50
"""Records that a retrieval shows unless the query says otherwise."""


class MarkdownRaw(Memory):
    """The last records in the process, and a file of all of them."""

    def __init__(self, path: Path, max_in_memory: int, clock: Callable[[], datetime]) -> None:
        self.path = path
        self.max_in_memory = max_in_memory
        self.clock = clock
        self.records: list[MemoryRecord] = []
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(HEAD, "utf-8")

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)
        self.evict()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(written(record, self.clock()))

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        query = query or {}
        found = list(self.records)
        roles, first, most = query.get("roles"), query.get("step_min"), query.get("max_items", MOST_ITEMS)
        if isinstance(roles, list) and roles:
            found = [r for r in found if r.role in roles]
        if isinstance(first, int):
            found = [r for r in found if r.step_id >= first]
        return found[-int(most) :] if int(most) > 0 else found

    def summarize(self, max_items: int = 5) -> str:
        return "\n".join(r.line(LINE) for r in self.records[-max_items:])

    def evict(self) -> int:
        before = len(self.records)
        if self.max_in_memory > 0:
            self.records = self.records[-self.max_in_memory :]
        return before - len(self.records)

    def reset(self, run_id: str | None = None) -> None:
        self.records = []


def written(record: MemoryRecord, at: datetime) -> str:
    """A record in QitOS's form."""
    metadata = f"- metadata: {dict(record.metadata)!r}\n" if record.metadata else ""
    head = f"## Step {record.step_id} · {record.role}\n- time_utc: {at.isoformat()}\n{metadata}"
    return f"{head}\n```text\n{record.content!s}\n```\n"
