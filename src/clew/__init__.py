"""Clew: the memory and context layer for LLM agents.

The names below are loaded when first asked for, so that `import clew` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from clew import (
        agent,
        codecs,
        errors,
        history,
        index,
        lab,
        memory,
        messages,
        models,
        policies,
        sessions,
        storage,
        text,
        tokens,
        transcripts,
    )
    from clew.budget import Budget
    from clew.errors import ClewError
    from clew.messages import Message, assistant, system, tool, user
    from clew.sessions.session import Session

__all__ = [
    "Budget",
    "ClewError",
    "Message",
    "Session",
    "agent",
    "assistant",
    "codecs",
    "errors",
    "history",
    "index",
    "lab",
    "memory",
    "messages",
    "models",
    "policies",
    "sessions",
    "storage",
    "system",
    "text",
    "tokens",
    "tool",
    "transcripts",
    "user",
]

_HOME = {
    "Budget": "budget",
    "ClewError": "errors",
    "Message": "messages",
    "Session": "sessions.session",
    "assistant": "messages",
    "system": "messages",
    "tool": "messages",
    "user": "messages",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__version__"]
