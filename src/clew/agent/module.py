"""`AgentModule`: an agent is a model, tools, a memory, a history, and the few methods it overrides."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, Generic, TypeVar, cast

from msgspec.structs import replace

from clew.agent.conversation import Conversation, InHistory, InSession
from clew.agent.engine import Engine
from clew.agent.state import Action, Decision, Ended, Event, Observation, State
from clew.agent.tools import Tool, as_tools
from clew.errors import BadReply, RefusedReply, UnknownName
from clew.history.messages import History, HistoryPolicy
from clew.history.models import Function, FunctionModel
from clew.memory.base import Memory
from clew.memory.records import MemoryRecord
from clew.models.base import Delta, Model, Reply
from clew.policies import pi
from clew.sessions.session import Session

S = TypeVar("S", bound=State)


SAID = ("user", "assistant")
"""What a memory gets: what was said."""

QITOS_STREAM = ("task", "state", "decision", "action", "action_result", "observation", "next_state")
"""What QitOS 0.3.0 gives to a memory in every step, in this order (`task` once)."""

RECALL_ITEMS = 5
"""Records asked for with each prompt."""

RECALL_TOKENS = 1_000
"""What of them a prompt may hold, in tokens."""


class AgentModule(Generic[S]):
    """An agent: as it is, it answers with the help of its tools. Override a method to change what it does.

    - `llm`: a model of `clew.models`, or a function from chat messages (dicts with `role` and `content`) to a text
    - `memory`: what it remembers beyond the conversation. What goes with a prompt is shown in front of it, and what
      the user and the agent say is appended, as far as `remembers` names it
    - `history`: its conversation: a `Session` (default: one in memory, kept in the model's window by `policies.pi`),
      or one of QitOS's histories
    - `tools`: functions it may call (`clew.agent.tool`), sync or async
    - `instructions`: the system prompt
    - `remembers`: which records the memory gets: "user" and "assistant", or QitOS's (`QITOS_STREAM`)
    """

    state_type: type[State] = State
    name = "agent"

    def __init__(
        self,
        llm: Model | Function,
        memory: Memory | None = None,
        history: Session | History | None = None,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        *,
        instructions: str = "",
        remembers: Sequence[str] = SAID,
        recall_items: int = RECALL_ITEMS,
        recall_tokens: int = RECALL_TOKENS,
    ) -> None:
        if not (isinstance(llm, Model) or callable(llm)):
            raise UnknownName(f"llm={llm!r} is no model; make one, LiteLLM(name), or give a function of messages")
        if memory is not None and not isinstance(memory, Memory):
            raise UnknownName(f"memory={memory!r} is no memory; make one: RecallMemory(RecordLog(path))")
        if history is not None and not isinstance(history, Session | History):
            raise UnknownName(f"history={history!r} is none; open one: Session.open(path, policy=…)")
        if inspect.iscoroutinefunction(llm):
            raise UnknownName(
                f"llm={llm!r} is async; give a plain function, or a model with `complete` and `acomplete`"
            )
        roles = (*SAID, *QITOS_STREAM)
        if isinstance(remembers, str) or not {*roles} >= {*remembers}:
            raise UnknownName(f"remembers={remembers!r} is no list of roles; there are: {', '.join(roles)}")
        self.llm: Model = llm if isinstance(llm, Model) else FunctionModel(llm)
        self.memory = memory
        self.tools = as_tools(tools)
        self.instructions = instructions
        self.remembers = frozenset(remembers)
        self.recall_items = recall_items
        self.recall_tokens = recall_tokens
        self._own: Session | None = None
        self.history = self._opened() if history is None else history

    @property
    def session(self) -> Session:
        """The session that holds the conversation and the trace of every run."""
        return self.conversation().session

    def conversation(self, policy: HistoryPolicy | None = None) -> Conversation:
        """How the engine talks to the history."""
        if isinstance(self.history, Session):
            return InSession(self.history)
        if self._own is None:
            self._own = Session.open("memory://")
        return InHistory(self.history, self.llm, policy or HistoryPolicy(("user", "assistant", "tool")), self._own)

    def close(self) -> None:
        """Closes the session, if the agent opened it itself."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> AgentModule[S]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what an agent may override

    def init_state(self, task: str, **fields: Any) -> S:
        """The state a run begins with; `fields` are what `run` was given beside its own settings."""
        return cast(S, self.state_type(task=task, **fields))

    def build_system_prompt(self, state: S) -> str:
        """The instructions; they stay the same from step to step unless you change them."""
        return self.instructions

    def observe(self, state: S, observation: Observation) -> Observation:
        """What the agent sees before a step: the results of the last one, and what you add (`env`)."""
        return observation

    def prepare(self, state: S) -> str:
        """What to say to the model in this step, as the user. Nothing (""): it goes on from the results of its tools.

        What is remembered about it is put in front of it by the engine.
        """
        return state.task if state.current_step == 0 else ""

    def recall(self, state: S, observation: Observation, prompt: str) -> Sequence[MemoryRecord]:
        """What to remember with a prompt; nothing when the agent has no memory."""
        if self.memory is None:
            return ()
        query = {"text": prompt, "top_k": self.recall_items, "max_items": self.recall_items}
        return self.memory.retrieve(query, state, observation)

    def decide(self, state: S, observation: Observation) -> Decision | None:
        """What to do, without asking the model; None: ask it."""
        return None

    def interpret(self, state: S, reply: Reply) -> Decision:
        """What the model's reply means. Raises a `ModelError` for one that ends the run."""
        if reply.finish_reason == "refusal":
            raise RefusedReply("the model refused", raw=reply.text)
        if reply.finish_reason == "error":
            raise BadReply("the provider ended the reply with an error", raw=reply.text)
        calls = reply.message.calls
        if calls:
            return Decision.act(*(Action(c.name, c.arguments, c.id) for c in calls), rationale=reply.text)
        return Decision.final(reply.text) if reply.text.strip() else Decision.wait("empty")

    def act(self, state: S, action: Action) -> Any:
        """Does an action in a way of your own, and returns the result; `NotImplemented`: the tool of its name does."""
        return NotImplemented

    def reduce(self, state: S, observation: Observation, decision: Decision) -> S:
        """The state after a step; the engine counts the steps."""
        return replace(state, final_result=decision.final_answer) if decision.mode == "final" else state

    def should_stop(self, state: S) -> bool:
        """Whether to stop now, without a final answer."""
        return False

    # -- running

    def run(self, task: str | None, *, return_state: bool = False, **settings: Any) -> Any:
        """Works on a task until it is done, and returns the answer (with `return_state`: the `Result`).

        `task=None` goes on with the run at the end of the session that was interrupted; give it its limits again.
        The settings are those of `Engine` (`max_steps`, `max_seconds`, `max_tokens`, `max_cost`, `hooks`,
        `history_policy`, …); others go to `init_state`. Raises `RunStopped` when there is no answer, unless
        `return_state`.
        """
        engine, fields = self._engine(settings)
        return engine.run(task, return_state=return_state, **fields)

    async def arun(self, task: str | None, *, return_state: bool = False, **settings: Any) -> Any:
        """As `run`, with async calls of the model and of async tools."""
        engine, fields = self._engine(settings)
        return await engine.arun(task, return_state=return_state, **fields)

    def stream(self, task: str | None, **settings: Any) -> Generator[Event | Delta | Ended, None, None]:
        """As `run`; what happens comes out as it does, the text of replies piece by piece, at last `Ended(result)`."""
        engine, fields = self._engine(settings)
        return engine.stream(task, **fields)

    def astream(self, task: str | None, **settings: Any) -> AsyncGenerator[Event | Delta | Ended, None]:
        """As `stream`, with async calls."""
        engine, fields = self._engine(settings)
        return engine.astream(task, **fields)

    def _engine(self, settings: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
        own = {name: settings.pop(name) for name in Engine.SETTINGS if name in settings}
        return Engine(self, **own), settings

    def _opened(self) -> Session:
        self._own = Session.open("memory://", policy=pi(window=self.llm.context_window), model=self.llm)
        return self._own
