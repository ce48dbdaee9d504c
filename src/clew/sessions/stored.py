"""Bodies as the JSON that is stored. What is written can be read again: structs do not check their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import astuple

from clew.errors import BadPayload
from clew.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from clew.sessions.entries import Body, Said

_DECODER: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)
_ENCODER = msgspec.json.Encoder()

_ROLES = ("system", "user", "assistant", "tool")


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
        and all(map(_part, message.parts))
        and (message.usage is None or _usage(message.usage))
        and type(message.meta) is dict
    )


def _part(part: Part) -> bool:
    look = _PLAIN.get(type(part))
    return look is not None and look(part)


def _shown(part: Part) -> bool:
    return type(part) is Text and _text(part)


def _text(part: Text) -> bool:
    return type(part.text) is str and type(part.meta) is dict


def _call(part: ToolCall) -> bool:
    return type(part.id) is type(part.name) is type(part.arguments) is str and type(part.meta) is dict


def _thinking(part: Thinking) -> bool:
    return type(part.text) is type(part.signature) is str and type(part.meta) is dict


def _result(part: ToolResult) -> bool:
    return (
        type(part.call_id) is type(part.name) is str
        and type(part.content) is tuple
        and all(map(_shown, part.content))
        and type(part.is_error) is bool
        and type(part.meta) is dict
    )


_PLAIN: dict[type, Callable[[Any], bool]] = {
    Text: _text,
    ToolCall: _call,
    Thinking: _thinking,
    ToolResult: _result,
}


def _usage(usage: Usage) -> bool:
    return type(usage) is Usage and set(map(type, astuple(usage))) == {int}
