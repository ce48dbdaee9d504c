"""What every memory can do: QitOS's `core.memory`, with what each operation promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.memory.records import MemoryRecord

Query = Mapping[str, Any]
"""What to retrieve: `text` (what it should be about), `roles`, `step_min`, `step_max`, `max_items`, `top_k`.
Unknown keys are ignored."""

LINE = 120
"""Length of a record's line in `summarize`, in characters (QitOS 0.3.0)."""


class Memory(ABC):
    """The records an agent keeps, and how it gets them back.

    These hold for every kind (but for `faithful=True`, which does what its upstream does): nothing blank is stored;
    `retrieve` and `summarize` change nothing; `evict` and `reset` put records out of sight and lose none of them.
    """

    @abstractmethod
    def append(self, record: MemoryRecord) -> None:
        """Adds a record. It is durable when this returns, and asks no model."""

    @abstractmethod
    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        """The records for the next model call. `state` and `observation` are QitOS's and not used."""

    @abstractmethod
    def summarize(self, max_items: int = 5) -> str:
        """The last records as a short text, a line each; empty for `max_items` of 0 or less."""

    @abstractmethod
    def evict(self) -> int:
        """Applies the memory's limit; how many records went out of sight. At once again it is 0."""

    @abstractmethod
    def reset(self, run_id: str | None = None) -> None:
        """Begins a new run: what was said before goes out of sight, what was learnt stays."""


def wanted(query: Query) -> Callable[[MemoryRecord], bool]:
    """Whether a query asks for a record, by its role and step. A single role may be given as text."""
    given = query.get("roles") or ()
    roles = {given} if isinstance(given, str) else set(given)
    first, last = query.get("step_min"), query.get("step_max")

    def test(record: MemoryRecord) -> bool:
        return (
            (not roles or record.role in roles)
            and (first is None or record.step_id >= int(first))
            and (last is None or record.step_id <= int(last))
        )

    return test


def lines(records: Sequence[MemoryRecord], max_items: int) -> str:
    """The last records, a line each, cut to 120 characters."""
    return "\n".join(r.line(LINE) for r in records[-max_items:]) if max_items > 0 else ""
