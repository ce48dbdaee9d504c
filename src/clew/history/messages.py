"""What a history holds, what it is asked, and what it can do: the types of QitOS's `core.history`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

Query = Mapping[str, Any]
"""What to retrieve: `roles`, `step_min`, `step_max`, `max_items`, `max_tokens` (tokens), `pending_content`
(the coming prompt, counted with the history), `auto_compact`, `warning_ratio`. Unknown keys are ignored."""


Event = dict[str, Any]
"""What a retrieval did: `{"stage": "context_history", "context": {...}}`; counts are in tokens and messages."""


class HistoryMessage(Struct):
    """One message of a history. `step_id` counts model calls.

    Native tool traffic is told by the metadata: `tool_calls` of an assistant message (ids, or calls in OpenAI's
    form) and `tool_call_id` of a tool message.
    """

    role: str
    content: Any
    step_id: int
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content as text; empty for None."""
        return str(self.content or "")

    @property
    def is_summary(self) -> bool:
        """True for a message that stands for earlier ones."""
        return bool(self.metadata.get("summary"))

    @property
    def line(self) -> str:
        """The message as one line of a transcript: step, role, content."""
        return f"[{self.step_id}] {self.role}: {self.content}"


class HistoryPolicy(Struct, frozen=True):
    """How much of a history an agent wants to see.

    `roles` shown, at most `max_messages` of them, of the last `step_window` steps, in `max_tokens` tokens
    (None or 0: no such limit).
    """

    roles: Sequence[str] = ("user", "assistant")
    max_messages: int = 24
    step_window: int | None = None
    max_tokens: int | None = None

    def build_query(self, step_id: int, **kwargs: Any) -> dict[str, Any]:
        """The query at a step; keyword arguments are added and win over everything else."""
        query: dict[str, Any] = {"roles": list(self.roles), "max_items": int(self.max_messages)}
        if self.step_window is not None and self.step_window > 0:
            query["step_min"] = max(0, step_id - self.step_window + 1)
        if self.max_tokens is not None and self.max_tokens > 0:
            query["max_tokens"] = self.max_tokens
        query.update(kwargs)
        return query


class History(ABC):
    """The messages of an agent, and how it gets them back."""

    @abstractmethod
    def append(self, message: HistoryMessage) -> None:
        """Adds a message."""

    @abstractmethod
    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[HistoryMessage]:
        """The messages for the next model call. `state` and `observation` are QitOS's and not used."""

    @abstractmethod
    def summarize(self, max_items: int = 5) -> str:
        """The last messages as a short text."""

    @abstractmethod
    def evict(self) -> int:
        """Applies the limit on stored messages; how many went."""

    @abstractmethod
    def reset(self, run_id: str | None = None) -> None:
        """Starts anew."""

    def consume_runtime_events(self) -> list[Event]:
        """What the last retrieval did, given out once."""
        return []

    def get_last_message_metadata(self) -> list[dict[str, Any]]:
        """The metadata of the messages retrieved last, with their role, step and length in characters."""
        return []
