"""The extractive summariser as a model."""

from __future__ import annotations

from msgspec import Struct

from clew.messages import assistant
from clew.models.base import ModelCall, Reply
from clew.models.extractive.summary import extract
from clew.tokens import Heuristic, TokenCounter

DEFAULT_OUTPUT = 2_000
"""Tokens of a summary when the call sets no limit."""


class Extractive(Struct, frozen=True):
    """A model that summarises without one: deterministic, offline, free.

    It answers from a call's `source`, `previous`, `focus` and `max_output` (tokens) and ignores the
    prompt. `counter` measures the output limit (default: the heuristic one); `context_window` is in
    tokens, and by default larger than any conversation.
    """

    context_window: int = 1_000_000_000
    counter: TokenCounter = Heuristic()
    name: str = "extractive"

    def complete(self, call: ModelCall) -> Reply:
        """The summary of the call's source, within its output limit."""
        limit = DEFAULT_OUTPUT if call.max_output is None else call.max_output
        return Reply(assistant(extract(call.source, limit, self.counter, call.previous, call.focus)))

    async def acomplete(self, call: ModelCall) -> Reply:
        """As `complete`; there is nothing to wait for."""
        return self.complete(call)
