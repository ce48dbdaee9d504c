"""What several commands share: values from the command line, the place of the store, the output."""

from __future__ import annotations

import os
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
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


def existing_store(given: str | None, first: str = "clew import FILE") -> str:
    """The same, but it must be there already: reading commands create nothing. `first` is the command that does."""
    path = store_path(given)
    if "://" not in path and not Path(path.removeprefix("json:")).exists():
        raise UnknownName(f"there is no store at {path} yet; make one first: {first}")
    return path


def text_or_stdin(given: str) -> str:
    """The text of an argument; "-" stands for standard input."""
    return sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given


def moment(option: str, written: str | None, *, end: bool = False) -> float | None:
    """A time as written on the command line, in seconds since 1970; a day is its beginning, or its `end`.

    Without a zone it is local time.
    """
    if written is None:
        return None
    try:
        found = datetime.fromisoformat(written)
        if end and len(written) <= len("2026-03-01"):
            found += timedelta(days=1)
        return found.timestamp()
    except (ValueError, OverflowError):
        raise UnknownName(f"{option} takes a time such as 2026-03-01 or 2026-03-01T12:30, not {written!r}") from None


def entry_name(written: str) -> tuple[str, int]:
    """The session and the entry that are written SESSION:ENTRY."""
    session, _, number = written.rpartition(":")
    if not session or re.fullmatch("[0-9]{1,18}", number) is None:
        raise UnknownName(f"an entry is written SESSION:ENTRY, for instance 3fa9:118, not {written!r}")
    return session, int(number)


def every_field(value: Struct | None) -> dict[str, Any] | None:
    """A struct for JSON output with all its fields, those at their defaults too."""
    return None if value is None else asdict(value)


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
