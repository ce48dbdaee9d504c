"""`WindowHistory`: the last messages."""

from __future__ import annotations

from pathlib import Path

from clew.history.kept import Plan
from clew.history.logged import LoggedHistory, kept, raw
from clew.history.tail_raw import WindowRaw
from clew.policies.harness.linear import Linear
from clew.policies.tail import Window
from clew.sessions.policy import Policy
from clew.storage.store import Store
from clew.tokens.protocol import TokenCounter


class WindowHistory(LoggedHistory):
    """Shows the last `window_size` messages (0 or less: all).

    By default the history is kept in a session of `store` (see `CompactHistory`): what leaves the window is recorded
    as dropped and stays in the log, the window begins with a user message, and a query's `max_tokens` is kept.
    `faithful=True` is QitOS 0.3.0, bit for bit: older messages are gone, and the token budget is not kept.
    """

    def __init__(
        self,
        window_size: int = 24,
        *,
        faithful: bool = False,
        store: str | Path | Store = "memory://",
        session: str | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self.window_size = window_size
        if faithful:
            super().__init__(raw(WindowRaw(window_size)))
        else:
            super().__init__(kept(_plan(window_size), None, store, session, counter))


def _plan(window_size: int) -> Plan:
    """`Window`; the guard keeps the query's tokens."""
    policy: Policy = Window(window_size) if window_size > 0 else Linear()
    return Plan("window_history", lambda query: (policy,))


def window_history(window_size: int = 24) -> WindowHistory:
    """A `WindowHistory` of so many messages."""
    return WindowHistory(window_size)
