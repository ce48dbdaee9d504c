"""QitOS's own way of keeping a history (0.3.0): a list that is cut on append and compacted anew at each request.

Nothing it makes is stored, and what it cuts is gone. This is `faithful=True`; `clew.history.kept` is the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from clew.errors import ModelError
from clew.history.messages import Event, HistoryMessage, Query
from clew.history.models import NoModel
from clew.messages import system, user
from clew.models.base import Model, ModelCall, Reply
from clew.models.steps import Offline, Steps, run
from clew.policies.fences import fenced
from clew.policies.prompt import prompt


def tokens_of(content: Any) -> int:
    """Tokens of a content as QitOS counts them: a quarter of its characters, at least 1; nothing is 0."""
    return max(1, len(str(content)) // 4) if content else 0


def weight(messages: Sequence[HistoryMessage], pending: Any = None) -> int:
    """Tokens of some messages and of the coming prompt, as QitOS counts them."""
    return sum(tokens_of(m.content) for m in messages) + tokens_of(pending)


def selected(messages: Sequence[HistoryMessage], query: Query, max_items: int) -> list[HistoryMessage]:
    """The messages a query asks for: by role, then by step, then the last `max_items` (0: all) of those."""
    items = list(messages)
    if roles := set(query.get("roles") or ()):
        items = [m for m in items if m.role in roles]
    if (first := query.get("step_min")) is not None:
        items = [m for m in items if m.step_id >= int(first)]
    if (last := query.get("step_max")) is not None:
        items = [m for m in items if m.step_id <= int(last)]
    limit = int(query.get("max_items", max_items))
    return items[-limit:] if limit > 0 else items


class Occasion(Struct, frozen=True):
    """One retrieval: what its events have in common. Token figures include the pending prompt."""

    strategy: str
    messages: int
    tokens: int
    pending: int
    budget: int | None
    warning_ratio: float | None

    def event(
        self, stage: str, after: int | None = None, messages: int | None = None, **figures: Any
    ) -> dict[str, Any]:
        """An event in QitOS's form; by default nothing changed."""
        after = self.tokens if after is None else after
        context = {
            "stage": stage,
            "before_tokens": self.tokens,
            "after_tokens": after,
            "saved_tokens": max(0, self.tokens - after),
            "budget": self.budget,
            "pending_tokens": self.pending,
            "messages_before": self.messages,
            "messages_after": self.messages if messages is None else messages,
            "strategy": self.strategy,
            "warning_ratio": self.warning_ratio,
            **figures,
        }
        return {"stage": "context_history", "context": context}


class Shown(Struct, frozen=True):
    """What a retrieval shows: the messages, what happened, and the messages it reports the metadata of."""

    messages: list[HistoryMessage]
    events: list[Event]
    reported: list[HistoryMessage]


class Strategy(Protocol):
    """How a history kept as a list is shown."""

    @property
    def stored(self) -> int:
        """How many messages are kept at most (0 or less: all)."""
        ...

    @property
    def items(self) -> int:
        """How many messages are shown when the query does not say (0 or less: all)."""
        ...

    def show(self, items: list[HistoryMessage], query: Query) -> Steps[Shown]: ...

    def digest(self, items: list[HistoryMessage]) -> Steps[str] | None:
        """The messages as a short text; None: list what a retrieval shows."""
        ...


def metadata_of(messages: Sequence[HistoryMessage]) -> list[dict[str, Any]]:
    """The metadata of messages with their role, step and length in characters, for traces."""
    return [{"role": m.role, "step_id": m.step_id, "content_chars": len(m.text), **m.metadata} for m in messages]


def summarised(messages: Sequence[HistoryMessage]) -> Steps[str]:
    """What the model makes of some messages. Empty when it fails: then QitOS writes a text of its own."""
    lines = "\n".join(m.line for m in messages)
    ask = (system(prompt("clew.history", "digest")), user(fenced("conversation", lines)))
    try:
        reply: Reply = yield ModelCall(ask, purpose="summary")
    except ModelError:
        return ""
    return reply.text.strip()


class Raw:
    """A list of messages, and what the last retrieval did."""

    def __init__(self, strategy: Strategy, model: Model | None) -> None:
        self.strategy = strategy
        self.world = Offline(model or NoModel())
        self.messages: list[HistoryMessage] = []
        self.events: list[Event] = []
        self.metadata: list[dict[str, Any]] = []

    def append(self, message: HistoryMessage) -> None:
        self.messages.append(message)
        self.evict()

    def retrieve(self, query: Query) -> list[HistoryMessage]:
        shown = run(self.strategy.show(selected(self.messages, query, self.strategy.items), query), self.world)
        self.events, self.metadata = shown.events, metadata_of(shown.reported)
        return shown.messages

    def summarize(self, max_items: int) -> str:
        text = self.strategy.digest(self.messages[-max_items:])
        if text is not None:
            return run(text, self.world)
        return "\n".join(f"[{m.step_id}] {m.role}: {m.content[:120]}" for m in self.retrieve({"max_items": max_items}))

    def evict(self) -> int:
        before = len(self.messages)
        if self.strategy.stored > 0:
            self.messages = self.messages[-self.strategy.stored :]
        return before - len(self.messages)

    def reset(self) -> None:
        self.messages, self.events, self.metadata = [], [], []
