"""What a chat is put together from, by the words of the command line: a model, a memory, tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from clew.agent.log_tools import log_tools
from clew.agent.memory_tools import memory_tools
from clew.agent.tools import Tool
from clew.errors import BadBudget, ClewError, UnknownName
from clew.memory import EntityMemory, Memory, RecordLog, SummaryMemory, VectorMemory, WindowMemory
from clew.memory.embedders import embedder
from clew.memory.embedding import Embedder
from clew.memory.presets import customer_service, knowledge_base, personal_assistant
from clew.memory.recall import Recall
from clew.memory.recalling import RecallMemory
from clew.models import LiteLLM, Local, Model
from clew.sessions import Session

SERVED_WINDOW = 8_192
"""Tokens taken for the window of a server's model when --window says nothing: servers do not tell, and a window that
is too small only compacts earlier."""


class NoModel(ClewError):
    """Nothing says which model to talk with."""

    def __init__(self) -> None:
        super().__init__(
            "no model to talk with. Say which, with --model or in CLEW_MODEL; for instance\n"
            "  a provider's       ANTHROPIC_API_KEY=… clew chat --model anthropic/claude-sonnet-4-5\n"
            "  a local server's   clew chat --base-url http://localhost:11434/v1 --model qwen3\n"
            "  one in a file      clew chat --model local:qwen2.5-0.5b-instruct-q4_k_m.gguf"
        )


def model(name: str | None, base_url: str | None, window: int | None) -> Model:
    """The model of a name: `local:FILE.gguf`, a server's when there is a `base_url`, or LiteLLM's. Raises `NoModel`."""
    name = (name or os.environ.get("CLEW_MODEL") or "").strip()
    if not name:
        raise NoModel
    if name.startswith("local:"):
        file = os.path.expanduser(name.removeprefix("local:"))
        return Local(file, context_window=window) if window else Local(file)
    if base_url:
        key = os.environ.get("OPENAI_API_KEY") or "none"
        return LiteLLM(f"openai/{name}", api_base=base_url, api_key=key, context_window=window or SERVED_WINDOW)
    found = LiteLLM(name, context_window=window)
    try:
        _ = found.context_window
    except BadBudget as error:
        raise BadBudget(f"the context window of {name!r} is not known; give it in tokens: --window 128_000") from error
    return found


class Remembering(Struct, frozen=True):
    """A chat's memory, and what recalls from its log for the commands and tools (None: no memory)."""

    memory: Memory | None = None
    log: RecordLog | None = None
    recall: Recall | None = None


def remembering(kind: str, embed: str, log: RecordLog, llm: Model) -> Remembering:
    """The memory of this kind over a log. Raises `UnknownName`, which lists the kinds."""
    if kind not in KINDS:
        raise UnknownName(f"no memory {kind!r}; there are none, {', '.join(KINDS)}")
    by_meaning = embedder(embed) if embed != "none" else None
    recall = Recall(log, by_meaning)
    return Remembering(KINDS[kind](log, llm, by_meaning, recall), log, recall)


def _needed(embed: Embedder | None) -> Embedder:
    if embed is None:
        raise UnknownName("this memory needs an embedder: add --embedder usem3, or take --memory recall")
    return embed


KINDS: Mapping[str, Callable[[RecordLog, Model, Embedder | None, Recall], Memory]] = {
    "recall": lambda log, llm, embed, recall: RecallMemory(log, recall),
    "window": lambda log, llm, embed, recall: WindowMemory(log=log),
    "summary": lambda log, llm, embed, recall: SummaryMemory(llm=llm, log=log),
    "entity": lambda log, llm, embed, recall: EntityMemory(llm, log=log),
    "vector": lambda log, llm, embed, recall: VectorMemory(_needed(embed), log=log),
    "customer_service": lambda log, llm, embed, recall: customer_service(llm, log=log),
    "personal_assistant": lambda log, llm, embed, recall: personal_assistant(llm, log=log),
    "knowledge_base": lambda log, llm, embed, recall: knowledge_base(_needed(embed), log=log),
}
"""The kinds of memory by name."""


def tools(session: Session, r: Remembering) -> list[Tool]:
    """What the model may call: its log, and its memory."""
    found = log_tools(session, r.recall)
    if r.log is not None and r.recall is not None:
        found += memory_tools(r.log, r.recall, session)
    return found


def settle(memory: Memory | None) -> None:
    """What a memory has to do between two turns: learn facts, and put out of sight what is over its limit."""
    if memory is None:
        return
    learn: Callable[[], Any] | None = getattr(memory, "extract", None)
    if learn is not None:
        learn()
    memory.evict()
