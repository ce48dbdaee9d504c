"""When a view is due: limits in tokens, and the comparisons that harnesses make with them."""

from __future__ import annotations

from clew.sessions.policy import Due
from clew.sessions.view import View


def fraction(window: int, share: float) -> int:
    """The limit at a share of the window, rounded down (Claude Code, Codex, Hermes, QitOS)."""
    return int(window * share)


def reserve(window: int, tokens: int) -> int:
    """The limit that leaves `tokens` of the window free (Pi, OpenCode)."""
    return window - tokens


def above(view: View, limit: int) -> Due | None:
    """Due when the view holds more than `limit` tokens; exactly the limit is not due (Pi)."""
    return Due("threshold", view.tokens, limit) if view.tokens > limit else None


def reached(view: View, limit: int) -> Due | None:
    """Due when the view holds `limit` tokens or more (Codex, OpenCode)."""
    return Due("threshold", view.tokens, limit) if view.tokens >= limit else None


def longer(view: View, messages: int) -> Due | None:
    """Due when the view holds more than so many messages, system messages included (OpenHands)."""
    return Due("threshold", view.tokens, view.tokens) if len(view.items) > messages else None
