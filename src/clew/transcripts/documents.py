"""Whole JSON documents that hold messages, read one message at a time, and what is left of broken ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal

import msgspec
from msgspec import Raw, Struct

from clew.transcripts.events import Damage
from clew.transcripts.lines import RESYNC, START, storable

_SYSTEM = re.compile(r'\{\s*"system"\s*:\s*')

What = Literal["start", "system", "message", "envelope"]

_loose = json.JSONDecoder(strict=False)
_decode = msgspec.json.decode
_encode = msgspec.json.Encoder().encode
_object_of_raw = msgspec.json.Decoder(dict[str, Raw])
_list_of_raw = msgspec.json.Decoder(list[Raw])


class Piece(Struct, frozen=True):
    """One value of a document: its text, and what it is.

    A "start" begins another conversation and holds its first message, if `raw` is not empty. `line`
    is where it stands: the line number in JSON Lines, the place in its list in a document.
    """

    raw: bytes
    value: Any
    what: What
    line: int


def message(value: Any, line: int, what: What = "message") -> Piece:
    """A piece known by its value, however it was written."""
    return Piece(_encode(value), value, what, line)


def is_document(file: BinaryIO) -> bool:
    """Whether a JSON file is one document; else it is JSON Lines. The file is read from its start again."""
    lines = (line for line in iter(file.readline, b"") if line.strip(b"\xef\xbb\xbf \t\r\n\0"))
    first, second = next(lines, b""), next(lines, b"")
    file.seek(0)
    text = first.lstrip(b"\xef\xbb\xbf \t\0")
    if not text.startswith(b"{"):
        return text.startswith(b"[")
    return not second or not (_is_object(first) or _is_object(second) or second.lstrip().startswith(b'{"'))


def pieces(data: bytes, lists: Sequence[str]) -> Iterator[Piece | Damage]:
    """The conversations of a document: a list of messages, an envelope, or a list of envelopes."""
    data = data.lstrip(b"\xef\xbb\xbf")
    try:
        values = _list_of_raw.decode(data) if data.lstrip().startswith(b"[") else [Raw(data)]
        found = [_split(raw, lists) for raw in values]
    except (msgspec.DecodeError, RecursionError) as error:
        if data.strip():
            yield Damage(1, f"broken JSON ({error}); what could be found in it was read", lost=False)
        yield from salvaged(data.decode(errors="replace"), lists)
        return
    alone = True
    for n, envelope in enumerate(found, 1):
        if isinstance(envelope, Raw):
            yield from _read(envelope, n, "start" if alone else "message")
            alone = False
            continue
        yield Piece(b"", {}, "start", n)
        fields, items = envelope
        if "system" in fields:
            yield from _read(fields.pop("system"), n, "system")
        for at, raw in enumerate(items, 1):
            yield from _read(raw, at)
        if fields:
            yield from _read(_encode(fields), n, "envelope")


def _split(raw: Raw, lists: Sequence[str]) -> Raw | tuple[dict[str, Raw], list[Raw]]:
    """An envelope's fields and its list of messages; a value that is none, as it is."""
    if not _begins(raw, b"{"):
        return raw
    fields = _object_of_raw.decode(raw)
    for name in lists if "role" not in fields and "type" not in fields else ():
        if name in fields and _begins(fields[name], b"["):
            return fields, _list_of_raw.decode(fields.pop(name))
    return raw


def _begins(raw: Raw, sign: bytes) -> bool:
    return bytes(memoryview(raw)[:64]).lstrip().startswith(sign)


def _read(raw: Raw | bytes, line: int, what: What = "message") -> Iterator[Piece | Damage]:
    """One value of the document, and what had to be done to read it."""
    try:
        yield message(_decode(raw), line, what)
        return
    except (msgspec.DecodeError, RecursionError):
        value, _ = _value(bytes(raw).decode(errors="replace").strip(), 0)
    if value is None:
        yield Damage(line, "not JSON")
        return
    yield message(storable(value)[0], line, what)
    yield Damage(line, "characters or numbers that JSON or UTF-8 cannot hold", lost=False)


def salvaged(text: str, lists: Sequence[str]) -> Iterator[Piece]:
    """The messages of a broken or cut document, in order: every object with a role, or an item's type."""
    opening = re.compile(rf'"({"|".join(lists)})"\s*:\s*\[')
    at = number = 0
    opened = False
    failures = 0
    while failures < RESYNC and (found := START.search(text, at)):
        start = found.start()
        begins = not opened and (number == 0 or opening.search(text, at, start + 1) is not None)
        value, end = _value(text, start)
        whole = isinstance(value, dict)
        failures = 0 if whole else failures + 1
        if whole and ("role" in value or _is_item(value)):
            number += 1
            yield message(storable(value)[0], number, "start" if begins else "message")
            at, opened = end, False
        elif whole and not any(isinstance(value.get(name), list) for name in lists):
            at = end
        else:
            at = start + 1
            if system := _SYSTEM.match(text, start):
                prompt, at = _value(text, system.end())
                yield Piece(b"", {}, "start", number)
                yield Piece(b"", prompt, "system", number)
                opened = True


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _loose.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at + 1


def _is_item(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind == "reasoning" or kind.endswith(("_call", "_call_output")))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(_decode(line), dict)
    except (msgspec.DecodeError, RecursionError):
        return False
