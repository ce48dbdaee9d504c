"""QitOS 0.3.0: the histories (the memories: `qitos_memory`) with `faithful=True`, replayed operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.history import (
    CompactConfig,
    CompactHistory,
    HistoryMessage,
    HistoryPolicy,
    MessageGrouper,
    TokenBudgetSummaryHistory,
    WindowHistory,
)
from clew.history.logged import LoggedHistory
from golden import qitos_engine, qitos_memory

Json = dict[str, Any]
Calls = list[list[dict[str, str]]]


def build_query(case: Json) -> Json:
    results = []
    for row in case["input"]["rows"]:
        policy = HistoryPolicy(**row["policy"])
        shown = {
            "roles": list(policy.roles),
            "max_messages": policy.max_messages,
            "step_window": policy.step_window,
            "max_tokens": policy.max_tokens,
        }
        results.append({"policy": shown, "query": policy.build_query(row["step_id"], **row.get("kwargs", {}))})
    return {"results": results}


def group(case: Json) -> Json:
    groups = []
    for row in case["input"]["rows"]:
        messages = [HistoryMessage(**m) for m in row]
        place = {id(m): i for i, m in enumerate(messages)}
        groups.append([[place[id(m)] for m in g] for g in MessageGrouper.group(messages)])
    return {"groups_of_indices": groups}


def window_history(case: Json) -> Json:
    return _replayed(case, [], WindowHistory(**_settings(case), faithful=True))


def token_budget_history(case: Json) -> Json:
    calls: Calls = []
    return _replayed(case, calls, TokenBudgetSummaryHistory(**_settings(case), llm=_llm(case, calls), faithful=True))


def compact_history(case: Json) -> Json:
    calls: Calls = []
    settings = _settings(case)
    config = settings.pop("config", None)
    history = CompactHistory(
        **settings, config=None if config is None else CompactConfig(**config), llm=_llm(case, calls), faithful=True
    )
    return _replayed(case, calls, history)


def engine(case: Json) -> Json:
    return qitos_engine.run(case["config"])


COMPONENTS = {
    "HistoryPolicy.build_query": build_query,
    "MessageGrouper.group": group,
    "WindowHistory": window_history,
    "TokenBudgetSummaryHistory": token_budget_history,
    "CompactHistory": compact_history,
    "Engine + History + Memory": engine,
    **qitos_memory.COMPONENTS,
}


def expected(case: Json) -> Json:
    """The output, and what of the messages each model call was given."""
    if "ops" not in case["input"] or case["component"] in qitos_memory.COMPONENTS:
        return dict(case["output"])
    keys = ("roles", "input_message_indices", "input_message_indices_shortened")
    return {**case["output"], "llm_calls": [{k: call[k] for k in keys} for call in case["llm_calls"]]}


def _settings(case: Json) -> Json:
    return {k: v for k, v in case["config"].items() if k != "llm"}


def _llm(case: Json, calls: Calls) -> Callable[[list[dict[str, str]]], str] | None:
    """The model of the case: a counter, one that fails, one that says nothing, or one of so many characters."""
    kind = case["config"].get("llm")
    if kind is None:
        return None

    def answer(messages: list[dict[str, str]]) -> str:
        calls.append(messages)
        if kind == "raises":
            raise RuntimeError("no model")
        if kind == "blank":
            return "   "
        return "L" * int(kind.removeprefix("long:")) if kind.startswith("long:") else f"SUMMARY-{len(calls)}"

    return answer


def _replayed(case: Json, calls: Calls, history: LoggedHistory) -> Json:
    messages = case["input"]["messages"]
    results = [_done(op, history, messages) for op in case["input"]["ops"]]
    return {"results": results, "llm_calls": [_seen(call, messages) for call in calls]}


def _done(op: Json, history: LoggedHistory, messages: list[Json]) -> Json:
    out: Json = {"op": op["op"]}
    match op["op"]:
        case "append":
            for i in op["indices"]:
                history.append(HistoryMessage(**{**messages[i], "metadata": dict(messages[i]["metadata"])}))
            out["stored"] = len(history.messages)
        case "retrieve":
            out["messages"] = [
                {"role": m.role, "content": m.content, "step_id": m.step_id, "metadata": m.metadata}
                for m in history.retrieve(op["query"])
            ]
            out["events"] = history.consume_runtime_events()
            out["message_metadata"] = history.get_last_message_metadata()
        case "consume_events":
            out["events"] = history.consume_runtime_events()
        case "summarize":
            out["text"] = history.summarize(**{k: op[k] for k in ("max_items",) if k in op})
        case "evict":
            out |= {"removed": history.evict(), "stored": len(history.messages)}
        case "reset":
            history.reset()
            out["stored"] = len(history.messages)
        case "stored":
            out["contents"] = [str(m.content)[:24] for m in history.messages]
        case unknown:
            raise ValueError(f"no operation {unknown!r}")
    return out


def _seen(call: list[dict[str, str]], messages: list[Json]) -> Json:
    """Which messages stand in a request, whole or as previews of their beginning."""
    body = f"\n{call[-1]['content']}\n"
    heads = [f"\n[{m['step_id']}] {m['role']}: " for m in messages]
    whole = [i for i, m in enumerate(messages) if f"{heads[i]}{m['content']}\n" in body]
    short = [
        i
        for i, m in enumerate(messages)
        if i not in whole and any(f"{heads[i]}[Compacted {mark}" in body for mark in _marks(m))
    ]
    return {
        "roles": [m["role"] for m in call],
        "input_message_indices": whole,
        "input_message_indices_shortened": short,
    }


def _marks(message: Json) -> list[str]:
    text = str(message["content"])
    size = f"from step {message['step_id']}; original_chars={len(text)}; original_lines={text.count(chr(10)) + 1}]"
    source = str(message["metadata"].get("source", "")).lower()
    kinds = ("tool output", "web/file result", f"{source} {message['role']} message".strip())
    return [f"{kind} {size}" for kind in kinds]
