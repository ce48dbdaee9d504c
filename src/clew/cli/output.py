"""What the command writes: text and JSON from elsewhere, made harmless for a terminal.

Transcripts, titles and file names are data: what they hold must not move the cursor, change colours,
set the window's title, or turn the order of what is read around.
"""

from __future__ import annotations

import os
import re
import sys
from io import TextIOWrapper
from typing import Any

import msgspec
from rich.markup import escape

from clew.messages import sanitized

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (C0 but tab and newline, DEL, C1), bidirectional overrides, lone surrogates."""

_PICTURES = 0x2400
"""Where Unicode's pictures of the C0 control characters begin."""


def printable(text: str) -> str:
    """The text with every character that a terminal would obey shown instead: ESC as ␛, others as \\u202e."""
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def literal(text: str) -> str:
    """The text as it goes into Rich markup: printable, and brackets mean brackets."""
    return escape(printable(text))


def write_json(value: Any) -> None:
    """Writes the value to standard output as indented JSON, unsafe characters as JSON escapes."""
    text = msgspec.json.format(_encoded(value)).decode()
    left = memoryview(_UNSAFE.sub(_escaped, text).encode() + b"\n")
    while left:  # unbuffered (PYTHONUNBUFFERED), one write may take a part only
        left = left[sys.stdout.buffer.write(left) :]


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file name that is no UTF-8
        return msgspec.json.encode(sanitized(value)[0])


def prepare() -> None:
    """Makes the standard streams take any text; a stream that is closed takes it and does nothing."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard() -> None:
    """Lets go of what standard output could not take, so that the interpreter does not try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else _escaped(found)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
