"""Messages grouped as providers with two alternating roles want them (Anthropic, Gemini).

Such a provider writes tool results and what the user says in one user message. Decoding splits it
into a `tool` and a `user` message; encoding joins neighbours of the same side again. A payload that
had two messages of one side in a row keeps them apart: decoding numbers them (`@at`), and only two
messages with successive numbers are kept apart, so a number left over in an edited view does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from clew.codecs.foreign import own
from clew.messages import Message

T = TypeVar("T")


def numbered(decoded: Sequence[tuple[int, Message]], codec: str) -> list[Message]:
    """The messages, each decoded from the provider message of that index, numbered where two of one side meet."""
    out: list[Message] = []
    for k, (index, message) in enumerate(decoded):
        neighbours = (*decoded[max(0, k - 1) : k], *decoded[k + 1 : k + 2])
        if any(i != index and _side(m) == _side(message) for i, m in neighbours):
            message = replace(message, meta={**message.meta, codec: {**own(message.meta, codec), "@at": index}})
        out.append(message)
    return out


def turns(messages: Iterable[tuple[Message, T]], codec: str) -> list[list[tuple[Message, T]]]:
    """The messages, each with what it was encoded to, in groups; each group becomes one provider message."""
    out: list[list[tuple[Message, T]]] = []
    for item in messages:
        if out and _together(out[-1][-1][0], item[0], codec):
            out[-1].append(item)
        else:
            out.append([item])
    return out


def _together(a: Message, b: Message, codec: str) -> bool:
    if _side(a) != _side(b):
        return False
    if a.role == b.role == "tool":  # all results of a round go together
        return True
    first, second = own(a.meta, codec).get("@at"), own(b.meta, codec).get("@at")
    return not (isinstance(first, int) and second == first + 1)


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"
