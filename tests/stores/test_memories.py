"""What every kind of memory promises, in every place it can be kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clew.memory import (
    BlockMemory,
    EntityMemory,
    HybridMemory,
    MarkdownFileMemory,
    Memory,
    MemoryRecord,
    RecordLog,
    SummaryMemory,
    VectorMemory,
    WindowMemory,
)
from clew.models import Scripted
from plain import Letters
from stores.places import New


def letters(text: str) -> list[float]:
    return [1.0, *(float(text.count(c)) for c in "abc猫鱼")]


KINDS: dict[str, Callable[[RecordLog], Memory]] = {
    "window": lambda log: WindowMemory(4, log=log),
    "window by tokens": lambda log: WindowMemory(0, max_tokens=20, counter=Letters(), log=log),
    "summary": lambda log: SummaryMemory(3, log=log),
    "vector": lambda log: VectorMemory(letters, 2, log=log),
    "entity": lambda log: EntityMemory(Scripted('{"facts": []}'), log=log),
    "block": lambda log: BlockMemory(log=log),
    "hybrid": lambda log: HybridMemory(EntityMemory(log=log), SummaryMemory(2, log=log), WindowMemory(3, log=log)),
}
QUERIES = [None, {"max_items": 2}, {"roles": ["user"]}, {"step_min": 3, "step_max": 5}, {"text": "猫"}]


def say(memory: Memory, n: int, start: int = 0) -> None:
    for step in range(start, start + n):
        memory.append(MemoryRecord("user" if step % 2 == 0 else "assistant", f"text {step} 猫", step))


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_keeps_its_promises(kind: str, new: New) -> None:
    """The promises of `Memory`, one after the other on one log: each store is opened once."""
    log = RecordLog(new())
    memory = KINDS[kind](log)
    say(memory, 11)
    memory.append(MemoryRecord("user", " \n"))
    shown = [memory.retrieve(query) for query in QUERIES]
    assert [memory.retrieve(query) for query in QUERIES] == shown, "reading changes nothing"
    assert all(r.text.strip() for records in shown for r in records), "nothing blank is stored"
    assert memory.summarize(0) == ""
    memory.summarize()
    memory.evict()
    assert memory.evict() == 0, "what is evicted once is not evicted again"
    assert [r.text for r in log.records("message")] == [f"text {n} 猫" for n in range(11)], "evicting loses nothing"
    before = memory.retrieve()
    assert KINDS[kind](log).retrieve() == before, "another process shows the same"
    memory.reset("run 2")
    assert memory.retrieve() == []
    say(memory, 2, start=11)
    assert {r.step_id for r in memory.retrieve()} <= {11, 12}
    assert len(log.records("message")) == 13, "a new run loses nothing"
    log.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_is_there_when_it_is_opened_again(kind: str, new: New) -> None:
    address = new()
    log = RecordLog(address)
    memory = KINDS[kind](log)
    say(memory, 3)
    if isinstance(memory, EntityMemory):
        memory.set("猫", "小白")
        memory.reset()
    if isinstance(memory, BlockMemory):
        memory.edit("human", lambda old: "has a cat")
        memory.reset()
    before = memory.retrieve()
    assert before
    if address == "memory://":  # it lives as long as it is open
        assert KINDS[kind](RecordLog(log.store)).retrieve() == before
        return
    log.close()
    with RecordLog(address) as again:
        assert KINDS[kind](again).retrieve() == before


def test_a_markdown_file_is_a_place_of_its_own(tmp_path: Path) -> None:
    memory = MarkdownFileMemory(tmp_path / "memory.md")
    say(memory, 5)
    before = memory.retrieve()
    assert len(before) == 5
    assert MarkdownFileMemory(tmp_path / "memory.md").retrieve() == before
