"""One run of an agent: what it works with, and what it has come to."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from clew.agent import trace
from clew.agent.asks import Do, Loop
from clew.agent.hooks import Context, hooked
from clew.agent.state import Event, Observation, State, Step, StopReason
from clew.errors import ClewError, UnknownName
from clew.memory.records import MemoryRecord, Source, digest
from clew.messages import Usage
from clew.models.prices import cost, price
from clew.sessions.entries import Entry

if TYPE_CHECKING:
    from clew.agent.engine import Engine


class Run:
    """A run in progress. What it has come to is in the session after every step; here is what is at hand."""

    def __init__(self, engine: Engine, task: str | None, fields: Mapping[str, Any]) -> None:
        self.engine = engine
        self.agent = engine.agent
        self.limits = engine.limits
        self.conversation = engine.agent.conversation(engine.history_policy)
        self.tools = engine.agent.tools
        self.records: list[Step] = []
        self.started = time.monotonic()
        self.observation = Observation()
        self.error: ClewError | None = None
        self.stop: StopReason | None = None
        self.said: dict[str, Entry] = {}
        self.schemas = tuple(tool.schema for tool in self.tools.values())
        self.conversation.offer(self.schemas)
        if task is None:
            self._go_on()
        else:
            self.id = self.keys = secrets.token_hex(6)
            self.task = task
            self.totals = trace.Totals()
            self.state: State = engine.agent.init_state(task, **fields)
            if not self.state.max_steps:
                self.state = replace(self.state, max_steps=self.limits.steps)
            self.resumed = False

    def _go_on(self) -> None:
        """Takes up the unfinished run at the end of the session."""
        found = trace.unfinished(self.conversation.session.branch())
        self.id, self.task, self.totals, self.said = found.run, found.task, found.totals, found.said
        self.keys = f"{found.run}.{self.conversation.session.newest}"
        try:
            self.state = msgspec.convert(found.state, self.agent.state_type)
        except msgspec.ValidationError as error:
            raise UnknownName(
                f"the state of the unfinished run is no {self.agent.state_type.__name__} ({error}); "
                "give the agent the state_type it had"
            ) from error
        if found.last:
            last, results = found.last, tuple(trace.results(found.before))
            self.observation = Observation(last["step"], results, last["error"], last["env"])
            self.stop = StopReason(last["stop"]) if last["stop"] else None
        self.resumed = True

    # -- the session

    @property
    def step(self) -> int:
        """The number of the step, from 0."""
        return self.totals.steps

    def key(self, what: str) -> str:
        """The key of an entry of this step."""
        return trace.key(self.keys, self.step, what)

    def note(self, kind: str, data: Mapping[str, Any], what: str = "") -> Entry:
        """Adds a note to the session: before the call returns it is durable."""
        draft = trace.note(kind, {"run": self.id, "step": self.step, **data}, self.key(what) if what else "")
        return self.conversation.session.append_many([draft])[0]

    # -- limits

    @property
    def seconds(self) -> float:
        """How long the run has taken, also before it was interrupted."""
        return self.totals.seconds + time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self.seconds)

    @property
    def cost(self) -> float | None:
        """US dollars so far; None when no price is known."""
        try:
            return cost(self.totals.usage, price(self.agent.llm.name))
        except UnknownName:
            return None

    def spent(self, usage: Usage) -> None:
        """Counts the tokens of a model call."""
        self.totals = replace(self.totals, usage=self.totals.usage + usage)

    def exhausted(self) -> StopReason | None:
        """The limit that has been reached, if any."""
        limits, usage = self.limits, self.totals.usage
        if self.step >= limits.steps:
            return StopReason.STEPS
        if limits.seconds is not None and self.seconds >= limits.seconds:
            return StopReason.TIME
        if limits.tokens is not None and usage.total >= limits.tokens:
            return StopReason.TOKENS
        if limits.cost is not None and (self.cost or 0.0) >= limits.cost:
            return StopReason.COST
        return None

    # -- hooks, events, memory

    def hooked(self, name: str, value: Any) -> Any:
        """What the hooks make of a value. Raises `Vetoed`."""
        hooks = self.engine.hooks
        return hooked(hooks, name, self._context(), value) if hooks else value

    def event(self, phase: str, stage: str = "", **data: Any) -> Event:
        """An event of this step, which the hooks have seen."""
        event = Event(self.step, phase, stage, data)
        for hook in self.engine.hooks:
            hook.on_event(self._context(), event)
        return event

    def _context(self) -> Context:
        return Context(self.agent, self.conversation.session, self.state)

    def remember(self, role: str, content: Any, entry: int | None = None) -> Loop[None]:
        """Gives the memory a record, if it wants records of this role. What an entry says has the same id each time: a
        memory over a log stores it once, also when a crash makes it be told again."""
        memory = self.agent.memory
        if memory is None or role not in self.agent.remembers:
            return
        session = self.conversation.session.id
        text = content if isinstance(content, str) else msgspec.to_builtins(content, str_keys=True, enc_hook=str)
        sources = (Source.of(entry, str(text), session),) if entry is not None else ()
        id = digest(f"{session}\0{entry}")[:16] if entry is not None else ""
        record = MemoryRecord(role, text, self.step, {"session": session}, id=id, sources=sources)
        yield Do(lambda: memory.append(record))
