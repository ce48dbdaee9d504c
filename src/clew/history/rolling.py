"""`SummaryHistory`: from a number of messages on, a summary and the last ones."""

from __future__ import annotations

from pathlib import Path

from clew.history.kept import Plan
from clew.history.logged import LoggedHistory, kept
from clew.history.models import Function, as_model
from clew.history.rolling_raw import RollingRaw
from clew.models.base import Model
from clew.policies.tail import RollingSummary
from clew.storage.store import Store
from clew.tokens.protocol import TokenCounter


class SummaryHistory(LoggedHistory):
    """From `threshold` messages on, replaces all but the last `keep_recent` by a summary, which it updates.

    By default the history is kept in a session of `store` (see `CompactHistory`): a summary that is no answer never
    replaces anything, and what is shown begins with a message of the user. `faithful=True` is the `SummaryMemory` of
    the agent-memory tutorial: whatever the model says replaces the messages.
    """

    def __init__(
        self,
        *,
        llm: Model | Function | None = None,
        threshold: int = 8,
        keep_recent: int = 4,
        faithful: bool = False,
        store: str | Path | Store = "memory://",
        session: str | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        if faithful:
            super().__init__(RollingRaw(threshold, keep_recent, as_model(llm)))
        else:
            super().__init__(kept(_plan(threshold, keep_recent), llm, store, session, counter))


def _plan(threshold: int, keep_recent: int) -> Plan:
    """`RollingSummary`, which is due above a number of messages."""
    return Plan("rolling_summary", lambda query: (RollingSummary(threshold - 1, keep_recent),))
