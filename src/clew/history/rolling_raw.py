"""The rolling summary of the agent-memory tutorial, as it really behaves.

From `threshold` messages on, all but the last `keep` are summarised before the answer. Whatever comes back replaces
the summary, an empty text too, and the old messages are gone.
"""

from __future__ import annotations

from typing import Any

from clew.history.messages import Event, HistoryMessage, Query
from clew.history.models import NoModel
from clew.history.raw import Occasion, metadata_of
from clew.messages import system, user
from clew.models.base import Model, ModelCall
from clew.models.steps import Offline, Steps, run
from clew.policies.fences import fenced
from clew.policies.prompt import prompt

SUMMARY_TOKENS = 200
"""Limit of a summary, in tokens (the tutorial's `max_tokens`)."""


class RollingRaw:
    """The summary so far and the messages after it. Its events count two characters as one token."""

    def __init__(self, threshold: int, keep: int, model: Model | None) -> None:
        self.threshold = threshold
        self.keep = keep
        self.world = Offline(model or NoModel())
        self.reset()

    def reset(self) -> None:
        self.summary = ""
        self.messages: list[HistoryMessage] = []
        self.events: list[Event] = []
        self.metadata: list[dict[str, Any]] = []

    def append(self, message: HistoryMessage) -> None:
        self.messages.append(message)

    def retrieve(self, query: Query) -> list[HistoryMessage]:
        self.events = []
        if len(self.messages) >= self.threshold:
            run(self._compress(), self.world)
        step = self.messages[0].step_id if self.messages else 0
        head = [HistoryMessage("system", self.summary, step, {"summary": True})] if self.summary else []
        given = head + self.messages
        self.metadata = metadata_of(given)
        return given

    def summarize(self, max_items: int) -> str:
        return self.summary

    def evict(self) -> int:
        return 0

    def _compress(self) -> Steps[None]:
        cut = len(self.messages) - self.keep if self.keep > 0 else len(self.messages)
        old, recent = self.messages[: max(cut, 0)], self.messages[max(cut, 0) :]
        text = "\n".join(f"{m.role}: {m.content}" for m in old)
        parts = [fenced("previous", self.summary)] if self.summary else []
        ask = (system(prompt("clew.history", "digest")), user("\n\n".join([*parts, fenced("conversation", text)])))
        reply = yield ModelCall(ask, max_output=SUMMARY_TOKENS, purpose="summary", previous=self.summary)
        before, after = len(text) // 2, len(reply.text) // 2
        occasion = Occasion("rolling_summary", len(self.messages), before, 0, None, None)
        applied = occasion.event("summary_compact_applied", after, len(recent) + 1, summarized_message_count=len(old))
        self.summary, self.messages, self.events = reply.text, recent, [applied]
