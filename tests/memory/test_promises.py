"""What every kind of memory promises holds after anything that was done to it, in any order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.memory import (
    BlockMemory,
    EntityMemory,
    HybridMemory,
    Memory,
    MemoryRecord,
    RecordLog,
    SummaryMemory,
    VectorMemory,
    WindowMemory,
)
from clew.models import Scripted
from plain import Letters

NOTHING = '{"facts": []}'


def letters(text: str) -> list[float]:
    return [1.0, *(float(text.count(c)) for c in "0123456789")]


KINDS: dict[str, Callable[[RecordLog], Memory]] = {
    "window": lambda log: WindowMemory(3, log=log),
    "window by tokens": lambda log: WindowMemory(0, max_tokens=12, counter=Letters(), log=log),
    "window that flushes": lambda log: WindowMemory(0, max_tokens=12, flush=8, counter=Letters(), log=log),
    "summary": lambda log: SummaryMemory(2, llm=Scripted("S"), log=log),
    "summary by tokens": lambda log: SummaryMemory(1, max_tokens=12, counter=Letters(), llm=Scripted("S"), log=log),
    "summary that fails": lambda log: SummaryMemory(2, llm=Scripted(""), log=log),
    "entity": lambda log: EntityMemory(Scripted(NOTHING), log=log),
    "vector": lambda log: VectorMemory(letters, 2, log=log),
    "block": lambda log: BlockMemory(log=log),
    "hybrid": lambda log: HybridMemory(
        EntityMemory(Scripted(NOTHING), log=log), SummaryMemory(2, llm=Scripted("S"), log=log), WindowMemory(3, log=log)
    ),
}
STEPS = st.lists(st.sampled_from(["user", "assistant", "tool", "blank", "evict", "reset", "extract"]), max_size=16)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(steps=STEPS)
def test_promises(kind: str, steps: list[str]) -> None:
    with RecordLog() as log:
        memory = KINDS[kind](log)
        said: list[str] = []
        run = 0  # where what was said since the last reset begins
        for n, step in enumerate(steps):
            if step == "evict":
                assert memory.evict() >= 0
                seen = memory.retrieve()
                assert memory.evict() == 0 or kind == "summary that fails"
                assert memory.retrieve() == seen
            elif step == "reset":
                memory.reset(f"run {n}")
                run = len(said)
            elif step == "extract":
                if isinstance(memory, EntityMemory | HybridMemory):
                    memory.extract()
            elif step == "blank":
                memory.append(MemoryRecord("assistant", " ", n))
            else:
                memory.append(MemoryRecord(step, f"t{n:03}", n))
                said.append(f"t{n:03}")

            shown = [r for r in memory.retrieve() if r.kind == "message"]
            assert {r.text for r in shown} <= set(said[run:]), "nothing from before the run, nothing made up"
            assert len({r.id for r in shown}) == len(shown)
            assert [r.step_id for r in shown] == sorted(r.step_id for r in shown)
            assert memory.retrieve() == memory.retrieve()
            assert len(memory.summarize(3).splitlines()) <= 3 * 3
            assert [r.text for r in log.records("message")] == said, "all of it is still there"
