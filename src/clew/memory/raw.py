"""QitOS's own memories (0.3.0), as they really behave: `faithful=True` of the classes of the same name.

They are lists in the process. `WindowRaw` cuts the window before it filters, and ignores `max_items`. `SummaryRaw`
stores, when it evicts, a text of the records it keeps instead of those it drops, and never shows it. `VectorRaw`
scores by a dot product that long texts win. `clew.memory.markdown_raw` has the Markdown file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.memory.base import LINE, Memory, Query
from clew.memory.records import MemoryRecord

SUMMARY_LINE = 80
"""Length of a record in a summary of `SummaryRaw`, in characters."""

BUCKETS = 16
"""Dimensions of QitOS's default embedding."""


class WindowRaw(Memory):
    """QitOS's `WindowMemory`."""

    def __init__(self, window_size: int) -> None:
        self.window_size = window_size
        self.records: list[MemoryRecord] = []

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        query = query or {}
        found = self._window()
        if roles := set(query.get("roles") or ()):
            found = [r for r in found if r.role in roles]
        if (first := query.get("step_min")) is not None:
            found = [r for r in found if r.step_id >= int(first)]
        return found

    def summarize(self, max_items: int = 5) -> str:
        return "\n".join(r.line(LINE) for r in self._window()[-max_items:])

    def evict(self) -> int:
        before = len(self.records)
        self.records = self._window()
        return before - len(self.records)

    def reset(self, run_id: str | None = None) -> None:
        self.records = []

    def _window(self) -> list[MemoryRecord]:
        return self.records[-self.window_size :] if self.window_size > 0 else list(self.records)


class SummaryRaw(Memory):
    """QitOS's `SummaryMemory`."""

    def __init__(self, keep_last: int) -> None:
        self.keep_last = keep_last
        self.records: list[MemoryRecord] = []
        self.summaries: list[str] = []

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        return self.records[-int((query or {}).get("max_items", self.keep_last)) :]

    def summarize(self, max_items: int = 5) -> str:
        text = " | ".join(f"{r.role}:{str(r.content)[:SUMMARY_LINE]}" for r in self.records[-max_items:])
        if text:
            self.summaries.append(text)
        return text

    def evict(self) -> int:
        gone = len(self.records) - self.keep_last
        if gone <= 0:
            return 0
        self.summarize(gone)
        self.records = self.records[-self.keep_last :]
        return gone

    def reset(self, run_id: str | None = None) -> None:
        self.records, self.summaries = [], []


class VectorRaw(Memory):
    """QitOS's `VectorMemory`."""

    def __init__(self, embed: Callable[[str], Sequence[float]] | None, top_k: int) -> None:
        self.embed = embed or checksum
        self.top_k = top_k
        self.records: list[MemoryRecord] = []
        self.vectors: list[list[float]] = []

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)
        self.vectors.append(list(self.embed(str(record.content))))

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        query = query or {}
        k, text = int(query.get("top_k", self.top_k)), query.get("text")
        if not text:
            return self.records[-k:]
        wanted = self.embed(str(text))
        score = [dot(wanted, v) for v in self.vectors]
        ranked = sorted(range(len(self.records)), key=lambda i: -score[i])
        return [self.records[i] for i in ranked[:k]]

    def summarize(self, max_items: int = 5) -> str:
        return "\n".join(str(r.content)[:LINE] for r in self.records[-max_items:])

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        self.records, self.vectors = [], []


def checksum(text: str) -> list[float]:
    """QitOS's default embedding: sixteen sums over characters by their place. It knows nothing of meaning."""
    sums = [0.0] * BUCKETS
    for place, letter in enumerate(text):
        sums[place % BUCKETS] += (ord(letter) % 31) / 31.0
    return sums


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The dot product, over the shorter length."""
    return sum(x * y for x, y in zip(a, b, strict=False))
