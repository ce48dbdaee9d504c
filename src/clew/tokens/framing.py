"""Tokens of whole messages and tool schemas, given a way to count text.

Providers do not publish how they wrap messages; the constants are those OpenAI's cookbook
("How to count tokens with tiktoken") measured for gpt-4o, the formulas for what has no text are
named where they stand. Nothing is free: every part of a message counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall
from clew.tokens.images import image_tokens

CountText = Callable[[str], int]

FRAME = 4
"""Tokens around each message, tool call and tool result: three for the wrapping, one for the role."""

TOOL_FRAME = 7
"""Tokens around each tool schema."""

BLOB_LIMIT = 25_800
"""Most tokens one encoded blob can stand for: Gemini CLI's constant for a PDF file (0.61)."""

_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{512,}")


def message_tokens(message: Message, text: CountText) -> int:
    """Tokens of a message: its frame and all of its parts."""
    if message.role == "tool":
        return sum(_part(p, text) for p in message.parts) or FRAME
    return FRAME + sum(_part(p, text) for p in message.parts)


def tools_tokens(tools: Sequence[Mapping[str, Any]], text: CountText) -> int:
    """Tokens of tool schemas, counted on their compact JSON."""
    return sum(TOOL_FRAME + text(_json(t)) for t in tools)


def hidden_tokens(encoded: int) -> int:
    """Tokens of reasoning of which only the encrypted form (`encoded` base64 characters) is known.

    Codex: a quarter of `encoded * 3 / 4 - 650` bytes, the constant being what encryption adds.
    """
    return max(encoded * 3 // 4 - 650, 0) // 4


def _part(part: Part, text: CountText) -> int:
    if isinstance(part, Text):
        return text(part.text)
    if isinstance(part, Image):
        return image_tokens(part)
    if isinstance(part, ToolCall):
        return FRAME + text(part.name) + text(part.arguments)
    if isinstance(part, Thinking):
        return text(part.text) if part.text else hidden_tokens(len(part.signature))
    if isinstance(part, Opaque):
        return _opaque(part, text)
    return FRAME + sum(_part(p, text) for p in part.content)


def _opaque(part: Opaque, text: CountText) -> int:
    """Counted as JSON, except for long encoded strings (encrypted reasoning, files), which are not text."""
    blobs = 0

    def take(match: re.Match[str]) -> str:
        nonlocal blobs
        blobs += min(hidden_tokens(len(match[0])), BLOB_LIMIT)
        return ""

    rest = _BLOB.sub(take, _json(part.data))
    return text(rest) + blobs


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"), default=str)
