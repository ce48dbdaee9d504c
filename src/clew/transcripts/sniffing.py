"""Which format a file is in, told from its beginning."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from clew.errors import BadPayload, UnknownName
from clew.transcripts.documents import is_document, salvaged
from clew.transcripts.dumps import LISTS
from clew.transcripts.figures import mapping
from clew.transcripts.formats import FORMATS, opened
from clew.transcripts.lines import Record, beyond, numbered, records

PROBE = 1024 * 1024
"""Bytes from the beginning of a file that are looked at, at most."""

SAMPLE = 200
"""Lines or messages that are looked at, at most."""

_CLAUDE_LINES = frozenset({"file-history-snapshot", "queue-operation", "summary", "last-prompt", "api-request", "mode"})
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"}
)
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def sniff(path: Path | str) -> str:
    """The name of a file's format, from its first `PROBE` bytes, or, when a line there is longer, from that line on.

    A list of plain messages, which every provider writes alike, counts as "openai".
    Raises `UnknownName` when there is no such file or no format fits, `BadPayload` when it is empty.
    """
    with opened(path) as file:
        head = file.read(PROBE)
        if not head.strip(b"\xef\xbb\xbf\0 \t\r\n"):
            raise BadPayload(f"{path} is empty")
        name = _told(_values(head)) or (_told(_lines(beyond(file, head, PROBE))) if len(head) == PROBE else "")
    if name:
        return name
    known = "; ".join(f"{f.name}: {f.what}" for f in FORMATS.values())
    raise UnknownName(f"{path} is in no transcript format known here ({known})")


def _told(values: Iterable[dict[str, Any]]) -> str:
    """The format that the values are of, or nothing."""
    plain = False
    for value in islice(values, SAMPLE):
        if name := _telling(value):
            return name
        plain = plain or ("role" in value and ("content" in value or "tool_calls" in value))
    return "openai" if plain else ""


def _lines(head: bytes) -> Iterator[dict[str, Any]]:
    """The objects that are lines of the file, envelopes opened."""
    for record in records(numbered(io.BytesIO(head))):
        if isinstance(record, Record):
            yield record.value
            yield from _inside(record.value)


def _values(head: bytes) -> Iterator[dict[str, Any]]:
    """The objects at the beginning of a file, envelopes opened."""
    found = False
    if not is_document(io.BytesIO(head)) or b"\n" not in head.strip():
        for value in _lines(head):
            found = True
            yield value
    if not found:
        for piece in salvaged(head.decode(errors="replace"), LISTS):
            yield {"system": ""} if piece.what == "system" else piece.value


def _inside(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in LISTS if "role" not in value else ():
        items = value.get(name)
        yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _telling(value: dict[str, Any]) -> str:
    """The format that alone writes such an object, or nothing."""
    kind = value.get("type")
    kind = kind if isinstance(kind, str) else ""
    if "parentUuid" in value or (kind in _CLAUDE_LINES and {"sessionId", "leafUuid", "snapshot"} & value.keys()):
        return "claude-code"
    if kind == "session" and {"cwd", "version"} & value.keys():
        return "pi"
    if kind == "message" and isinstance(mapping(value.get("message")).get("role"), str):
        return "pi"
    if "parentId" in value and kind and "timestamp" in value:
        return "pi"
    return _dialect(value, kind)


def _dialect(value: dict[str, Any], kind: str) -> str:
    if kind in ("reasoning", "item_reference") or (
        kind.endswith(("_call", "_call_output")) and {"call_id", "id"} & value.keys()
    ):
        return "responses"
    if "system" in value and "role" not in value:
        return "anthropic"
    role = value.get("role")
    if not isinstance(role, str):
        return ""
    if role in ("tool", "function") or {"tool_calls", "function_call", "tool_call_id"} & value.keys():
        return "openai"
    content = value.get("content")
    blocks = [mapping(block) for block in content] if isinstance(content, list) else []
    types = {block.get("type") for block in blocks if isinstance(block.get("type"), str)}
    if types & _RESPONSES_BLOCKS:
        return "responses"
    if types & _ANTHROPIC_BLOCKS or any("source" in block for block in blocks):
        return "anthropic"
    if types & {"image_url", "input_audio", "file"}:
        return "openai"
    return ""
