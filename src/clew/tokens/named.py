"""Counters by name."""

from __future__ import annotations

from collections.abc import Mapping

from clew.errors import UnknownName
from clew.tokens.exact import Exact
from clew.tokens.heuristic import Heuristic
from clew.tokens.protocol import TokenCounter
from clew.tokens.upstream import Aider, Codex, Gemini, Hermes, OpenCode, Pi, QitOS, Tutorial, Vibe

COUNTERS: Mapping[str, TokenCounter] = {
    "heuristic": Heuristic(),
    "o200k": Exact("o200k_base"),
    "cl100k": Exact("cl100k_base"),
    "aider": Aider(Heuristic()),
    "codex": Codex(),
    "gemini": Gemini(),
    "hermes": Hermes(),
    "opencode": OpenCode(),
    "pi": Pi("0.73.1"),
    "pi-1.6": Pi("1.6"),
    "qitos": QitOS(),
    "tutorial": Tutorial(),
    "vibe": Vibe(),
}


def counter(name: str) -> TokenCounter:
    """The counter of this name: a key of `COUNTERS`, or the `name` a counter writes beside the counts it stores.

    Raises `UnknownName`, which lists the names there are.
    """
    found = COUNTERS.get(name) or next((c for c in COUNTERS.values() if c.name == name), None)
    if found is None:
        raise UnknownName(f"no token counter is called {name!r}; there are: {', '.join(sorted(COUNTERS))}")
    return found
