"""What an agent is at, what it decided, what it saw, and how a run ended: QitOS's words as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct, field

from clew.agent.tools import Output
from clew.errors import ClewError
from clew.messages import Usage
from clew.models.base import Reply

MAX_STEPS = 25
"""Steps of a run by default (QitOS 0.3.0: 10, too few for most coding tasks)."""


class StopReason(StrEnum):
    """Why a run ended. The first six are QitOS's words."""

    FINAL = "final"
    STEPS = "budget_steps"
    TIME = "budget_time"
    TOKENS = "budget_tokens"
    CONDITION = "agent_condition"
    MODEL = "unrecoverable_error"
    OVERFLOW = "context_overflow"
    COST = "budget_cost"
    EMPTY = "empty_replies"
    VETO = "vetoed"


class State(Struct, frozen=True, kw_only=True):
    """Where a run stands. Subclass it with fields of your own, which must be JSON: it is stored after every step."""

    task: str = ""
    current_step: int = 0
    max_steps: int = 0
    final_result: str | None = None
    stop_reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Action(Struct, frozen=True, omit_defaults=True):
    """One call of a tool. `arguments` is JSON text; `call_id` is the model's, empty when the text asked for it."""

    name: str
    arguments: str = "{}"
    call_id: str = ""


class Decision(Struct, frozen=True, omit_defaults=True):
    """What to do next: call tools ("act"), be done ("final"), or look again ("wait").

    `error` says why the model's reply came to nothing: "empty" for an empty one.
    """

    mode: Literal["act", "final", "wait"]
    actions: tuple[Action, ...] = ()
    final_answer: str = ""
    rationale: str = ""
    error: str = ""

    @classmethod
    def act(cls, *actions: Action, rationale: str = "") -> Decision:
        """Calls tools."""
        return cls("act", actions, rationale=rationale)

    @classmethod
    def final(cls, answer: str, rationale: str = "") -> Decision:
        """The run is done, with this answer."""
        return cls("final", final_answer=answer, rationale=rationale)

    @classmethod
    def wait(cls, error: str = "", rationale: str = "") -> Decision:
        """Does nothing in this step."""
        return cls("wait", rationale=rationale, error=error)


class ActionResult(Struct, frozen=True, omit_defaults=True):
    """What came of an action. `entry` is where all of it is in the log, when the model saw a part only (else 0)."""

    action: Action
    output: Output
    entry: int = 0


class Observation(Struct, frozen=True, omit_defaults=True):
    """What the agent sees after a step: the results of its actions, and what else `observe` adds to `env`.

    `error` is why the step came to nothing ("empty": the model's reply was; else the type of the error).
    """

    step: int = 0
    action_results: tuple[ActionResult, ...] = ()
    error: str = ""
    env: Mapping[str, Any] = field(default_factory=dict)


class Limits(Struct, frozen=True):
    """What a run may use: steps, seconds, tokens (of prompts and replies, summed), US dollars. None: no limit.

    It ends between two steps, once a limit is reached; a model or a tool is not given more time than is left.
    """

    steps: int = MAX_STEPS
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None


class Step(Struct, frozen=True):
    """One step of a run, as its caller gets it."""

    number: int
    prompt: str
    reply: Reply | None
    decision: Decision
    observation: Observation


class Result(Struct, frozen=True):
    """How a run ended. `usage` and `cost` (US dollars; None: no price is known) are of all its calls, summaries too.

    `records` are the steps done by this process: of a run that was taken up again, those since.
    """

    state: State
    stop_reason: StopReason
    step_count: int
    records: tuple[Step, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    seconds: float = 0.0
    error: ClewError | None = None

    @property
    def final_result(self) -> str | None:
        """The answer; None when the run ended without one."""
        return self.state.final_result


class RunStopped(ClewError):
    """A run ended without an answer; `result` tells how far it came. With `return_state=True` that is returned."""

    def __init__(self, result: Result) -> None:
        detail = f": {result.error}" if result.error else ""
        super().__init__(
            f"the run ended after {result.step_count} steps without an answer ({result.stop_reason}){detail}; "
            "its log is in the session, and run(..., return_state=True) returns what there is"
        )
        self.result = result


class Event(Struct, frozen=True):
    """Something that happened, in QitOS's words: phases INIT, DECIDE, ACT, REDUCE, CHECK_STOP, RECOVER, END."""

    step: int
    phase: str
    stage: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


class Ended(Struct, frozen=True):
    """The last event of a stream."""

    result: Result
