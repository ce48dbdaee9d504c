"""`WindowMemory`: the last records, by number or by tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from clew.errors import BadBudget
from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.log import RecordLog
from clew.memory.raw import WindowRaw
from clew.memory.records import MemoryRecord
from clew.memory.stream import Stream
from clew.policies.queue import overflowing
from clew.policies.shrink import head_tail
from clew.tokens.heuristic import Heuristic
from clew.tokens.protocol import TokenCounter

ANSWERS = ("assistant", "tool")
"""Roles that make no sense without the user's message before them."""


class WindowMemory(Memory):
    """Shows the last `window_size` records (0 or less: all), in at most `max_tokens` tokens (None: any number).

    A window that cuts a conversation begins with a message of the user. A single record that is larger than
    `max_tokens` is shown in part, with a marker. What leaves the window stays in the log (`log=None`: one in
    memory). With `flush`, `evict` lets records go only when all that are in sight have more than `max_tokens`, and
    then at least `flush` tokens of them, in whole turns: so the beginning of the window moves seldom, and requests
    that begin with it stay in the provider's cache. `faithful=True` is QitOS 0.3.0, bit for bit.
    """

    def __init__(
        self,
        window_size: int = 20,
        *,
        max_tokens: int | None = None,
        flush: int = 0,
        counter: TokenCounter | None = None,
        log: RecordLog | None = None,
        name: str = "window",
        faithful: bool = False,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise BadBudget(f"a window of {max_tokens} tokens shows nothing; give at least 1, or None for no limit")
        if flush and max_tokens is None:
            raise BadBudget(f"{flush} tokens leave a window when it has more than max_tokens; give max_tokens as well")
        self.window_size = window_size
        self.max_tokens = max_tokens
        self.flush = flush
        self.counter = counter or Heuristic()
        self._raw = WindowRaw(window_size) if faithful else None
        self._stream = Stream(log, name)

    def append(self, record: MemoryRecord) -> None:
        if self._raw:
            self._raw.append(record)
        else:
            self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        if self._raw:
            return self._raw.retrieve(query)
        query = query or {}
        most = int(query.get("max_items") or 0)
        sizes = [n for n in (self.window_size, most) if n > 0]
        return aligned(self._within(filter(wanted(query), self._stream.backward()), min(sizes, default=None)))

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self.retrieve(), max_items)

    def evict(self) -> int:
        if self._raw:
            return self._raw.evict()
        held = self._stream.records()
        if self.flush and self.max_tokens is not None:
            tokens = [self.counter.text(r.text) for r in held]
            gone = held[: overflowing(tokens, [r.role for r in held], self.max_tokens, self.flush)]
        else:
            gone = held[: len(held) - len(self.retrieve())]
        if gone:
            self._stream.pass_over(gone[-1])
        return len(gone)

    def reset(self, run_id: str | None = None) -> None:
        if self._raw:
            self._raw.reset()
        else:
            self._stream.begin()

    @property
    def stored(self) -> int:
        """How many records there are in sight or could come into it."""
        return len(self._raw.records if self._raw else self._stream.records())

    def _within(self, newest: Iterable[MemoryRecord], most: int | None) -> list[MemoryRecord]:
        """At most so many of the newest records, in order, that fit into the tokens; the newest of all in any case,
        in part if need be. Reads no more than that."""
        limit, taken, used = self.max_tokens, list[MemoryRecord](), 0
        for record in islice(newest, most):
            if limit is not None:
                used += self.counter.text(record.text)
                if used > limit:
                    return taken[::-1] or [clipped(record, limit, self.counter)]
            taken.append(record)
        return taken[::-1]


def aligned(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """The records from the first one on that is no answer; all of them when all are answers."""
    first = next((i for i, r in enumerate(records) if r.role not in ANSWERS), 0)
    return list(records[first:])


def clipped(record: MemoryRecord, tokens: int, counter: TokenCounter) -> MemoryRecord:
    """The record with its text in about so many tokens: head, a marker that counts what is left out, tail."""
    keep = 4 * tokens
    text = record.text
    while counter.text(text) > tokens and keep > 0:
        keep = keep * 3 // 4
        text = head_tail(record.text, keep)
    return replace(record, content=text)
