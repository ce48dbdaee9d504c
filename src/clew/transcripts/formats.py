"""The transcript formats that can be read."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from clew.errors import UnknownName
from clew.transcripts import claude_code, dumps, pi
from clew.transcripts.events import Event
from clew.transcripts.lines import numbered


class Format(Struct, frozen=True):
    """A transcript format by name, what it is, and its reader."""

    name: str
    what: str
    read: Callable[[BinaryIO], Iterator[Event]]


def _by_line(read: Callable[[Any], Iterator[Event]]) -> Callable[[BinaryIO], Iterator[Event]]:
    return lambda file: read(numbered(file))


def _dump(dialect: dumps.Dialect) -> Callable[[BinaryIO], Iterator[Event]]:
    return lambda file: dumps.read(file, dialect)


FORMATS = {
    format.name: format
    for format in (
        Format("claude-code", "Claude Code sessions, .jsonl", _by_line(claude_code.read)),
        Format("pi", "Pi and OpenClaw sessions, .jsonl", _by_line(pi.read)),
        Format("openai", "OpenAI chat messages (also LiteLLM logs, tau-bench, mini-swe-agent)", _dump(dumps.OPENAI)),
        Format("responses", "OpenAI Responses items", _dump(dumps.RESPONSES)),
        Format("anthropic", "Anthropic messages", _dump(dumps.ANTHROPIC)),
    )
}


def named(name: str) -> Format:
    """The format of this name. Raises `UnknownName` with the names there are."""
    if name not in FORMATS:
        raise UnknownName(f"no transcript format {name!r}; known: {', '.join(FORMATS)}")
    return FORMATS[name]


BUFFER = 256 * 1024
"""Bytes read at a time: long lines then seldom lie across two reads."""


def opened(path: Path | str) -> BinaryIO:
    """The file, open for reading, UTF-16 (which Windows writes) as UTF-8.

    Raises `UnknownName` when it is missing, a folder, a pipe or not readable.
    """
    try:
        if Path(path).is_fifo():
            raise UnknownName(f"{path} is a pipe, and a transcript is read more than once; save it to a file first")
        file = Path(path).open("rb", buffering=BUFFER)  # noqa: SIM115 - the caller closes it
        start = file.read(2)
        file.seek(0)
        if start not in (BOM_UTF16_LE, BOM_UTF16_BE):
            return file
        with file:
            return BytesIO(file.read().decode("utf-16", "replace").encode())
    except IsADirectoryError:
        raise UnknownName(f"{path} is a folder; name a transcript file in it") from None
    except OSError as error:
        raise UnknownName(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL byte in the name
        raise UnknownName(f"{path!r} is no file name: {error}") from error
