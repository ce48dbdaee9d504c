"""What QitOS's engine does around a history and a memory, as far as its golden cases show it.

A stand-in, so that the histories are tested where they live: it asks a scripted model, step by step, with the
requests, events and figures of the real engine. Clew's own engine takes its place when there is one.
"""

from __future__ import annotations

import re
from typing import Any

from clew.history import CompactConfig, CompactHistory, HistoryMessage, HistoryPolicy, WindowHistory
from clew.history.logged import LoggedHistory
from clew.policies.harness.qitos import available

Json = dict[str, Any]

WINDOW = 128_000
WARNING_RATIO = 0.8
RECOVERIES = 3
ACTION = re.compile(r"^Action: *(\w+)\((.*)\)\s*$", re.MULTILINE)
FINAL = re.compile(r"Final Answer: *(.*)", re.DOTALL)


def estimate(text: str) -> int:
    """The engine's count of a text; nothing counts 0."""
    return max(1, len(text) // 4) if text else 0


class Engine:
    """One run. `done` is its outcome in the shape of a case's output."""

    def __init__(self, config: Json) -> None:
        self.config = config
        attributes = config.get("model_attributes", {})
        self.window = attributes.get("context_window") or WINDOW
        self.output = attributes.get("max_tokens") or 0
        self.room = available(self.window, self.output)
        self.history = self._history()
        self.policy = HistoryPolicy(**config.get("history_policy", {}))
        self.step = 0
        self.calls = self.total = self.recoveries = 0
        self.system = ""
        self.done: Json = {
            "final_result": None,
            "stop_reason": "budget_steps",
            "history_class_used": type(self.history).__name__,
            "requests": [],
            "memory_stream": [] if config.get("memory") else None,
            "history_events": [],
            "model_input_meta": [],
            "event_stages": [],
            "telemetry_by_step": [],
        }

    def run(self) -> Json:
        self._remember("task")
        self._event("INIT", None)
        while self.step < self.config["max_steps"] and self._turn():
            self.step += 1
        self._event("END", None)
        self.done["step_count"] = len(self.done["telemetry_by_step"])
        return self.done

    def _history(self) -> LoggedHistory:
        given = self.config.get("history")
        if given is None:
            return CompactHistory(llm=self._answer, max_tokens=max(1024, self.room), faithful=True)
        if given["class"] == "WindowHistory":
            return WindowHistory(given["window_size"], faithful=True)
        return CompactHistory(config=CompactConfig(**given["config"]), faithful=True)

    def _turn(self) -> bool:
        """One step; whether the run goes on."""
        self._event("DECIDE", "state_ready")
        self._remember("state")
        self._event("DECIDE", "start")
        texts = self.config["prepare_by_step"]
        prepared = texts[min(self.step, len(texts) - 1)]
        request, figures = self._request(prepared)
        if figures["input_tokens_total"] > self.room:
            self.done["telemetry_by_step"].append({})
            self._event("DECIDE", "context_overflow")
            return self._failed("context_overflow")
        self.done["telemetry_by_step"].append(figures)
        self.done["requests"].append(request)
        self._event("DECIDE", "model_input")
        self.done["model_input_meta"].append([self.step, self.history.get_last_message_metadata()])
        self._say("user", prepared)
        try:
            text = self._answer(request)
        except ConnectionError:
            self.recoveries += 1
            return self._failed("unrecoverable_error" if self.recoveries > RECOVERIES else None)
        figures["output_tokens"] = estimate(text)
        self.total += figures["input_tokens_total"] + figures["output_tokens"]
        figures["tokens_total"] = self.total
        self._event("DECIDE", "model_output")
        self._say("assistant", text)
        return self._act(text)

    def _failed(self, stop: str | None) -> bool:
        """What follows a failed step; whether the run goes on."""
        self._event("DECIDE_ERROR", None)
        self._event("RECOVER", None)
        if stop is not None:
            self.done["stop_reason"] = stop
        return stop is None

    def _request(self, prepared: str) -> tuple[list[Json], Json]:
        system = self.config["system_prompt"].strip()
        if system and system != self.system:
            self.system = system
            self._say("system", system)
        budget = max(1, self.room - estimate(system) - estimate(prepared))
        query = self.policy.build_query(self.step, phase="DECIDE", query_kind="decide")
        query |= {"pending_content": prepared, "step_id": self.step, "warning_ratio": WARNING_RATIO}
        query["max_tokens"] = min(query.get("max_tokens", budget), budget)
        shown = [{"role": m.role, "content": str(m.content)} for m in self.history.retrieve(query) if m.content]
        held = max(1, len(repr(shown)) // 4)
        total = estimate(system) + held + estimate(prepared)
        figures = {
            "context_window": self.window,
            "available_input_budget": self.room,
            "reserve_tokens": self.window - self.output - self.room,
            "max_output_tokens": self.output,
            "history_budget": budget,
            "system_prompt_tokens": estimate(system),
            "history_tokens": held,
            "prepared_tokens": estimate(prepared),
            "input_tokens_total": total,
            "output_tokens": 0,
            "occupancy_ratio": min(1.0, total / self.room),
            "history_message_count": len(shown),
            "counting_mode": "engine_estimate",
            "tokens_total": 0,
        }
        for event in self.history.consume_runtime_events():
            self._event("DECIDE", "context_history")
            told = {**event["context"], "occupancy_ratio": figures["occupancy_ratio"]}
            self.done["history_events"].append([self.step, told])
        head = [{"role": "system", "content": system}] if system else []
        return [*head, *shown, {"role": "user", "content": prepared}], figures

    def _answer(self, messages: list[dict[str, str]]) -> str:
        outputs = self.config["model_outputs"]
        text = str(outputs[min(self.calls, len(outputs) - 1)])
        self.calls += 1
        if text == "!raise":
            raise ConnectionError(text)
        return text

    def _act(self, text: str) -> bool:
        """What follows a reply; whether the run goes on."""
        action, final = ACTION.search(text), FINAL.search(text)
        self._event("DECIDE", "parser_result")
        if action is None and final is None:
            self._event("DECIDE", "parser_diagnostics")
        self._event("DECIDE", "decision_ready")
        self._remember("decision")
        if action is not None and final is None:
            for stage in ("start", "action_results"):
                self._event("ACT", stage)
            self._remember("action")
            self._remember("action_result")
        else:
            self._event("ACT", "start")
            self._event("ACT", "skipped")
        self._event("ACT", "observation_ready")
        self._remember("observation")
        self._event("REDUCE", "start")
        self._event("REDUCE", "state_reduced")
        self._remember("next_state")
        self._event("CHECK_STOP", "start")
        self._event("CHECK_STOP", "stop" if final else "continue")
        if final is not None:
            self.done |= {"final_result": final[1].strip(), "stop_reason": "final"}
        return final is None

    def _say(self, role: str, text: str) -> None:
        self.history.append(HistoryMessage(role, text, self.step, {"source": "engine"}))

    def _remember(self, role: str) -> None:
        if self.done["memory_stream"] is not None:
            self.done["memory_stream"].append([self.step, role])

    def _event(self, phase: str, stage: str | None) -> None:
        self.done["event_stages"].append([self.step, phase, stage])
