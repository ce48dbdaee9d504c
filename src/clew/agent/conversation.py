"""Where an agent's conversation is kept: a session, or one of QitOS's histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from clew.agent.asks import Do, Fit, Loop, Recover
from clew.agent.state import Event, Observation, State
from clew.errors import BadBudget, ContextOverflow
from clew.history.messages import History, HistoryMessage, HistoryPolicy
from clew.history.translate import logged
from clew.messages import Message, ToolCall, system
from clew.models.base import Model
from clew.policies.harness.qitos import available
from clew.sessions.entries import Draft, Entry, Said
from clew.sessions.overflow import is_overflow
from clew.sessions.session import Session
from clew.tokens.protocol import TokenCounter

WINDOW = 128_000
"""Tokens taken for a model's window when it does not know its own (QitOS 0.3.0)."""

WARNING_RATIO = 0.8
"""Share of the room for the prompt from which QitOS 0.3.0 warns."""

SMALLER = 0.6
"""After an overflow a history is asked for so much of what it gave: below what the provider's own count may differ."""


class Conversation(ABC):
    """Takes in what is said, and gives the messages for the next model call."""

    @property
    @abstractmethod
    def session(self) -> Session:
        """The log: of the conversation, and of the run."""

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens."""
        return self.session.view.counter

    @abstractmethod
    def say(self, message: Message, key: str, step: int) -> Entry | None:
        """Adds a message; its entry, if it has one."""

    @abstractmethod
    def request(
        self, instructions: str, prompt: tuple[Message, str] | None, state: State, observation: Observation, step: int
    ) -> Loop[list[Message]]:
        """The messages for the next call, and the `prompt` (with its key) said as their last."""

    @abstractmethod
    def recover(self, error: BaseException, step: int) -> Loop[bool]:
        """After an overflow: whether the next request will be smaller."""

    @abstractmethod
    def offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """These tool schemas are sent with every request: they count."""

    @abstractmethod
    def begin(self) -> None:
        """Forgets what was said, as far as the next requests go."""


class InSession(Conversation):
    """The conversation is the session's branch, and the view its policy makes of it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def session(self) -> Session:
        return self._session

    def say(self, message: Message, key: str, step: int) -> Entry:
        return self._session.append_many([Draft(Said(message), key=key)])[0]

    def request(
        self, instructions: str, prompt: tuple[Message, str] | None, state: State, observation: Observation, step: int
    ) -> Loop[list[Message]]:
        if instructions and not self._session.view.items:
            self._session.append(system(instructions))
        if prompt is not None:
            self.say(*prompt, step)
        messages = list((yield Fit(self._session)))
        return instructed(messages, instructions) if instructions else messages

    def recover(self, error: BaseException, step: int) -> Loop[bool]:
        return bool((yield Recover(self._session, error)))

    def offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._session.offer(tools)

    def begin(self) -> None:
        self._session.branch_to(None)


class InHistory(Conversation):
    """The conversation is a history, which is asked for the last of it at every step, as QitOS's engine does.

    What the window leaves beside instructions and prompt is the limit of what it is asked for; `policy` may set a
    lower one. The trace is in the history's own session, or else in `beside`.
    """

    def __init__(self, history: History, model: Model, policy: HistoryPolicy, beside: Session) -> None:
        self.history = history
        self.policy = policy
        self._beside = beside
        self._model = model
        self._system = ""
        self._limit: int | None = None  # after an overflow: tokens
        self._shown = 0
        self._overhead = 0

    @property
    def session(self) -> Session:
        return getattr(self.history, "session", None) or self._beside

    def say(self, message: Message, key: str, step: int) -> Entry | None:
        metadata: dict[str, Any] = {"source": "engine"}
        kept = getattr(self.history, "session", None) is not None
        if kept:
            metadata["key"] = key
        if message.calls:
            metadata["tool_calls"] = [_openai(call) for call in message.calls]
        if message.results:
            metadata["tool_call_id"] = message.results[0].call_id
        text = message.results[0].text if message.results else message.text
        self.history.append(HistoryMessage(message.role, text, step, metadata))
        leaf = self.session.leaf
        return next(iter(self.session.expand(leaf)), None) if kept and leaf is not None else None

    def request(
        self, instructions: str, prompt: tuple[Message, str] | None, state: State, observation: Observation, step: int
    ) -> Loop[list[Message]]:
        instructions = instructions.strip()
        if instructions and instructions != self._system:
            self._system = instructions
            self.history.append(HistoryMessage("system", instructions, step, {"source": "engine"}))
        asked = prompt[0].text if prompt else ""
        output = int(getattr(self._model, "max_tokens", 0) or 0)
        window = _window(self._model)
        room = available(window, output)
        fixed = self.counter.text(instructions) + self.counter.text(asked) + self._overhead
        budget = max(1, room - fixed)
        query: dict[str, Any] = self.policy.build_query(step, phase="DECIDE", query_kind="decide")
        query |= {"pending_content": asked, "model_name": self._model.name, "step_id": step}
        query["warning_ratio"] = WARNING_RATIO
        query["max_tokens"] = min(query.get("max_tokens", budget), budget, self._limit or budget)
        found = yield Do(lambda: self.history.retrieve(query, state, observation))
        shown = [m if isinstance(m, HistoryMessage) else _message(m) for m in found]
        shown = [m for m in shown if m.role and (m.content or m.metadata.get("tool_calls"))]
        self._shown = self.weight(shown)
        events = self.history.consume_runtime_events()
        metadata = self.history.get_last_message_metadata()
        for event in events:
            yield Event(step, "DECIDE", str(event.get("stage", "context_history")), event)
        head = [system(instructions)] if instructions else []
        messages = [*head, *_logged(shown), *([prompt[0]] if prompt else [])]
        yield Event(
            step,
            "DECIDE",
            "context",
            {
                "context_window": window,
                "available_input_budget": room,
                "max_output_tokens": output,
                "history_budget": budget,
                "history_tokens": self._shown,
                "prepared_tokens": self.counter.text(asked),
                "history_message_count": len(shown),
                "history_messages_meta": metadata,
            },
        )
        if self._shown + fixed > room:
            yield Event(step, "DECIDE", "context_overflow")
            system_tokens, user_tokens = self.counter.text(instructions), self.counter.text(asked)
            figures = {"system": system_tokens, "tools": self._overhead, "user": user_tokens}
            raise ContextOverflow(
                {**figures, "needed": self._shown + fixed, "available": room, "window": window, "output": output}
            )
        if prompt is not None:
            self.say(*prompt, step)
        return messages

    def weight(self, shown: Sequence[HistoryMessage]) -> int:
        """Tokens of what a history showed."""
        return sum(self.counter.text(m.text) for m in shown)

    def recover(self, error: BaseException, step: int) -> Loop[bool]:
        if not is_overflow(error) or not self._shown:
            return False
        self._limit = max(1, int(self._shown * SMALLER))
        return True
        yield  # a loop that asks for nothing

    def offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._overhead = self.counter.tools(tools) if tools else 0

    def begin(self) -> None:
        self.history.reset()
        self._system, self._limit = "", None


def instructed(messages: Sequence[Message], instructions: str) -> list[Message]:
    """The messages with these instructions at their head, in place of others."""
    n = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    head = [m for m in messages[:n] if m.text == instructions] or [system(instructions)]
    return [*head[:1], *messages[n:]]


def _window(model: Model) -> int:
    try:
        return model.context_window
    except BadBudget:
        return WINDOW


def _logged(shown: Sequence[HistoryMessage]) -> list[Message]:
    out: list[Message] = []
    waiting: set[str] = set()
    for one in shown:
        message = logged(one, waiting)
        if message.role == "assistant":
            waiting = {call.id for call in message.calls}
        waiting -= {result.call_id for result in message.results}
        out.append(message)
    return out


def _message(value: Mapping[str, Any]) -> HistoryMessage:
    """A message of a history of the user's own, which may give plain dicts."""
    return HistoryMessage(str(value.get("role", "")), value.get("content"), int(value.get("step_id", 0)))


def _openai(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
