"""`Engine`: runs an agent within limits, sync, async, or as a stream of what happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import TYPE_CHECKING, Any

from clew.agent.asks import Loop, adrive, drive
from clew.agent.hooks import Hook
from clew.agent.loop import looped
from clew.agent.run import Run
from clew.agent.state import MAX_STEPS, Ended, Event, Limits, Result, RunStopped, StopReason
from clew.errors import BadBudget, UnknownName
from clew.history.messages import HistoryPolicy
from clew.models.base import Delta
from clew.models.prices import price

if TYPE_CHECKING:
    from clew.agent.module import AgentModule

EMPTY_REPLIES = 2
"""Empty replies in a row after which the model is asked once more; the next one ends the run."""

RECOVERIES = 3
"""Failed model calls of a run that are tried again, in the next step (QitOS 0.3.0)."""

BACKOFF = 1.0
"""Seconds to wait after the first failed call; twice as many after each further one."""


class Engine:
    """Runs an agent. The limits hold for one run; its trace is in the agent's session.

    - `max_steps`, `max_seconds`, `max_tokens`, `max_cost` (US dollars): see `Limits`
    - `hooks`: see `Hook`
    - `history_policy`: how much of a QitOS history to ask for
    - `empty_replies`: how many empty replies in a row are asked again
    - `recoveries`: how many failed model calls of a run are tried again, `backoff` seconds after the first
    - `fresh`: begin with an empty conversation and a new run of the memory, as QitOS does; nothing stored is lost
    """

    SETTINGS = (
        "max_steps",
        "max_seconds",
        "max_tokens",
        "max_cost",
        "hooks",
        "history_policy",
        "empty_replies",
        "recoveries",
        "backoff",
        "fresh",
    )

    def __init__(
        self,
        agent: AgentModule[Any],
        *,
        max_steps: int = MAX_STEPS,
        max_seconds: float | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        hooks: Sequence[Hook] = (),
        history_policy: HistoryPolicy | None = None,
        empty_replies: int = EMPTY_REPLIES,
        recoveries: int = RECOVERIES,
        backoff: float = BACKOFF,
        fresh: bool = False,
    ) -> None:
        if max_steps < 1:
            raise BadBudget(f"max_steps is {max_steps}; a run takes at least 1 step")
        for name, value in (
            ("max_seconds", max_seconds),
            ("max_tokens", max_tokens),
            ("max_cost", max_cost),
            ("empty_replies", empty_replies),
            ("recoveries", recoveries),
            ("backoff", backoff),
        ):
            if value is not None and not value >= 0:
                raise BadBudget(f"{name} is {value}; it must be 0 or more")
        for hook in hooks:
            if not isinstance(hook, Hook):
                raise UnknownName(f"hooks: {hook!r} is no hook; make an object of a subclass of clew.agent.Hook")
        if max_cost is not None:
            price(agent.llm.name)  # a limit in dollars needs a price: said now, not after the money is spent
        self.agent = agent
        self.limits = Limits(max_steps, max_seconds, max_tokens, max_cost)
        self.hooks = tuple(hooks)
        self.history_policy = history_policy
        self.empty_replies = empty_replies
        self.recoveries = recoveries
        self.backoff = backoff
        self.fresh = fresh

    def run(self, task: str | None, *, return_state: bool = False, **fields: Any) -> Any:
        """See `AgentModule.run`."""
        result = None
        for event in drive(self._loop(task, fields), self.agent.llm, deltas=False):
            if isinstance(event, Ended):
                result = event.result
        return _given(result, return_state)

    async def arun(self, task: str | None, *, return_state: bool = False, **fields: Any) -> Any:
        """See `AgentModule.arun`."""
        result = None
        async for event in adrive(self._loop(task, fields), self.agent.llm, deltas=False):
            if isinstance(event, Ended):
                result = event.result
        return _given(result, return_state)

    def stream(self, task: str | None, **fields: Any) -> Generator[Event | Delta | Ended, None, None]:
        """See `AgentModule.stream`."""
        return drive(self._loop(task, fields), self.agent.llm, deltas=True)

    def astream(self, task: str | None, **fields: Any) -> AsyncGenerator[Event | Delta | Ended, None]:
        """See `AgentModule.astream`."""
        return adrive(self._loop(task, fields), self.agent.llm, deltas=True)

    def _loop(self, task: str | None, fields: dict[str, Any]) -> Loop[Result]:
        return looped(Run(self, task, fields))


def _given(result: Result | None, return_state: bool) -> Any:
    assert result is not None, "a loop that ends without a result has raised"
    if return_state:
        return result
    if result.stop_reason not in (StopReason.FINAL, StopReason.CONDITION):
        raise RunStopped(result) from result.error
    return result.final_result
