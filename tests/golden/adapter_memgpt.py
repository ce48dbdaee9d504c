"""MemGPT (2023): where its queue is cut, flush after flush; the summary is the first message of the next queue."""

from __future__ import annotations

import re
from typing import Any

from clew.policies.queue import flushed

Json = dict[str, Any]

_TOKENS = re.compile(r"[A-Za-z]+\d*|[^\x00-\x7f]")


def summarize_messages_inplace(case: Json) -> Json:
    config = case["config"]
    limits = {
        "share": config["MESSAGE_SUMMARY_TRUNC_TOKEN_FRAC"],
        "kept": config["MESSAGE_SUMMARY_TRUNC_KEEP_N_LAST"],
    }
    system, *queue = [{"i": i, "role": role, "text": text} for i, (role, text) in enumerate(case["input"]["messages"])]
    total = 1 + len(queue)
    calls, flushes = [], []
    for n in range(1, config["flushes"] + 1):
        cut = flushed([_tokens(m) for m in queue], [m["role"] for m in queue], **limits)
        gone, queue = queue[:cut], queue[cut:]
        calls.append({"n": n, "input_message_indices": [m["i"] for m in gone]})
        summary = {
            "i": f"summary-{n}",
            "role": "user",
            "type": "system_alert",
            "hidden": total - len(queue),
            "all_time_total": total,
            "summarised_now": cut,
            "summary": f"SUMMARY-{n}",
        }
        queue.insert(0, summary)
        total += 1
        shown = [{k: v for k, v in m.items() if k != "text"} for m in (system, *queue)]
        flushes.append({"messages": shown, "alerted": False, "messages_total": total})
    return {"llm_calls": calls, "output": flushes}


COMPONENTS = {"Agent.summarize_messages_inplace": summarize_messages_inplace}


def expected(case: Json) -> Json:
    return {"llm_calls": case["llm_calls"], "output": case["output"]}


def _tokens(message: Json) -> int:
    """As the case counts: over the printed message."""
    content = message.get("text") or message["summary"]
    return len(_TOKENS.findall(str({"role": message["role"], "content": content, "i": message["i"]})))
