"""`CompactHistory`: long old messages become previews, and all but the last rounds one summary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clew.history.compact_raw import CompactConfig, CompactRaw
from clew.history.kept import Plan
from clew.history.logged import LoggedHistory, kept, raw
from clew.history.messages import HistoryMessage, Query
from clew.history.models import Function
from clew.models.base import Model
from clew.policies.harness.qitos import QitOS
from clew.policies.harness.qitos_rounds import round_starts
from clew.policies.tail import RollingSummary
from clew.sessions.policy import Policy
from clew.storage.store import Store
from clew.tokens.protocol import TokenCounter


class CompactHistory(LoggedHistory):
    """Shrinks, then summarises what is old, so that a history fits its budget.

    The settings are those of `config`; single ones given beside it win. `llm` is a model or a function from chat
    messages to text; without one, summaries are extracts.

    By default the history is kept in a session of `store` (a path, a URL or a store; `session` names one to go on
    with), and `counter` counts its tokens: every message stays in the log, compactions are stored and carried, calls
    and results stay together, a summary is checked before it counts, and the result fits the budget.
    `hard_window` has no effect then, and a query's `max_items` is kept by summarising what is older.
    `faithful=True` is QitOS 0.3.0, bit for bit.
    """

    def __init__(
        self,
        *,
        llm: Model | Function | None = None,
        config: CompactConfig | None = None,
        max_tokens: int | None = None,
        keep_last_rounds: int | None = None,
        keep_last_messages: int | None = None,
        hard_window: int | None = None,
        auto_compact: bool | None = None,
        faithful: bool = False,
        store: str | Path | Store = "memory://",
        session: str | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "max_tokens": max_tokens,
            "keep_last_rounds": keep_last_rounds,
            "keep_last_messages": keep_last_messages,
            "hard_window": hard_window,
            "auto_compact": auto_compact,
        }
        self.config = replace(config or CompactConfig(), **{k: v for k, v in given.items() if v is not None})
        if faithful:
            super().__init__(raw(CompactRaw(self.config), llm))
        else:
            super().__init__(kept(_plan(self.config), llm, store, session, counter))


def _plan(config: CompactConfig) -> Plan:
    """`QitOS` above a query's tokens, `RollingSummary` above its `max_items`."""
    qitos = QitOS(
        keep_last_rounds=config.keep_last_rounds,
        keep_last_messages=config.keep_last_messages,
        long_chars=config.compact_long_messages_over_chars,
        preview_chars=config.microcompact_preview_chars,
        summary_max_chars=config.summary_max_chars,
        summary_role="user",
        lossless=True,
    )
    keep = max(1, config.keep_last_messages)

    def policies(query: Query) -> Sequence[Policy]:
        if not query.get("auto_compact", config.auto_compact):
            return ()
        items = int(query.get("max_items") or 0)
        if items <= keep:
            return (qitos,)
        return (qitos, RollingSummary(items, keep, summary_tokens=config.summary_max_chars // 2))

    return Plan(config.summary_metadata_source, policies, config.max_tokens, config.warning_ratio)


class MessageGrouper:
    """Splits a history into rounds."""

    @staticmethod
    def group(messages: Sequence[HistoryMessage]) -> list[list[HistoryMessage]]:
        """The rounds: one for each run of one step; within a single step each reply but the first begins one."""
        starts = round_starts([m.step_id for m in messages], [m.role for m in messages])
        return [list(messages[a:b]) for a, b in pairwise([*starts, len(messages)])]


def compact_history(**settings: Any) -> CompactHistory:
    """A `CompactHistory` with these settings."""
    return CompactHistory(**settings)
