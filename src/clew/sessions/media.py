"""How much inline media a message holds: pictures, and files that only a provider's own block can carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clew.messages import Image, Message, Opaque, Part, ToolResult

_KEYS = frozenset({"data", "file_data", "result"})
"""Fields that hold base64: `source.data` (Anthropic documents), `inlineData.data` (Gemini), `input_audio.data` and
`file_data` (OpenAI), `result` (images made in Responses). Encrypted reasoning is no media."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]+")
_LOOK = 256
"""Characters at the beginning of a field that tell base64 from text."""


def media_size(message: Message) -> int:
    """Bytes of inline media in a message, as sent: base64, in pictures and in provider blocks (documents, audio)."""
    return sum(map(part_media, message.parts))


def part_media(part: Part) -> int:
    """Bytes of inline media in one part."""
    if isinstance(part, Image):
        return len(part.data) + (len(part.url) if part.url.startswith("data:") else 0)
    if isinstance(part, ToolResult):
        return sum(map(part_media, part.content))
    return _inside(part.data) if isinstance(part, Opaque) else 0


def _inside(value: Any, key: str = "") -> int:
    if isinstance(value, str):
        inline = value.startswith("data:") or (key in _KEYS and _BASE64.fullmatch(value, 0, _LOOK))
        return len(value) if inline else 0
    if isinstance(value, Mapping):
        return sum(_inside(v, k) for k, v in value.items())
    return sum(map(_inside, value)) if isinstance(value, list | tuple) else 0
