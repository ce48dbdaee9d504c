"""What it takes to be a token counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from clew.messages import Message


class TokenCounter(Protocol):
    """Counts messages in tokens; the same message always gives the same count.

    `name` identifies the counter in stored counts: equal names must mean equal counts.
    """

    @property
    def name(self) -> str: ...

    def text(self, text: str) -> int:
        """Tokens of a bare text."""
        ...

    def message(self, message: Message) -> int:
        """Tokens of a whole message: every part, and the provider's framing of it."""
        ...

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of tool schemas as sent with a request."""
        ...


class Learning(TokenCounter, Protocol):
    """A counter that learns from the usage a provider reports.

    Counts stay what they are (they are made once and stored); `factor` is how many real tokens one
    counted token stands for.
    """

    @property
    def factor(self) -> float: ...

    def learned(self, predicted: int, actual: int) -> Learning:
        """The counter after a request counted as `predicted` was reported as `actual` tokens."""
        ...


def learns(counter: TokenCounter) -> TypeGuard[Learning]:
    """Whether a counter learns. (`isinstance` would look through the whole protocol each time, for every message.)"""
    return hasattr(counter, "learned")
