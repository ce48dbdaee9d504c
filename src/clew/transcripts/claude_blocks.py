"""The everyday blocks of Claude Code lines, read directly.

Nearly every line of a long session holds one text, one call, or one result. The codec's checks cost
several times the JSON parsing of such a line, so these shapes are taken here when they are exactly
as expected; everything else goes through `clew.codecs.anthropic`, and a test holds the two equal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clew.codecs import anthropic
from clew.messages import Message, Part, Text, Thinking, ToolCall, ToolResult

_json = msgspec.json.Encoder().encode

_TEXT = {"type", "text"}
_CALL = {"type", "id", "name", "input"}
_THINKING = {"type", "thinking", "signature"}
_RESULT = {"type", "tool_use_id", "content"}
_EXPLICIT = {"type", "tool_use_id", "content", "is_error"}
_NO_ERROR = {"anthropic": {"is_error": False}}


def assistant_parts(content: list[Any]) -> tuple[Part, ...]:
    """The parts of an assistant's blocks. Raises `BadPayload`."""
    parts: list[Part] = []
    for block in content:
        part = _spoken(block) if type(block) is dict else None
        if part is None:
            return anthropic.decode([{"role": "assistant", "content": content}])[0].parts
        parts.append(part)
    return tuple(parts)


def user_messages(content: Any) -> list[Message]:
    """The one or two messages of a user line: tool results, and what was said. Raises `BadPayload`."""
    if type(content) is str:
        return [Message("user", (Text(content),))]
    if type(content) is list and content:
        results = [_result(block) if type(block) is dict else None for block in content]
        parts = tuple(part for part in results if part is not None)
        if len(parts) == len(content):
            return [Message("tool", parts)]
    return anthropic.decode([{"role": "user", "content": content}])


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
