"""What several commands share: values from the command line, the place of the store, the output."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from clew.errors import BadBudget, UnknownName
from clew.models import Extractive, LiteLLM, Model
from clew.policies.registry import abbreviated


def console() -> Console:
    """Standard output; 80 columns wide when nothing is known about it."""
    out = Console(highlight=False, soft_wrap=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = 80
    return out


def store_path(given: str | None) -> str:
    """The store named on the command line, else by CLEW_DB, else the user's own."""
    if given is not None:
        return given
    if named := os.environ.get("CLEW_DB"):
        return named
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return str(Path(home) / "clew" / "clew.db")


def existing_store(given: str | None) -> str:
    """The same, but it must be there already: reading commands create nothing."""
    path = store_path(given)
    if "://" not in path and not Path(path).exists():
        raise UnknownName(f"there is no store at {path} yet; import a transcript first: clew import FILE")
    return path


def tokens(text: str) -> int:
    """A number of tokens as written on the command line: 200000 or 200_000."""
    try:
        number = int(text)
    except ValueError:
        meant = abbreviated(text)
        hint = "" if meant is None else f"; write {meant:_}"
        raise BadBudget(f"--window takes a number of tokens, not {text!r}{hint}") from None
    if number < 1:
        raise BadBudget(f"--window takes a number of tokens, not {text}")
    return number


def model(name: str) -> Model:
    """The model that writes summaries: "extractive", or any name LiteLLM knows."""
    if not name.strip():
        raise UnknownName('--model is empty; give "extractive", or a name LiteLLM knows')
    return Extractive() if name == "extractive" else LiteLLM(name)
