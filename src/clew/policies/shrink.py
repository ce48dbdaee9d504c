"""Makes a message smaller: head and tail stay, a counted marker stands for the middle."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from clew.sessions.media import part_media
from clew.tokens.protocol import TokenCounter

HEAD = 0.6
"""Share of the kept characters taken from the beginning: what a thing is stands there, what came of it at the end."""


def head_tail(text: str, keep: int, head: float = HEAD) -> str:
    """The text with only `keep` characters of it left, from both ends, and a marker that counts the rest.

    Comes back unchanged when that would not make it shorter. Combining marks stay with their character.
    """
    if len(text) <= keep:
        return text
    first = _boundary(text, int(keep * head))
    last = _boundary(text, len(text) - (keep - int(keep * head)))
    mark = f"[… {last - first:,} characters left out …]"
    short = "\n".join(piece for piece in (text[:first], mark, text[last:]) if piece)
    return short if len(short) < len(text) else text


def shrink(message: Message, limit: int, counter: TokenCounter) -> Message:
    """The message in at most `limit` tokens if that can be done (call ids and framing remain).

    Texts lose their middle; tool arguments stay a JSON object, with shortened values or with one
    that says how much is left out; media are left out only when shortening texts is not enough.
    An assistant message that is changed loses its thinking and its provider blocks as a whole:
    they are bound to the text they came with.
    """
    if counter.message(message) <= limit:
        return message
    short = message
    for bare in (_unbound(message), without_media(_unbound(message))):
        keep = 4 * limit
        while True:
            short = replace(bare, parts=tuple(_part(p, keep) for p in bare.parts))
            count = counter.message(short)
            if count <= limit:
                return short
            if keep == 0:
                break
            keep = keep * limit * 9 // (count * 10)
    return short


def without_media(message: Message) -> Message:
    """The message with images and uninterpreted provider blocks replaced by a note of what they were.

    An assistant message keeps its provider blocks, which are bound to its text, unless one of them
    holds media: then all of them go, and its thinking with them.
    """
    parts: tuple[Part, ...] = message.parts
    keeps = message.role == "assistant" and not any(isinstance(p, Opaque) and part_media(p) for p in parts)
    if message.role == "assistant" and not keeps:
        parts = tuple(p for p in parts if not isinstance(p, Thinking))
    parts = tuple(p if keeps and isinstance(p, Opaque) else _noted(p) for p in parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _noted(part: Part) -> Part:
    if isinstance(part, ToolResult):
        content = tuple(p if isinstance(p, Text) else Text(_note(p)) for p in part.content)
        return part if content == part.content else replace(part, content=content)
    return Text(_note(part)) if isinstance(part, Image | Opaque) else part


def _note(part: Image | Opaque) -> str:
    """What the part was, as far as it tells, and its size."""
    size = part_media(part) * 3 // 4  # base64 writes three bytes as four characters
    if isinstance(part, Image):
        kind, where = "image", part.media_type if part.data else part.url.partition(";base64,")[0][:200]
    else:  # Gemini's parts have no type, but one key that tells
        kind, where = str(part.data.get("type") or next(iter(part.data), part.codec)), ""
    facts = ", ".join(fact for fact in (where, f"{size:,} bytes" if size else "") if fact)
    return f"[{kind} left out: {facts}]" if facts else f"[{kind} left out]"


def _unbound(message: Message) -> Message:
    """An assistant message without what a provider would refuse once anything else in it changes."""
    if message.role != "assistant":
        return message
    parts = tuple(p for p in message.parts if not isinstance(p, Thinking | Opaque))
    if not parts:
        hidden = sum(len(p.text) for p in message.parts if isinstance(p, Thinking))
        parts = (Text(f"[{hidden:,} characters of thinking left out]"),)
    return replace(message, parts=parts)


def _part(part: Part, keep: int) -> Part:
    if isinstance(part, Text):
        return _text(part, keep)
    if isinstance(part, ToolCall):
        short = arguments(part.arguments, keep)
        return part if short == part.arguments else replace(part, arguments=short)
    if isinstance(part, ToolResult):
        return replace(part, content=tuple(_text(p, keep) if isinstance(p, Text) else p for p in part.content))
    return part


def _text(part: Text, keep: int) -> Text:
    short = head_tail(part.text, keep)
    return part if short == part.text else Text(short)


def arguments(text: str, keep: int) -> str:
    """Tool arguments in about `keep` characters: the same JSON object with its long strings shortened.

    When that is not enough, or they are no JSON object, an object that says how much is left out.
    """
    if len(text) <= keep:
        return text
    try:
        value = json.loads(text)
        short = json.dumps(_leaves(value, keep // 4), ensure_ascii=False) if isinstance(value, dict) else ""
    except (ValueError, RecursionError):
        short = ""
    short = short.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate may have been escaped in the JSON
    if not short or len(short) > 2 * keep:
        short = json.dumps({"left_out": f"{len(text):,} characters of arguments"})
    return short if len(short) < len(text) else text


def _leaves(value: Any, keep: int) -> Any:
    if isinstance(value, str):
        return head_tail(value, keep)
    if isinstance(value, dict):
        return {key: _leaves(v, keep) for key, v in value.items()}
    if isinstance(value, list):
        return [_leaves(v, keep) for v in value]
    return value


def _boundary(text: str, index: int) -> int:
    """The nearest index at or before this one that does not part a character from its marks."""
    for i in _back(index):
        if i >= len(text) or not _joins(text, i):
            return i
    return index


def _back(index: int) -> Iterator[int]:
    return iter(range(index, max(index - 8, 0) - 1, -1))


def _joins(text: str, i: int) -> bool:
    """Whether the character at `i` belongs to the one before it."""
    char = text[i]
    if char.isascii():
        return False
    joined = unicodedata.combining(char) or char in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"
    return bool(joined) or (i > 0 and text[i - 1] == "\u200d")
