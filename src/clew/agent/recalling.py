"""A memory that recalls: what was said is kept in a log of records, and what goes with a question comes back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec.structs import replace

from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.log import RecordLog
from clew.memory.recall import Recall
from clew.memory.records import MemoryRecord
from clew.memory.render import labelled
from clew.memory.stream import Stream
from clew.policies.shrink import head_tail

LINE = 800
"""Characters shown of a remembered record in a list."""


class Recalled(Protocol):
    """A record that was recalled, its score, and why."""

    @property
    def record(self) -> MemoryRecord: ...

    @property
    def score(self) -> float: ...

    @property
    def why(self) -> Any: ...


class Recaller(Protocol):
    """What recalls: `Recall` of `clew.memory.recall`, or anything like it."""

    def recall(
        self, query: str, k: int = 10, *, at: float | None = None, kinds: Collection[str] = ()
    ) -> Sequence[Recalled]: ...


class RecallMemory(Memory):
    """Shows what a query's `text` recalls, best first, each with its `score` and `why` in its metadata.

    `recall` is how (default: by words alone, `Recall(log)`). Without a text it shows the last records. What is
    appended is kept as said; facts that were put into the log in other ways (`remember`) are recalled as well.
    """

    def __init__(self, log: RecordLog, recall: Recaller | None = None, *, name: str = "recall") -> None:
        self.log = log
        self.recall = recall or Recall(log)
        self._stream = Stream(log, name)

    def append(self, record: MemoryRecord) -> None:
        self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        query = query or {}
        text, k = str(query.get("text") or ""), int(query.get("top_k", 5))
        if not text.strip():
            return self._stream.last(k, wanted(query)) if k > 0 else []
        found = [f for f in self.recall.recall(text, k) if wanted(query)(f.record)]
        return [_explained(f) for f in found]

    def summarize(self, max_items: int = 5) -> str:
        return lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        """Nothing: what was said before is what there is to recall."""


def line(found: Recalled) -> str:
    """A recalled record as the model reads it in a list: with its id, by which it can be forgotten."""
    record = found.record
    when = record.valid_from if record.valid_from is not None else record.created
    day = f", {datetime.fromtimestamp(when, UTC):%Y-%m-%d}" if when else ""
    who = f", {labelled(record.speaker or record.role)}"
    return f"- [id {record.id}{day}{who}] {head_tail(' '.join(record.text.split()), LINE)}"


def _explained(found: Recalled) -> MemoryRecord:
    told = {"score": round(found.score, 4), "why": str(found.why)}
    return replace(found.record, metadata={**found.record.metadata, **told})
