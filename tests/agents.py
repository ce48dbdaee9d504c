"""Scripted replies and small tools for the tests of the engine."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from clew.agent import tool
from clew.memory import MemoryRecord, RecordLog
from clew.messages import Message, Part, Text, ToolCall, Usage
from clew.models import Reply


def calls(*wanted: tuple[str, Any], text: str = "", usage: Usage = Usage(10, 5), start: int = 0) -> Reply:
    """A reply that calls tools: name, and arguments as JSON text or as a value."""
    made: list[Part] = [Text(text)] if text else []
    for n, (name, arguments) in enumerate(wanted, start):
        written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        made.append(ToolCall(f"call_{n}", name, written))
    return Reply(Message("assistant", tuple(made)), "tool_calls", usage)


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(limit=100)
def book(pages: int) -> str:
    """A long text."""
    return "\n".join(f"Page {n}: 阿里阿德涅给了他一团线。" for n in range(pages))


class Recalled(NamedTuple):
    record: MemoryRecord
    score: float
    why: str


class WordRecall:
    """Recalls what shares words with the query: a stand-in that is easy to foresee."""

    def __init__(self, log: RecordLog) -> None:
        self.log = log

    def recall(
        self, query: str, k: int = 10, *, at: float | None = None, kinds: Collection[str] = ()
    ) -> list[Recalled]:
        wish = _words(query)
        shared = [(len(wish & _words(r.text)), r) for r in self.log.records(*kinds, at=at)]
        best = sorted((s for s in shared if s[0]), key=lambda s: -s[0])[:k]
        return [Recalled(r, float(n), f"{n} words") for n, r in best]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+|[\u4e00-\u9fff]", text.lower()))
