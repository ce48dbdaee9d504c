"""Hooks: looking in before and after each phase, replacing what it works on, or saying no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from clew.agent.state import Action, ActionResult, Decision, Event, Observation, State, Step
from clew.agent.tools import Output
from clew.errors import ClewError
from clew.models.base import ModelCall, Reply
from clew.sessions.session import Session

if TYPE_CHECKING:
    from clew.agent.module import AgentModule

T = TypeVar("T")


class Veto(Struct, frozen=True):
    """What a hook returns to say no. An action is then not done, and the model is told why; in any other phase the
    run ends."""

    reason: str


class Vetoed(ClewError):
    """A hook said no."""


class Context(Struct, frozen=True):
    """Where the run stands when a hook is called."""

    agent: AgentModule[Any]
    session: Session
    state: State


class Hook:
    """Override what you need. A method may return None (go on), something in place of what it was given, or a `Veto`.

    What a hook raises ends the run and comes out of it: a guard that breaks must not be passed by.
    """

    def before_step(self, context: Context, state: State) -> State | Veto | None:
        """A step begins."""

    def before_observe(self, context: Context, observation: Observation) -> Observation | Veto | None:
        """What came of the last step is about to be looked at."""

    def after_observe(self, context: Context, observation: Observation) -> Observation | Veto | None:
        """What the agent has seen."""

    def before_prepare(self, context: Context, state: State) -> State | Veto | None:
        """The prompt is about to be made."""

    def after_prepare(self, context: Context, prompt: str) -> str | Veto | None:
        """What the agent is going to say to the model; memory is not in it yet."""

    def before_decide(self, context: Context, call: ModelCall) -> ModelCall | Reply | Veto | None:
        """The model is about to be called; a `Reply` takes the place of the call."""

    def after_decide(self, context: Context, decision: Decision) -> Decision | Veto | None:
        """The reply has been understood."""

    def before_act(self, context: Context, action: Action) -> Action | Output | Veto | None:
        """A tool is about to be called; an `Output` takes the place of the call."""

    def after_act(self, context: Context, result: ActionResult) -> ActionResult | Veto | None:
        """A tool has been called; the result is not in the log yet."""

    def before_reduce(self, context: Context, observation: Observation) -> Observation | Veto | None:
        """What came of the step."""

    def after_reduce(self, context: Context, state: State) -> State | Veto | None:
        """The new state."""

    def after_step(self, context: Context, step: Step) -> Step | Veto | None:
        """A step is done."""

    def on_event(self, context: Context, event: Event) -> None:
        """Anything happened."""


def hooked(hooks: Sequence[Hook], name: str, context: Context, value: T) -> T | Any:
    """What the hooks of this name make of a value, one after the other. Raises `Vetoed`."""
    for hook in hooks:
        said = getattr(hook, name)(context, value)
        if isinstance(said, Veto):
            raise Vetoed(said.reason)
        if said is not None:
            value = said
    return value
