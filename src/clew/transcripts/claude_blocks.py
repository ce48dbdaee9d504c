"""The everyday blocks of Claude Code lines, read directly.

Nearly every line of a long session holds one text, one call, or one result. The codec's checks cost
several times the JSON parsing of such a line, so these shapes are taken here when they are exactly
as expected; everything else goes through `clew.codecs.anthropic`, and a test holds the two equal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clew.codecs import anthropic
from clew.errors import BadPayload
from clew.messages import Message, Part, Text, Thinking, ToolCall, ToolResult

_json = msgspec.json.Encoder().encode

_TEXT = {"type", "text"}
_CALL = {"type", "id", "name", "input"}
_THINKING = {"type", "thinking", "signature"}
_RESULT = {"type", "tool_use_id", "content"}
_EXPLICIT = {"type", "tool_use_id", "content", "is_error"}
_NO_ERROR = {"anthropic": {"is_error": False}}


def assistant_parts(content: list[Any]) -> tuple[tuple[Part, ...], list[Any]]:
    """The parts of an assistant's blocks, and the blocks no one can read. Raises `BadPayload` when that is all."""
    parts: list[Part] = []
    for block in content:
        part = _spoken(block) if type(block) is dict else None
        if part is None:
            decoded, unreadable = _decoded("assistant", content)
            return decoded[0].parts, unreadable
        parts.append(part)
    return tuple(parts), []


def user_messages(content: Any) -> tuple[list[Message], list[Any]]:
    """The one or two messages of a user line (tool results, and what was said), and the blocks no one can read.

    Raises `BadPayload` when that is all.
    """
    if type(content) is str:
        return [Message("user", (Text(content),))], []
    if type(content) is list and content:
        results = [_result(block) if type(block) is dict else None for block in content]
        parts = tuple(part for part in results if part is not None)
        if len(parts) == len(content):
            return [Message("tool", parts)], []
    return _decoded("user", content)


def _decoded(role: str, content: Any) -> tuple[list[Message], list[Any]]:
    """What the codec makes of a content; of one it refuses, of the blocks it can read."""
    try:
        return anthropic.decode([{"role": role, "content": content}]), []
    except BadPayload:
        good: list[Any] = []
        bad: list[Any] = []
        for block in content if isinstance(content, list) else ():
            (good if _readable(role, block) else bad).append(block)
        if not good:
            raise
        return anthropic.decode([{"role": role, "content": good}]), bad


def _readable(role: str, block: Any) -> bool:
    try:
        anthropic.decode([{"role": role, "content": [block]}])
    except BadPayload:
        return False
    return True


def _spoken(block: dict[str, Any]) -> Part | None:
    keys = block.keys()
    kind = block.get("type")
    if kind == "text" and keys == _TEXT and type(block["text"]) is str:
        return Text(block["text"])
    if kind == "tool_use" and keys == _CALL and type(block["id"]) is type(block["name"]) is str:
        arguments = block["input"]
        if type(arguments) is dict:
            return ToolCall(block["id"], block["name"], _json(arguments).decode())
    if kind == "thinking" and keys == _THINKING and type(block["thinking"]) is str:
        signature = block["signature"]
        if type(signature) is str and signature:
            return Thinking(block["thinking"], signature)
    return None


def _result(block: dict[str, Any]) -> ToolResult | None:
    if block.get("type") != "tool_result" or type(block.get("tool_use_id")) is not str:
        return None
    text = block.get("content")
    if type(text) is not str:
        return None
    keys = block.keys()
    if keys == _RESULT:
        return ToolResult(block["tool_use_id"], (Text(text),))
    if keys == _EXPLICIT and type(block["is_error"]) is bool:
        failed = block["is_error"]
        return ToolResult(block["tool_use_id"], (Text(text),), failed, meta={} if failed else _NO_ERROR)
    return None
