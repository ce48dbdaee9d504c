"""What makes a list of messages valid for the strictest provider; what breaks a rule comes back as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, sanitized


class Violation(Struct, frozen=True):
    """A rule that the message at `index` breaks, and how."""

    rule: str
    index: int
    detail: str


Rule = Callable[[Sequence[Message]], Iterator[tuple[int, str]]]
"""A rule finds the messages that break it: index and detail of each."""


def violations(messages: Sequence[Message]) -> list[Violation]:
    """Every rule of `RULES` that the messages break, in order of the rules."""
    return [Violation(name, index, detail) for name, rule in RULES.items() for index, detail in rule(messages)]


def parts_by_role(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Only the assistant calls tools and thinks; results stand in tool messages and nothing else does."""
    allowed: Mapping[str, tuple[type, ...]] = {
        "system": (Text, Image, Opaque),
        "user": (Text, Image, Opaque),
        "assistant": (Text, Image, Opaque, ToolCall, Thinking),
        "tool": (ToolResult,),
    }
    for i, message in enumerate(messages):
        for part in message.parts:
            if not isinstance(part, allowed[message.role]):
                yield i, f"a {message.role} message holds a {type(part).__name__}"


def not_empty(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Every message has something in it."""
    for i, message in enumerate(messages):
        if message.blank:
            yield i, f"the {message.role} message is empty"


def user_first(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """After the leading system messages the user speaks first."""
    for i, message in enumerate(messages):
        if message.role != "system":
            if message.role != "user":
                yield i, f"the conversation begins with a message of role {message.role}"
            return


def paired(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Each call has exactly one result, in the tool messages right behind it; no result lacks its call.

    Calls of the same id are matched in order: codecs give them ids of their own.
    """
    waiting: list[str] = []
    answered: set[str] = set()
    owner = 0
    for i, message in enumerate(messages):
        if message.role != "tool":
            for call_id in waiting:
                yield owner, f"call {call_id!r} has no result right behind it"
            owner, answered = i, set()
            waiting = [c.id for c in message.calls]
        for result in message.results:
            if result.call_id in waiting:
                waiting.remove(result.call_id)
                answered.add(result.call_id)
            elif result.call_id in answered:
                yield i, f"call {result.call_id!r} has two results"
            else:
                yield i, f"result {result.call_id!r} has no call right before it"
    for call_id in waiting:
        yield owner, f"call {call_id!r} has no result right behind it"


def whole_characters(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """No lone surrogates: they cannot be sent."""
    for i, message in enumerate(messages):
        try:
            msgspec.json.encode(message)
        except UnicodeEncodeError:
            yield i, f"{sanitized(message)[1]} lone surrogates"


RULES: Mapping[str, Rule] = {
    "parts by role": parts_by_role,
    "not empty": not_empty,
    "user first": user_first,
    "paired": paired,
    "whole characters": whole_characters,
}
"""The rules by name."""
