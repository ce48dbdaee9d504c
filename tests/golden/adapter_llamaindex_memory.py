"""LlamaIndex's `Memory`: a window by tokens that is flushed after every message; what leaves it stays in the log.

Its static block comes to the model in a system message. Here that is a block of `BlockMemory`, shown as data beside
the conversation (law 10), so only the conversation is compared.
"""

from __future__ import annotations

import re
from typing import Any

from clew.memory import MemoryRecord, RecordLog, WindowMemory
from clew.messages import Message

Json = dict[str, Any]

_TOKENS = re.compile(r"[A-Za-z0-9_]+|[^\sA-Za-z0-9_]")


class Counted:
    """As the cases count: words, and the characters of scripts without spaces."""

    name = "words"

    def text(self, text: str) -> int:
        return len(_TOKENS.findall(text))

    def message(self, message: Message) -> int:
        return self.text(message.text)

    def tools(self, tools: Any) -> int:
        return 0


def memory(case: Json) -> Json:
    config, log = case["config"], RecordLog()
    limit = int(config["token_limit"] * config["chat_history_token_ratio"])
    window = WindowMemory(0, max_tokens=limit, flush=config["token_flush_size"], counter=Counted(), log=log)
    steps: list[Json] = []
    archived = 0
    said = case["input"]["messages"]
    for n, (role, text) in enumerate(said):
        window.append(MemoryRecord(role, text, n))
        gone = window.evict()
        archived += gone
        if gone or n in (0, len(said) - 1):
            active = [r.text for r in log.records("message")[archived:]]
            steps.append({"after_put": n, "active": active, "archived": archived})
    return {"steps": steps, "get": [{"role": r.role, "content": r.text} for r in window.retrieve()]}


COMPONENTS = {"Memory (FIFO queue, static block)": memory}


def expected(case: Json) -> Json:
    shown = [m for m in case["output"]["get"] if m["role"] != "system"]
    return {**case["output"], "get": shown}
