"""QitOS 0.3.0's golden runs, done by Clew's engine: its histories, its stream of records, its parser's two forms."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from clew.agent import (
    QITOS_STREAM,
    Action,
    AgentModule,
    Context,
    Decision,
    Ended,
    Event,
    Hook,
    Result,
    State,
    StopReason,
)
from clew.agent.conversation import InHistory
from clew.errors import TransportError
from clew.history import CompactHistory, HistoryMessage, HistoryPolicy, WindowHistory
from clew.history.compact_raw import CompactConfig
from clew.history.logged import LoggedHistory
from clew.memory import MemoryRecord, WindowMemory
from clew.messages import assistant
from clew.models import ModelCall, Reply
from clew.policies.harness.qitos import available
from clew.sessions import Session
from clew.tokens import upstream

Json = dict[str, Any]

WINDOW = 128_000
ACTION = re.compile(r"^Action: *(\w+)\((.*)\)\s*$", re.MULTILINE)
ARGUMENT = re.compile(r"(\w+)\s*=\s*([^,]+)")
FINAL = re.compile(r"Final Answer: *(.*)", re.DOTALL)
OURS = {"context", "recalled", "overflow", "tool_start", "tool_end"}
"""Stages that QitOS does not have."""


def estimate(text: str) -> int:
    """The engine's count of a text; nothing counts 0."""
    return max(1, len(text) // 4) if text else 0


class Llm:
    """The scripted model: the outputs in order, the last one again and again; "!raise" fails."""

    name = "scripted"

    def __init__(self, config: Json) -> None:
        attributes = config.get("model_attributes", {})
        self.context_window = attributes.get("context_window") or WINDOW
        self.max_tokens = attributes.get("max_tokens") or 0
        self.outputs = config["model_outputs"]
        self.calls = 0

    def text(self, messages: Any = None) -> str:
        text = str(self.outputs[min(self.calls, len(self.outputs) - 1)])
        self.calls += 1
        if text == "!raise":
            raise TransportError(text)
        return text

    def complete(self, call: ModelCall) -> Reply:
        return Reply(assistant(self.text()))

    async def acomplete(self, call: ModelCall) -> Reply:
        return self.complete(call)


class Upstream(InHistory):
    """Counts a history as QitOS's engine does: on the text of the list."""

    def weight(self, shown: Sequence[HistoryMessage]) -> int:
        return max(1, len(repr([{"role": m.role, "content": str(m.content)} for m in shown])) // 4)


class Stream(WindowMemory):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[list[Any]] = []

    def append(self, record: MemoryRecord) -> None:
        self.given.append([record.step_id, record.role])


class Agent(AgentModule[State]):
    """The agent of the cases: prompts by step, actions and answers in ReAct's form."""

    def __init__(self, config: Json) -> None:
        llm = Llm(config)
        self.config = config
        self.stream_of_records = Stream() if config.get("memory") else None
        super().__init__(
            llm,
            self.stream_of_records,
            self._chosen(config.get("history"), llm),
            instructions=config["system_prompt"],
            remembers=QITOS_STREAM,
        )
        self._own = Session.open("memory://", counter=upstream.QitOS())

    @staticmethod
    def _chosen(given: Json | None, llm: Llm) -> LoggedHistory:
        if given is None:
            room = available(llm.context_window, llm.max_tokens)
            return CompactHistory(llm=llm.text, max_tokens=max(1024, room), faithful=True)
        if given["class"] == "WindowHistory":
            return WindowHistory(given["window_size"], faithful=True)
        return CompactHistory(config=CompactConfig(**given["config"]), faithful=True)

    def conversation(self, policy: HistoryPolicy | None = None) -> InHistory:
        assert isinstance(self.history, LoggedHistory)
        assert self._own is not None
        return Upstream(self.history, self.llm, policy or HistoryPolicy(), self._own)

    def prepare(self, state: State) -> str:
        texts = self.config["prepare_by_step"]
        return str(texts[min(state.current_step, len(texts) - 1)])

    def recall(self, *_: Any) -> Sequence[MemoryRecord]:
        return ()

    def interpret(self, state: State, reply: Reply) -> Decision:
        action, final = ACTION.search(reply.text), FINAL.search(reply.text)
        if final is not None:
            return Decision.final(final[1].strip())
        if action is None:
            return Decision.wait("parser")
        return Decision.act(Action(action[1], json.dumps(dict(ARGUMENT.findall(action[2])))))

    def act(self, state: State, action: Action) -> Any:
        return sum(map(int, json.loads(action.arguments).values()))


class Trace(Hook):
    """Writes down what happens in the shape of a case's output."""

    def __init__(self, agent: Agent) -> None:
        self.system = agent.config["system_prompt"].strip()
        self.stages: list[list[Any]] = []
        self.requests: list[list[Json]] = []
        self.events: list[list[Any]] = []
        self.metas: list[list[Any]] = []
        self.figures: list[Json] = []
        self._told: list[Json] = []
        self._total = 0

    def on_event(self, context: Context, event: Event) -> None:
        if event.stage not in OURS:
            self.stages.append([event.step, event.phase, event.stage or None])
        match event.stage:
            case "model_input":
                self._request(event)
            case "model_output":
                self.figures[-1]["output_tokens"] = estimate(event.data["text"])
                self._total += self.figures[-1]["input_tokens_total"] + self.figures[-1]["output_tokens"]
                self.figures[-1]["tokens_total"] = self._total

    def saw(self, event: Event) -> None:
        """What the history told, and the figures of the request."""
        if event.stage == "context_history":
            self.stages.append([event.step, event.phase, event.stage])
            self._told.append(event.data["context"])
        elif event.stage == "context_overflow":
            self.stages.append([event.step, event.phase, event.stage])
            self.figures[-1] = {}
        elif event.stage == "context":
            self._context(event)

    def _context(self, event: Event) -> None:
        data = event.data
        self.metas.append([event.step, data["history_messages_meta"]])
        held, room = data["history_tokens"], data["available_input_budget"]
        total = estimate(self.system) + held + data["prepared_tokens"]
        ratio = min(1.0, total / room)
        self.figures.append(
            {
                "context_window": data["context_window"],
                "available_input_budget": room,
                "reserve_tokens": data["context_window"] - data["max_output_tokens"] - room,
                "max_output_tokens": data["max_output_tokens"],
                "history_budget": data["history_budget"],
                "system_prompt_tokens": estimate(self.system),
                "history_tokens": held,
                "prepared_tokens": data["prepared_tokens"],
                "input_tokens_total": total,
                "output_tokens": 0,
                "occupancy_ratio": ratio,
                "history_message_count": data["history_message_count"],
                "counting_mode": "engine_estimate",
                "tokens_total": 0,
            }
        )
        self.events += [[event.step, {**told, "occupancy_ratio": ratio}] for told in self._told]
        self._told = []

    def _request(self, event: Event) -> None:
        self.requests.append([{"role": m.role, "content": m.text} for m in event.data["messages"]])


def run(config: Json) -> Json:
    """The outcome of a run, in the shape of a case's output."""
    agent = Agent(config)
    trace = Trace(agent)
    policy = HistoryPolicy(**config.get("history_policy", {}))
    settings = {"max_steps": config["max_steps"], "history_policy": policy, "backoff": 0.0, "empty_replies": 1_000}
    result: Result | None = None
    for event in agent.stream(config.get("task", "demo task"), hooks=[trace], **settings):
        if isinstance(event, Ended):
            result = event.result
        elif isinstance(event, Event):
            trace.saw(event)
    agent.close()
    assert result is not None
    if result.stop_reason is not StopReason.STEPS:  # QitOS counts a step when it goes on to the next
        trace.stages[-1][0] = result.step_count - 1
    asked = len(trace.requests)
    return {
        "final_result": result.final_result,
        "stop_reason": str(result.stop_reason),
        "step_count": result.step_count,
        "history_class_used": type(agent.history).__name__,
        "requests": trace.requests,
        "memory_stream": agent.stream_of_records.given if agent.stream_of_records else None,
        "history_events": trace.events,
        "model_input_meta": trace.metas[:asked],
        "event_stages": trace.stages,
        "telemetry_by_step": trace.figures,
    }
