"""When a view is due for compaction: limits in tokens, and how a view is compared with them."""

from __future__ import annotations

from clew.sessions.policy import Due
from clew.sessions.view import View


def reserve(window: int, tokens: int) -> int:
    """The limit that leaves `tokens` of the window free (Pi, OpenCode)."""
    return window - tokens


def above(view: View, limit: int) -> Due | None:
    """Due when the view holds more than `limit` tokens; exactly the limit is not due (Pi)."""
    return Due("threshold", view.tokens, limit) if view.tokens > limit else None
