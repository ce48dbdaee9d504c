"""Bodies as the JSON that is stored. What is written can be read again: structs do not check their fields."""

from __future__ import annotations

import msgspec

from clew.errors import BadPayload
from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage
from clew.sessions.entries import Body, Said

_DECODER: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)
_ENCODER = msgspec.json.Encoder()

_ROLES = ("system", "user", "assistant", "tool")
_STRINGS: dict[type, tuple[str, ...]] = {
    Text: ("text",),
    Image: ("url", "data", "media_type"),
    ToolCall: ("id", "name", "arguments"),
    Thinking: ("text", "signature"),
    ToolResult: ("call_id", "name"),
}


def encoded(body: Body) -> bytes:
    """The JSON of a body. Raises `UnicodeEncodeError` on a lone surrogate, `BadPayload` on what is not JSON or has
    a field of the wrong type.

    Everything but a plain message is read back to be sure, which costs more than the writing.
    """
    try:
        data = _ENCODER.encode(body)
        if not (isinstance(body, Said) and _plain(body.message)):
            decoded(data)
        return data
    except TypeError as error:
        raise BadPayload(f"{error}; what goes into the log must be JSON") from error
    except msgspec.ValidationError as error:
        raise BadPayload(f"{error}; clew.messages has the types") from error


def decoded(data: bytes) -> Body:
    """The body of this JSON. Raises what msgspec raises, and `TypeError` when it is not even bytes."""
    return _DECODER.decode(data)


def _plain(message: Message) -> bool:
    """Whether every field certainly has its type."""
    return (
        type(message) is Message
        and message.role in _ROLES
        and type(message.parts) is tuple
        and all(map(_plain_part, message.parts))
        and (message.usage is None or _plain_usage(message.usage))
        and type(message.meta) is dict
    )


def _plain_part(part: Part) -> bool:
    if isinstance(part, Opaque) or type(part) not in _STRINGS or type(part.meta) is not dict:
        return False
    if not all(type(getattr(part, name)) is str for name in _STRINGS[type(part)]):
        return False
    return type(part) is not ToolResult or (
        type(part.content) is tuple
        and all(type(shown) in (Text, Image) and _plain_part(shown) for shown in part.content)
        and type(part.is_error) is bool
    )


def _plain_usage(usage: Usage) -> bool:
    return type(usage) is Usage and all(type(n) is int for n in msgspec.structs.astuple(usage))
