"""What a conversation is made of: messages and their parts, frozen and the same for every provider.

They are JSON, so they cannot form cycles, and the cyclic garbage collector need not watch them
(`gc=False`): a long conversation loads in half the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from clew.errors import BadPayload

Meta = Mapping[str, Any]
"""Provider fields that have no meaning to Clew, kept so that a codec can write the payload back
exactly. Keyed by codec name: `{"anthropic": {"cache_control": {...}}}`."""

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "tool_calls", "length", "refusal", "error", "unknown"]
"""Why a model's reply ended."""


class Text(Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    meta: Meta = field(default_factory=dict)


class Image(Struct, frozen=True, gc=False, tag="image", omit_defaults=True):
    """A picture, by address (`url`) or inline (`data`, base64, with its `media_type`)."""

    url: str = ""
    data: str = ""
    media_type: str = ""
    meta: Meta = field(default_factory=dict)


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", omit_defaults=True):
    """A call the assistant makes. `arguments` is JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"
    meta: Meta = field(default_factory=dict)


class Thinking(Struct, frozen=True, gc=False, tag="thinking", omit_defaults=True):
    """Reasoning shown by the model. With a `signature` it is byte-exact or gone, never edited."""

    text: str
    signature: str = ""
    meta: Meta = field(default_factory=dict)


class Opaque(Struct, frozen=True, gc=False, tag="opaque", omit_defaults=True):
    """A provider block Clew does not interpret, kept verbatim (`codec` names whose it is)."""

    codec: str
    data: Mapping[str, Any]


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", omit_defaults=True):
    """What a tool answered to the call `call_id`."""

    call_id: str
    content: tuple[Text | Image | Opaque, ...] = ()
    is_error: bool = False
    name: str = ""
    meta: Meta = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All text of the result, parts joined by newlines."""
        return "\n".join(p.text for p in self.content if isinstance(p, Text))


Part = Text | Image | ToolCall | ToolResult | Thinking | Opaque


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one model call as the provider reported them.

    `input` excludes cached tokens; the whole prompt was `input + cache_read + cache_write`.
    `reasoning` is the part of `output` that was hidden thinking.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Prompt and output together: the context right after the call."""
        return self.prompt + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One item of a conversation.

    A `tool` message holds tool results only; a `user` message holds none. Providers that mix them
    in one message are split and rejoined by their codec.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    meta: Meta = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Visible text of the message itself (no thinking, no tool traffic), joined by newlines."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls this message makes."""
        return tuple(p for p in self.parts if isinstance(p, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results this message carries."""
        return tuple(p for p in self.parts if isinstance(p, ToolResult))

    @property
    def images(self) -> tuple[Image, ...]:
        """All images, those inside tool results included."""
        found: list[Image] = []
        for part in self.parts:
            if isinstance(part, Image):
                found.append(part)
            elif isinstance(part, ToolResult):
                found.extend(p for p in part.content if isinstance(p, Image))
        return tuple(found)

    @property
    def blank(self) -> bool:
        """True when a provider would reject the message as empty."""
        return all(isinstance(p, Text) and (not p.text or p.text.isspace()) for p in self.parts)


def system(text: str) -> Message:
    """A system message of one text."""
    return Message("system", (Text(text),))


def user(*parts: str | Part) -> Message:
    """A user message; strings become text parts."""
    return Message("user", _parts(parts))


def assistant(*parts: str | Part, usage: Usage | None = None) -> Message:
    """An assistant message; strings become text parts."""
    return Message("assistant", _parts(parts), usage)


def tool(call_id: str, text: str, *, is_error: bool = False, name: str = "") -> Message:
    """A tool message that answers one call with text."""
    return Message("tool", (ToolResult(call_id, (Text(text),), is_error, name),))


def _parts(parts: Iterable[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(p) if isinstance(p, str) else _part(p) for p in parts)


def _part(value: Part) -> Part:
    if not isinstance(value, Part):
        raise BadPayload(f"a message is made of strings and parts such as Text, not of {value!r:.80}")
    return value


T = TypeVar("T", bound=Struct)

_SURROGATE = re.compile("[\ud800-\udfff]")


def sanitized(message: T) -> tuple[T, int]:
    """The message (or other struct) with lone surrogates replaced by U+FFFD, and how many there were.

    Lone surrogates cannot be written as UTF-8; they come from text cut in the middle of a
    character or from broken JSON escapes. Without any, the same object comes back.
    """
    seen = 0

    def clean(value: Any) -> Any:
        nonlocal seen
        if isinstance(value, str):
            if value.isascii():
                return value
            text, n = _SURROGATE.subn("\ufffd", value)
            seen += n
            return text if n else value
        if isinstance(value, Struct):
            changes = {}
            for name in value.__struct_fields__:
                old = getattr(value, name)
                new = clean(old)
                if new is not old:
                    changes[name] = new
            return replace(value, **changes) if changes else value
        if isinstance(value, tuple | list):
            items = [clean(v) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
        if isinstance(value, Mapping):
            pairs = {clean(k): clean(v) for k, v in value.items()}
            same = all(a is b for a, b in zip(pairs.values(), value.values(), strict=False))
            return value if same and list(pairs) == list(value) else pairs
        return value

    result: T = clean(message)
    return result, seen
