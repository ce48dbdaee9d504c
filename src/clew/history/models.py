"""The models a history may be given: one of Clew's, a plain function as in QitOS, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.errors import TransportError
from clew.messages import assistant
from clew.models.base import Model, ModelCall, Reply

Function = Callable[[list[dict[str, str]]], Any]
"""Takes chat messages (a list of dicts with `role` and `content`), gives back the text of the answer, or a `Reply`."""


class FunctionModel:
    """A function of chat messages as a model. Whatever it raises becomes a `TransportError`.

    It sees texts only: neither the tools that are offered nor what calls gave.
    """

    name = "function"

    def __init__(self, function: Function, context_window: int = 128_000) -> None:
        self.function = function
        self.context_window = context_window

    def complete(self, call: ModelCall) -> Reply:
        try:
            answer = self.function([{"role": m.role, "content": m.text} for m in call.messages])
        except Exception as error:  # a foreign function may raise anything; it goes on, typed
            raise TransportError(f"the model's function raised {type(error).__name__}: {error}") from error
        return answer if isinstance(answer, Reply) else Reply(assistant(str(answer or "")))

    async def acomplete(self, call: ModelCall) -> Reply:
        import asyncio  # takes as long to import as all of Clew: only for who uses it

        return await asyncio.to_thread(self.complete, call)


class NoModel:
    """Stands for a model that is not there: every call fails, so summaries fall back to their template."""

    name = "none"
    context_window = 128_000

    def complete(self, call: ModelCall) -> Reply:
        raise TransportError("no model was given")

    async def acomplete(self, call: ModelCall) -> Reply:
        return self.complete(call)


def as_model(llm: Model | Function | None) -> Model | None:
    """The model in whatever the caller gave."""
    if llm is None or isinstance(llm, Model):
        return llm
    return FunctionModel(llm)
