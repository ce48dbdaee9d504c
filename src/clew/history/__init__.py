"""Histories of an agent: QitOS's public API over Clew's log and policies."""

from clew.history.compact import CompactHistory, MessageGrouper, compact_history
from clew.history.compact_raw import CompactConfig
from clew.history.messages import History, HistoryMessage, HistoryPolicy
from clew.history.rolling import SummaryHistory
from clew.history.token_budget import TokenBudgetSummaryHistory
from clew.history.window import WindowHistory, window_history

__all__ = [
    "CompactConfig",
    "CompactHistory",
    "History",
    "HistoryMessage",
    "HistoryPolicy",
    "MessageGrouper",
    "SummaryHistory",
    "TokenBudgetSummaryHistory",
    "WindowHistory",
    "compact_history",
    "window_history",
]
