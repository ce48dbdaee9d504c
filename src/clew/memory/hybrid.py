"""`HybridMemory`: several memories as one."""

from __future__ import annotations

import secrets
from typing import Any

from msgspec.structs import replace

from clew.memory.base import Memory, Query
from clew.memory.entity import EntityMemory
from clew.memory.records import MemoryRecord


class HybridMemory(Memory):
    """What is appended goes to every one of `memories`; what they show is shown in their order.

    A record that several show is shown once, where it comes last: so a window at the end is whole. Give them the
    same `log`, and what is said is stored once. `extract` asks for the facts of those that have any.
    """

    def __init__(self, *memories: Memory) -> None:
        self.memories = memories

    def append(self, record: MemoryRecord) -> None:
        record = replace(record, id=record.id or secrets.token_hex(8))
        for memory in self.memories:
            memory.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        found = [r for memory in self.memories for r in memory.retrieve(query, state, observation)]
        return list({r.id or id(r): r for r in reversed(found)}.values())[::-1]

    def summarize(self, max_items: int = 5) -> str:
        texts = [memory.summarize(max_items) for memory in self.memories]
        return "\n".join(dict.fromkeys(line for text in texts if text for line in text.split("\n")))

    def evict(self) -> int:
        """Evicts in each; a record that went out of sight in several counts in each of them."""
        return sum(memory.evict() for memory in self.memories)

    def reset(self, run_id: str | None = None) -> None:
        for memory in self.memories:
            memory.reset(run_id)

    def extract(self) -> None:
        """Asks about the turns that wait, in each `EntityMemory`."""
        for memory in self.memories:
            if isinstance(memory, EntityMemory):
                memory.extract()

    async def aextract(self) -> None:
        """As `extract`, with the model's async calls."""
        for memory in self.memories:
            if isinstance(memory, EntityMemory):
                await memory.aextract()
