"""The simplest counter, model and policy that do their job: for tests that are about sessions, not about these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew.budget import Budget
from clew.errors import ModelError
from clew.messages import Message, assistant, user
from clew.models.base import ModelCall, Reply, answer_text
from clew.models.steps import Failure, Steps
from clew.sessions import Compaction, Due, Replace, Session, View, compaction, pack


class Letters(Struct, frozen=True):
    """One token a character of what a message shows."""

    name: str = "letters"

    def text(self, text: str) -> int:
        return len(text)

    def message(self, message: Message) -> int:
        return len(message.text) + sum(len(r.text) for r in message.results)

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return len(repr(tools))


class Echo:
    """A model that answers with a text, or fails with an error; async calls as well."""

    name = "echo"

    def __init__(self, answer: str | ModelError = "the story so far", context_window: int = 1_000) -> None:
        self.answer = answer
        self.context_window = context_window
        self.calls: list[ModelCall] = []

    def complete(self, call: ModelCall) -> Reply:
        self.calls.append(call)
        if isinstance(self.answer, ModelError):
            raise self.answer
        return Reply(assistant(self.answer))

    async def acomplete(self, call: ModelCall) -> Reply:
        return self.complete(call)


class Older(Struct, frozen=True):
    """Above `limit` tokens, everything but the last `keep` messages becomes one summary.

    A failed call is recorded, and nothing is compacted.
    """

    limit: int = 100
    keep: int = 2
    name: str = "older"

    def budget(self, window: int) -> Budget:
        return Budget.of(window, output=0)

    def due(self, view: View, budget: Budget) -> Due | None:
        return Due("threshold", view.tokens, self.limit) if view.tokens > self.limit else None

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        cut = max((c for c in view.safe_cuts() if c <= len(view.items) - self.keep), default=0)
        old = view.items[:cut]
        if not old:
            return None
        source = tuple(i.message for i in old)
        try:
            reply = yield ModelCall((user("Summarise."),), purpose="summary", source=source, focus=due.focus)
            summary = answer_text(reply)
        except ModelError as error:
            yield Failure(type(error).__name__, self.name, raw=error.raw, attempt=due.failures + 1)
            return None
        ids = pack(i for item in old for i in item.ids)
        return compaction(view, [Replace(ids, user(summary))], due, policy=self.name, calls=1)


def opened(where: str | Path | Any = "memory://", id: str | None = None, **settings: Any) -> Session:
    """A session with the plain counter and model."""
    return Session.open(where, id, **{"counter": Letters(), "model": Echo(), **settings})


def texts(session: Session) -> list[str]:
    """What the messages of the view say."""
    return [m.text for m in session.view.messages]
