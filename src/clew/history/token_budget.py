"""`TokenBudgetSummaryHistory`: over the budget, one summary and the last messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from clew.history.logged import LoggedHistory, kept, raw
from clew.history.messages import Query
from clew.history.models import Function
from clew.history.tail_raw import TokenBudgetSummaryRaw
from clew.models.base import Model
from clew.policies.tail import RollingSummary
from clew.sessions.policy import Policy
from clew.storage.store import Store
from clew.tokens.protocol import TokenCounter


class TokenBudgetSummaryHistory(LoggedHistory):
    """Over `max_tokens`, replaces all but the last `keep_last` messages by a summary.

    By default the history is kept in a session of `store` (see `CompactHistory`), the summary is carried, and the
    result fits; `hard_window` has no effect. `faithful=True` is QitOS 0.3.0, bit for bit: `hard_window` cuts the
    stored messages, and the result may be larger than before.
    """

    def __init__(
        self,
        *,
        llm: Model | Function | None = None,
        max_tokens: int = 16_000,
        keep_last: int = 8,
        hard_window: int = 64,
        faithful: bool = False,
        store: str | Path | Store = "memory://",
        session: str | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        if faithful:
            super().__init__(raw(TokenBudgetSummaryRaw(max_tokens, keep_last, hard_window), llm))
        else:
            super().__init__(kept(TokenBudgetPlan(max_tokens, max(1, keep_last)), llm, store, session, counter))


class TokenBudgetPlan(Struct, frozen=True):
    """What a kept `TokenBudgetSummaryHistory` does: `RollingSummary`."""

    max_tokens: int
    keep_last: int

    @property
    def name(self) -> str:
        return "token_budget_summary"

    def limit(self, query: Query) -> int:
        return int(query.get("max_tokens") or self.max_tokens)

    def warning_ratio(self, query: Query) -> float:
        return float(query.get("warning_ratio") or 1.0)

    def policies(self, query: Query) -> Sequence[Policy]:
        items = int(query.get("max_items") or 0)
        return (RollingSummary(items if items > self.keep_last else None, self.keep_last),)
