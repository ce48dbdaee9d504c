"""Runs QitOS's own tests with Clew's histories and memories in the place of QitOS's, under QitOS's real engine.

A pytest plugin, for an environment that holds both packages; not part of the suite. With the source distribution of
qitos 0.3.0 unpacked, and this folder on the path:

    pip install qitos==0.3.0 pytest -e .
    PYTHONPATH=tests/compat CLEW_GRAFT=faithful pytest -p qitos_graft qitos-0.3.0/tests/test_compact_history.py \\
        qitos-0.3.0/tests/test_engine_core_flow.py qitos-0.3.0/tests/test_engine_hooks.py \\
        qitos-0.3.0/tests/test_memory_and_parser_and_critic.py qitos-0.3.0/tests/test_p0_freeze_guards.py

`CLEW_GRAFT=kept` grafts the default histories and memories; then `test_memory_adapters_basic` fails as it must: it
expects a window that begins with an answer whose question was cut off.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import qitos.core.history as core
import qitos.core.memory as core_memory
import qitos.engine.engine as engine
import qitos.kit.history as kit
import qitos.kit.memory as kit_memory

import clew.history as ours
import clew.memory as memories

FAITHFUL = os.environ.get("CLEW_GRAFT", "faithful") == "faithful"


def grafted(kind: type[Any]) -> type[Any]:
    """The class with QitOS's messages at its doors, and an instance of QitOS's `History`."""

    class Grafted(kind, core.History):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings, faithful=FAITHFUL)

        def append(self, message: Any) -> None:
            given = ours.HistoryMessage(message.role, message.content, message.step_id, dict(message.metadata))
            super().append(given)

        def retrieve(self, query: Any = None, state: Any = None, observation: Any = None) -> list[Any]:
            shown = super().retrieve(query, state, observation)
            return [core.HistoryMessage(m.role, m.content, m.step_id, m.metadata) for m in shown]

    Grafted.__name__ = kind.__name__
    return Grafted


def remembering(kind: type[Any]) -> type[Any]:
    """The class with QitOS's records at its doors, and an instance of QitOS's `Memory`."""

    class Grafted(kind, core_memory.Memory):
        def __init__(self, *args: Any, **settings: Any) -> None:
            if kind is memories.VectorMemory and not FAITHFUL:
                settings.setdefault("embedder", lambda text: [1.0, float(len(text))])  # ours makes up none
            super().__init__(*args, **settings, faithful=FAITHFUL)

        @property
        def records(self) -> list[Any]:
            return self._raw.records if self._raw else self.retrieve()

        def append(self, record: Any) -> None:
            given = memories.MemoryRecord(record.role, record.content, record.step_id, dict(record.metadata))
            super().append(given)

        def retrieve(self, query: Any = None, state: Any = None, observation: Any = None) -> list[Any]:
            shown = super().retrieve(query, state, observation)
            return [core_memory.MemoryRecord(r.role, r.content, r.step_id, dict(r.metadata)) for r in shown]

    Grafted.__name__ = kind.__name__
    return Grafted


def everywhere(name: str, theirs: Any, stands_in: Any) -> None:
    """Puts a class in the place of QitOS's, wherever it has been imported."""
    for module in [m for key, m in sys.modules.items() if key.split(".")[0] == "qitos"]:
        if getattr(module, name, None) is theirs:
            setattr(module, name, stands_in)


for name in ("WindowMemory", "SummaryMemory", "VectorMemory", "MarkdownFileMemory"):
    everywhere(name, getattr(kit_memory, name), remembering(getattr(memories, name)))

for name in ("WindowHistory", "TokenBudgetSummaryHistory", "CompactHistory", "MessageGrouper", "CompactConfig"):
    made = getattr(ours, name)
    stands_in = grafted(made) if name.endswith("History") else made
    everywhere(name, getattr(kit, name), stands_in)

assert any(getattr(engine, name, None) for name in ("CompactHistory", "Engine"))
