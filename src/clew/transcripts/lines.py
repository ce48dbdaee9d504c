"""JSON Lines as they are found on disk: whole, cut off, fused, or with bytes that do not belong there.

A line is what stands between two `\n` bytes, never anything else (U+2028 is text). What cannot be
read is reported with its number and the reason; the lines around it are not affected.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from clew.transcripts.events import Damage

LONGEST = 64 * 1024 * 1024
"""Bytes of one line above which it is not read (twice the largest request a provider accepts)."""

RESYNC = 2_000
"""How many possible beginnings of an object are tried in a row before broken text is given up."""

_BOM = b"\xef\xbb\xbf"
START = re.compile(r'\{\s*"')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_LONE = re.compile("[\ud800-\udfff]")
_loose = json.JSONDecoder(strict=False)


class Record(Struct, frozen=True, gc=False):
    """One JSON object of a file: its line number, its text, its place among several on one line."""

    line: int
    raw: bytes
    value: dict[str, Any]
    part: int = 0

    @property
    def key(self) -> str:
        """A name for records that have none."""
        return f"#{self.line}.{self.part}" if self.part else f"#{self.line}"


def numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, `\n` included; of a line longer than `LONGEST`, the beginning."""
    number = 0
    while raw := file.readline(LONGEST + 1):
        number += 1
        yield number, raw
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(LONGEST)


def beyond(file: BinaryIO, head: bytes, more: int) -> bytes:
    """The beginning of a file of which `head` has been read, with the line it was cut in whole, and `more` bytes.

    Of a line longer than `LONGEST` the rest is passed over.
    """
    rest = b"" if head.endswith(b"\n") else file.readline(LONGEST)
    whole = head + rest
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(LONGEST)
    return whole.removesuffix(b"\n") + b"\n" + file.read(more)


def records(lines: Iterable[tuple[int, bytes]]) -> Iterator[Record | Damage]:
    """The objects of the lines, and what is wrong with the others. Empty lines are nothing."""
    decode = msgspec.json.Decoder().decode
    for number, raw in lines:
        try:
            value = decode(raw)
        except (msgspec.DecodeError, RecursionError):
            yield from salvaged(number, raw)
            continue
        if type(value) is dict:
            yield Record(number, raw, value)
        else:
            yield Damage(number, f"a JSON {type(value).__name__} where an object is expected")


def salvaged(number: int, raw: bytes) -> Iterator[Record | Damage]:
    """What can be read of a line that is not plain JSON."""
    if len(raw) > LONGEST:
        yield Damage(number, f"longer than {LONGEST:,} bytes")
        return
    text, wrong = _text(raw)
    if not text:
        if wrong:
            yield Damage(number, f"nothing but {wrong[0]}")
        return
    whole = raw.endswith(b"\n")
    found, lost = objects(text, resync=whole)
    if len(found) > 1 or (found and lost):
        wrong.append("several records on one line" if not lost else "part of a record beside a whole one")
    for part, (source, parsed) in enumerate(found):
        value, changes = storable(parsed)
        if changes:
            wrong.append(f"{changes} values that JSON or UTF-8 cannot hold")
        yield Record(number, source.encode(), value, part)
    if not found:
        wrong.insert(0, "not JSON" if whole else "incomplete last line")
    if wrong:
        yield Damage(number, "; ".join(wrong), lost=not found)
    elif found:
        yield Damage(number, "control characters inside a string", lost=False)


def objects(text: str, *, resync: bool) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """The JSON objects standing one after the other in a text, and whether anything lay between them.

    With `resync`, a record that begins in the middle of a broken one and ends with the text counts.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    lost = False
    at = 0
    while at < len(text):
        value, end = _object(text, at)
        if value is None:
            lost = True
            start = _whole_tail(text, at + 1) if resync else None
            if start is None:
                break
            at = start
            continue
        found.append((text[at:end], value))
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return found, lost


def depth(raw: bytes) -> int:
    """How deep the objects and lists of a JSON text are nested."""
    deepest = level = 0
    for token in _TOKEN.finditer(raw):
        sign = token[0]
        if sign in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif sign in b"]}":
            level -= 1
    return deepest


def _whole_tail(text: str, at: int) -> int | None:
    """Where the record begins that ends with the text."""
    for tried, match in enumerate(START.finditer(text, at)):
        if tried == RESYNC:
            return None
        value, end = _object(text, match.start())
        if value is not None and not text[end:].strip() and ("type" in value or "role" in value):
            return match.start()
    return None


def _object(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    if not text.startswith("{", at):
        return None, at
    try:
        value, end = _loose.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return value, end


def _text(raw: bytes) -> tuple[str, list[str]]:
    """The line as text, and what had to be taken out or replaced."""
    wrong = []
    if raw.startswith(_BOM):
        raw = raw[len(_BOM) :]
        wrong.append("a byte order mark")
    if nuls := raw.count(0):
        wrong.append(f"{nuls:,} NUL bytes")
        raw = raw.replace(b"\0", b"")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        wrong.append("invalid UTF-8")
        text = raw.decode(errors="replace")
    return text.strip(" \t\r\n"), wrong


def storable(value: Any) -> tuple[Any, int]:
    """The value without lone surrogates and numbers that cannot be written again; how many were changed."""
    changed = 0

    def clean(value: Any) -> Any:
        nonlocal changed
        if isinstance(value, str):
            text, n = _LONE.subn("\ufffd", value)
            changed += n
            return text
        if isinstance(value, dict):
            return {clean(k): clean(v) for k, v in value.items()}
        if isinstance(value, list):
            return [clean(v) for v in value]
        if (isinstance(value, float) and not math.isfinite(value)) or (
            isinstance(value, int) and not -(2**63) <= value < 2**64
        ):
            changed += 1
            return str(value)
        return value

    return clean(value), changed
