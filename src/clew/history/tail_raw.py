"""What QitOS's `WindowHistory` and `TokenBudgetSummaryHistory` show (0.3.0)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from clew.history.messages import HistoryMessage, Query
from clew.history.raw import Occasion, Shown, summarised, tokens_of, weight
from clew.models.steps import Steps

NOTE_CHARS = 160
"""Length of a line of the template summary, in characters (QitOS 0.3.0)."""

NOTES = 12
"""Lines of the template summary (QitOS 0.3.0)."""


class WindowRaw(Struct, frozen=True):
    """The last `window_size` messages. A token budget is noticed and not kept."""

    window_size: int

    @property
    def stored(self) -> int:
        return self.window_size

    @property
    def items(self) -> int:
        return self.window_size

    def show(self, items: list[HistoryMessage], query: Query) -> Steps[Shown]:
        yield from ()
        budget = int(query.get("max_tokens") or 0)
        pending = tokens_of(query.get("pending_content"))
        before = weight(items) + pending
        ratio = query.get("warning_ratio")
        occasion = Occasion("window_history", len(items), before, pending, budget or None, ratio)
        if 0 < budget < before:
            event = occasion.event("compact_skipped", reason="window_history_no_compactor")
        else:
            event = occasion.event("within_budget", reason=None)
        return Shown(items, [event], items)

    def digest(self, items: list[HistoryMessage]) -> None:
        return None


class TokenBudgetSummaryRaw(Struct, frozen=True):
    """Over the budget, all but the last `keep_last` messages as one summary, however long that is."""

    max_tokens: int
    keep_last: int
    hard_window: int

    @property
    def stored(self) -> int:
        return self.hard_window

    @property
    def items(self) -> int:
        return 0

    def show(self, items: list[HistoryMessage], query: Query) -> Steps[Shown]:
        budget = int(query.get("max_tokens") or self.max_tokens)
        pending = tokens_of(query.get("pending_content"))
        before = weight(items) + pending
        ratio = query.get("warning_ratio")
        occasion = Occasion("token_budget_summary", len(items), before, pending, budget if budget > 0 else None, ratio)
        if budget <= 0 or before <= budget:
            return Shown(items, [occasion.event("within_budget")], items)
        if len(items) <= self.keep_last:
            return Shown(items, [occasion.event("compact_skipped", reason="keep_last_floor")], items)
        old, recent = items[: -self.keep_last], items[-self.keep_last :]
        if not old:  # keep_last 0: QitOS cuts nothing off and says nothing
            return Shown(items, [], items)
        text = (yield from summarised(old)) or template(old)
        mark = {"source": "token_budget_summary", "summary": True}
        shown = [HistoryMessage("system", text, old[-1].step_id, mark), *recent]
        applied = occasion.event(
            "summary_compact_applied", weight(shown) + pending, len(shown), summarized_message_count=len(old)
        )
        return Shown(shown, [occasion.event("warning"), applied], shown)

    def digest(self, items: list[HistoryMessage]) -> None:
        return None


def template(messages: Sequence[HistoryMessage]) -> str:
    """The summary QitOS writes without a model: the first characters of the newest messages."""
    lines = [f"[{m.step_id}] {m.role}: {m.content[:NOTE_CHARS]}" for m in messages[-NOTES:]]
    return "\n".join(["Summary of earlier interaction:", *lines])
