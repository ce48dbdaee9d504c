"""`TokenBudgetSummaryHistory`: over the budget, one summary and the last messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.history.kept import Plan
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
            super().__init__(kept(_plan(max_tokens, max(1, keep_last)), llm, store, session, counter))


def _plan(max_tokens: int, keep_last: int) -> Plan:
    """`RollingSummary`, above the tokens and above a query's `max_items`."""

    def policies(query: Query) -> Sequence[Policy]:
        items = int(query.get("max_items") or 0)
        return (RollingSummary(items if items > keep_last else None, keep_last),)

    return Plan("token_budget_summary", policies, max_tokens)
