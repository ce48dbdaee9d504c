"""`SummaryMemory`: a summary of what was evicted, and the records since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.budget import Budget
from clew.errors import BadBudget, ModelError
from clew.history.models import Function, as_model
from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.changes import Change, Marked, Opened, Tried, change
from clew.memory.known import Clock, Known
from clew.memory.log import RecordLog
from clew.memory.raw import SummaryRaw
from clew.memory.records import MemoryRecord, Source, digest
from clew.memory.render import unrecalled
from clew.memory.stream import Stream
from clew.memory.window import ANSWERS
from clew.messages import Message, Role, Text
from clew.models.base import Model
from clew.models.extractive import Extractive
from clew.models.steps import Offline, Steps, arun, run
from clew.policies.queue import flushed
from clew.policies.summarise import summarise
from clew.sessions.view import Run, View
from clew.tokens.heuristic import Heuristic
from clew.tokens.protocol import TokenCounter

SUMMARY = "summary"
"""The kind of a record that stands for earlier ones."""

SUMMARY_TOKENS = 400
"""Limit of a summary, in tokens."""


class SummaryMemory(Memory):
    """Shows a summary of the evicted records, then all records since. `evict` keeps the last `keep_last`, and what
    their turn began with (in a long turn: their round).

    With `max_tokens`, `evict` does nothing until the summary and the records have more; then three quarters of them
    go, as in MemGPT's queue (`clew.policies.queue`), so that it is long until the next time.

    The summary is updated by the model `llm` (None: extracts, which need no model) with what is evicted. Only a
    summary that is a real answer counts: otherwise nothing is evicted, the failure is recorded with what came back
    (`failures`), and the next `evict` tries again. What a summary stands for stays in the log, and the summary
    cites it. `faithful=True` is QitOS 0.3.0, bit for bit.
    """

    def __init__(
        self,
        keep_last: int = 10,
        *,
        max_tokens: int | None = None,
        counter: TokenCounter | None = None,
        llm: Model | Function | None = None,
        log: RecordLog | None = None,
        name: str = "summary",
        faithful: bool = False,
    ) -> None:
        if keep_last < 1 and not faithful:
            raise BadBudget(f"keep_last is {keep_last}: what is asked now must stay as it is; keep at least 1")
        if max_tokens is not None and max_tokens < 1:
            raise BadBudget(
                f"a limit of {max_tokens} tokens leaves nothing; give at least 1, or None to evict by number"
            )
        self.keep_last = keep_last
        self.max_tokens = max_tokens
        self.counter = counter or Heuristic()
        self._raw = SummaryRaw(keep_last) if faithful else None
        self._stream = Stream(log, name)
        self._world = Offline(as_model(llm) or Extractive())
        self._id = digest(f"{SUMMARY}\0{name}")[:16]

    def append(self, record: MemoryRecord) -> None:
        if self._raw:
            self._raw.append(record)
        else:
            self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        if self._raw:
            return self._raw.retrieve(query)
        query = query or {}
        summary = self.summary
        found = self._stream.last(int(query.get("max_items") or 0), wanted(query))
        return [summary, *found] if summary is not None else found

    @property
    def summary(self) -> MemoryRecord | None:
        """The summary as it is now."""
        return self._stream.log.get(self._id)

    @property
    def summaries(self) -> list[str]:
        """All summaries there were, oldest first."""
        if self._raw:
            return list(self._raw.summaries)
        line = self._stream.log.known.line(self._id)
        return [r.text for r in line.history() if isinstance(r, MemoryRecord)] if line else []

    @property
    def failures(self) -> list[Tried]:
        """The attempts to summarise that did not count."""
        tried = self._stream.log.tried(SUMMARY, self._id)
        return [t for t in tried if t.status == "failed"]

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return self._raw.evict() if self._raw else run(self._evict(), self._world)

    async def aevict(self) -> int:
        """As `evict`, with the model's async calls."""
        return self._raw.evict() if self._raw else await arun(self._evict(), self._world)

    def reset(self, run_id: str | None = None) -> None:
        if self._raw:
            self._raw.reset()
            return
        self._stream.begin()
        if self.summary is not None:
            self._stream.log.shut(self._id, reason="reset")

    @property
    def stored(self) -> int:
        """How many records there are beside the summary."""
        return len(self._raw.records if self._raw else self._stream.records())

    def _evict(self) -> Steps[int]:
        gone = yield from self._flush()
        while self.max_tokens is not None and (more := (yield from self._flush())):
            gone += more
        return gone

    def _flush(self) -> Steps[int]:
        held, before = self._stream.records(), self.summary
        old = held[: self._cut(held, before)]
        if not old:
            return 0
        try:
            made = yield from summarise(
                View(Run(), self.counter, 0),
                [_spoken(r) for r in old],
                Budget.of(self._world.model.context_window, output=SUMMARY_TOKENS),
                max_output=SUMMARY_TOKENS,
                previous=before.text if before is not None else "",
            )
        except ModelError as error:
            failed = Tried(self._id, SUMMARY, "failed", f"{type(error).__name__}: {error.reason}", error.raw)
            self._stream.log.write(lambda at: failed)
            return 0
        return len(old) if self._commit(made.text, before, old) else 0

    def _cut(self, held: list[MemoryRecord], summary: MemoryRecord | None) -> int:
        """How many records are to go."""
        if self.max_tokens is None:
            return _whole(held, len(held) - self.keep_last)
        queue = [summary, *held] if summary is not None else held
        tokens = [self.counter.text(r.text) for r in queue]
        if sum(tokens) <= self.max_tokens:
            return 0
        roles = [r.role if r.role in ANSWERS else "user" for r in queue]
        return _whole(held, flushed(tokens, roles, kept=self.keep_last) - len(queue) + len(held))

    def _commit(self, text: str, before: MemoryRecord | None, old: list[MemoryRecord]) -> bool:
        """Stores the summary and takes what it stands for out of sight: both, or neither if another was faster."""
        log, step = self._stream.log, old[-1].step_id
        record = MemoryRecord(
            "system",
            text,
            step,
            {"summary": True, "summarized_through_step": step},
            id=self._id,
            kind=SUMMARY,
            sources=tuple(Source.of(r.id, r.text) for r in old),
        )

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            if known.record(self._id, now()) == before:
                for body in (
                    Opened(record),
                    Marked(self._stream.name, old[-1].created),
                    Tried(self._id, SUMMARY, "ok"),
                ):
                    yield change(now(), body)

        return bool(log.commit(decide))


def _whole(held: list[MemoryRecord], cut: int) -> int:
    """The cut, or one before it that leaves a turn whole; if that would keep more than twice as much, a round."""
    least = max(cut - (len(held) - cut), 0)
    turn = (i for i in range(cut, least - 1, -1) if held[i].role not in ANSWERS)
    return next(turn, next((i for i in range(cut, 0, -1) if held[i].role != "tool"), 0))


def _spoken(record: MemoryRecord) -> Message:
    """The record as a message to summarise, without what memory put into it; other roles than a conversation's are
    named in the text."""
    role: Role = "assistant" if record.role == "assistant" else "user"
    text = unrecalled(record.text)
    named = text if record.role in ("user", "assistant") else f"[{record.role}] {text}"
    return Message(role, (Text(named),))
