"""Mini-SWE-Agent 2.4.6: its agent loop, small, over a history that Clew keeps and the `linear` policy shows.

What the model is sent at each call is the policy's view of the log; the trajectory is that log in the
OpenAI format, with what the agent notes beside each message. Commands and replies come from the case.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from jinja2 import StrictUndefined, Template

from clew.codecs import openai
from clew.messages import Message
from clew.models.extractive import Extractive
from clew.models.steps import Offline, run
from clew.policies.harness.linear import Linear
from clew.sessions.entries import Entry, Said
from clew.sessions.view import Projection

MARKER = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
WINDOW = 200_000
LIMITS = {"step_limit": 0, "cost_limit": 3.0, "max_consecutive_format_errors": 3}
CONFIG_KEYS = ["agent", "agent_type", "environment", "environment_type", "model", "model_type"]
ERRORS = {
    "context": (
        "ContextWindowExceededError",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: prompt is too long",
    )
}
"""What the scripted provider raises, by the case's word for it: class and text."""


class Uncounted:
    """Mini-SWE-Agent counts no tokens."""

    name = "none"

    def text(self, text: str) -> int:
        return 0

    def message(self, message: Message) -> int:
        return 0

    def tools(self, tools: Any) -> int:
        return 0


class Ended(Exception):
    """The run is over: exit status, what the exit message says, the submission."""

    def __init__(self, status: str, content: str, submission: str = "") -> None:
        self.exit = {
            "role": "exit",
            "content": content,
            "extra": {"exit_status": status, "submission": submission},
        }


class FormatError(Exception):
    """The reply is not one valid call of the only tool after the other."""


@dataclass
class Agent:
    config: dict[str, Any]
    script: list[dict[str, Any]]
    outputs: list[tuple[str, int]]
    state: Projection = field(default_factory=lambda: Projection.start(Uncounted()))
    log: list[tuple[Message, dict[str, Any] | None]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    cost: float = 0.0
    format_errors: int = 0

    def limit(self, name: str) -> Any:
        return self.config.get(name, LIMITS[name])

    def add(self, payload: dict[str, Any], extra: dict[str, Any] | None = None) -> None:
        for message in openai.decode([payload]):
            self.log.append((message, extra))
            self.state = self.state.step(Entry(len(self.log), len(self.log) - 1 or None, Said(message)))

    def render(self, template: str, **values: Any) -> str:
        return Template(self.config[template], undefined=StrictUndefined).render(**self.config, **values)

    def view(self) -> list[dict[str, Any]]:
        policy, view = Linear(), self.state.view
        budget = policy.budget(WINDOW)
        due = policy.due(view, budget)
        assert due is None or run(policy.compact(view, budget, due), Offline(Extractive())) is None
        return openai.encode(view.messages)

    def step(self) -> None:
        if 0 < self.limit("step_limit") <= len(self.sent) or 0 < self.limit("cost_limit") <= self.cost:
            raise Ended("LimitsExceeded", "LimitsExceeded")
        turn = self.script[len(self.sent)]
        self.sent.append(len(self.view()))
        if "raise" in turn:
            raise Ended(*ERRORS[turn["raise"]])
        self.cost += self.config["cost_per_call"]
        try:
            actions = self.actions(turn)
        except FormatError as error:
            self.refuse(turn, str(error))
            return
        self.format_errors = 0
        calls = [
            {"id": a["tool_call_id"], "type": "function", "function": {"name": name, "arguments": arguments}}
            for a, (name, arguments) in zip(actions, turn["calls"], strict=True)
        ]
        self.add({"role": "assistant", "content": turn.get("text"), "tool_calls": calls}, self.noted(actions=actions))
        observations = [(a, self.execute(a["command"])) for a in actions]
        for action, output in observations:
            self.add(
                {
                    "role": "tool",
                    "tool_call_id": action["tool_call_id"],
                    "content": self.render("observation_template", output=output),
                },
                {
                    "raw_output": output["output"],
                    "returncode": output["returncode"],
                    "timestamp": 0,
                    "exception_info": "",
                },
            )

    def actions(self, turn: dict[str, Any]) -> list[dict[str, str]]:
        found = []
        for i, (name, arguments) in enumerate(turn.get("calls") or ()):
            try:
                command = json.loads(arguments)["command"]
            except (ValueError, KeyError, TypeError) as error:
                raise FormatError(f"bad arguments: {error}") from error
            if name != "bash":
                raise FormatError(f"unknown tool {name}")
            found.append({"command": command, "tool_call_id": f"call_{len(self.sent)}_{i}"})
        if not found:
            raise FormatError("no tool call")
        return found

    def refuse(self, turn: dict[str, Any], error: str) -> None:
        """The answer is not kept; the model is told what was wrong with it, and not too often."""
        text = self.render(
            "format_error_template",
            error=error,
            has_tool_calls=bool(turn.get("calls")),
            finish_reason=turn.get("finish_reason", "stop"),
        )
        extra = {"interrupt_type": "FormatError", "cost": self.config["cost_per_call"], "response": "<raw response>"}
        self.add({"role": "user", "content": text}, extra)
        self.format_errors += 1
        if 0 < self.limit("max_consecutive_format_errors") <= self.format_errors:
            raise Ended("RepeatedFormatError", "RepeatedFormatError")

    def noted(self, **values: Any) -> dict[str, Any]:
        return {**values, "response": "<raw response>", "cost": self.config["cost_per_call"], "timestamp": 0}

    def execute(self, command: str) -> dict[str, Any]:
        output, returncode = self.outputs[len(self.commands)]
        self.commands.append(command)
        lines = output.lstrip().splitlines(keepends=True)
        if lines and lines[0].strip() == MARKER and returncode == 0:
            raise Ended("Submitted", "".join(lines[1:]), "".join(lines[1:]))
        return {"output": output, "returncode": returncode, "exception_info": ""}


def _run(case: dict[str, Any]) -> dict[str, Any]:
    given = case["input"]
    agent = Agent(case["config"], given["model_script"], [tuple(o) for o in given["command_outputs"]])
    agent.add({"role": "system", "content": agent.render("system_template", task=_task(case))})
    agent.add({"role": "user", "content": agent.render("instance_template", task=_task(case))})
    while True:
        try:
            agent.step()
        except Ended as end:
            return _result(agent, end.exit)


def _task(case: dict[str, Any]) -> str:
    return str(case["input"].get("task", "fix it"))


def _result(agent: Agent, last: dict[str, Any]) -> dict[str, Any]:
    exit_status, submission = last["extra"]["exit_status"], last["extra"]["submission"]
    raised = any(exit_status == name for name, _ in ERRORS.values())
    if raised:
        last["extra"] |= {"exception_str": last["content"], "traceback": "<traceback>"}
    messages = []
    for message, extra in agent.log:
        (payload,) = openai.encode([message])
        messages.append(payload if extra is None else {**payload, "extra": extra})
    end = {"raised": exit_status} if raised else {"returned": {"exit_status": exit_status, "submission": submission}}
    return {
        **end,
        "trajectory": {
            "info": {
                "model_stats": {"instance_cost": agent.cost, "api_calls": len(agent.sent)},
                "mini_version": "2.4.6",
                "exit_status": exit_status,
                "submission": submission,
            },
            "config_keys": CONFIG_KEYS,
            "messages": [*messages, last],
            "trajectory_format": "mini-swe-agent-1.1",
        },
        "commands_run": agent.commands,
        "messages_sent_per_call": agent.sent,
    }


COMPONENTS = {"DefaultAgent.run": _run}
