"""Messages grouped as providers with two alternating sides want them (Anthropic, Gemini).

Such a provider writes tool results and what the user says in one user message. Decoding splits it
into a `tool` and a `user` message; encoding joins neighbours of the same side again. A payload that
had two messages of one side in a row keeps them apart: decoding numbers them (`@at`), and only two
messages with successive numbers are kept apart, so a number left over in an edited view does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from clew.codecs.foreign import own
from clew.codecs.shape import Spot
from clew.messages import Message

T = TypeVar("T")


class Shown(NamedTuple, Generic[T]):
    """A message, the side it is written on, and what it was encoded to."""

    side: str
    message: Message
    parts: list[T]


def side(message: Message) -> str:
    """The side a message belongs to: tool results are the user's."""
    return "user" if message.role == "tool" else message.role


def numbered(decoded: Sequence[tuple[Spot, Message]], codec: str) -> list[Message]:
    """The messages, each with the place it was decoded from, numbered where two of one side meet."""
    out: list[Message] = []
    for k, (at, message) in enumerate(decoded):
        neighbours = (*decoded[max(0, k - 1) : k], *decoded[k + 1 : k + 2])
        if any(spot.index != at.index and side(m) == side(message) for spot, m in neighbours):
            message = replace(message, meta={**message.meta, codec: {**own(message.meta, codec), "@at": at.index}})
        out.append(message)
    return out


def turns(messages: Iterable[Shown[T]], codec: str) -> list[list[Shown[T]]]:
    """The messages in groups; each group becomes one provider message."""
    out: list[list[Shown[T]]] = []
    for shown in messages:
        if out and _together(out[-1][-1], shown, codec):
            out[-1].append(shown)
        else:
            out.append([shown])
    return out


def _together(a: Shown[T], b: Shown[T], codec: str) -> bool:
    if a.side != b.side:
        return False
    if a.message.role == b.message.role == "tool" or not (a.message.meta and b.message.meta):
        return True  # all results of a round go together, whatever their marks
    first, second = own(a.message.meta, codec).get("@at"), own(b.message.meta, codec).get("@at")
    return not (isinstance(first, int) and second == first + 1)
