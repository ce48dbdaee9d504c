"""`RecallMemory`: what a log holds, as far as it answers the question at hand."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.log import RecordLog
from clew.memory.recall import Recall
from clew.memory.records import MemoryRecord, folded
from clew.memory.stream import Stream
from clew.memory.why import Recalled

TIMES = 3
"""How many times as many hits as are shown are asked for: some may be of other roles or steps."""


class RecallMemory(Memory):
    """Shows the `top_k` records of a log that answer the query's `text` best, whatever their kind and session;
    without a text the newest messages of this run.

    Each record's metadata says its `score` and `why`. The question itself is no answer. `recall` says how to search
    (with an embedder, with a half-life, …); without one it is words alone. Retrieval has no place for the last
    turns: compose it with a `WindowMemory` in a `HybridMemory`.
    """

    def __init__(
        self, log: RecordLog | None = None, recall: Recall | None = None, *, top_k: int = 5, name: str = "recall"
    ) -> None:
        self.log = log if log is not None else recall.log if recall is not None else RecordLog()
        self.recall = recall if recall is not None else Recall(self.log)
        self.top_k = top_k
        self._stream = Stream(self.log, name)

    def append(self, record: MemoryRecord) -> None:
        self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        query = query or {}
        text, k, asked = str(query.get("text") or ""), int(query.get("top_k", self.top_k)), wanted(query)
        if k <= 0:
            return []
        if not text.strip():
            return self._stream.last(k, asked)
        hits = self.recall.recall(text, TIMES * k + 1)
        found = [hit for hit in hits if asked(hit.record) and folded(hit.record.text) != folded(text)]
        return [_explained(hit) for hit in found[:k]]

    def summarize(self, max_items: int = 5) -> str:
        return lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        """Begins a new run. What was said before is still recalled by what a question asks for."""
        self._stream.begin()


def _explained(hit: Recalled) -> MemoryRecord:
    said = {"score": round(hit.score, 6), "why": str(hit.why)}
    return replace(hit.record, metadata={**hit.record.metadata, **said})
