"""Replaces messages one by one with smaller forms of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from clew.messages import Message, Text, ToolResult
from clew.sessions.edits import Edit, How, Replace, pack
from clew.sessions.view import Item, View

SHORT = 200
"""Results of at most so many characters are not worth a placeholder (Hermes prunes above 200)."""


def mask(message: Message) -> Message:
    """A tool message with a placeholder in the place of every result: what was there, and how much of it."""
    return replace(message, parts=tuple(_masked(p) if isinstance(p, ToolResult) else p for p in message.parts))


def _masked(result: ToolResult) -> ToolResult:
    size = sum(len(p.text) for p in result.content if isinstance(p, Text))
    media = sum(not isinstance(p, Text) for p in result.content)
    beside = f" and {media} other part{'s' * (media > 1)}" if media else ""
    note = f"[old result left out: {size:,} characters{beside}]"
    if not media and size <= SHORT:
        return result
    return replace(result, content=(Text(note),))


def results(view: View, start: int, end: int) -> list[int]:
    """Indices of the tool messages in `view.items[start:end]`, oldest first."""
    return [i for i in range(start, end) if view.items[i].message.role == "tool"]


def rewrite(
    view: View,
    where: Iterable[int],
    transform: Callable[[Message], Message],
    how: How,
    *,
    room: int | None = None,
) -> list[Edit]:
    """Replaces the messages at these indices by what `transform` makes of them, where that is smaller.

    With `room` (uncalibrated tokens of the messages alone), only as many, in the order given, as it
    takes to get there. A summary that is rewritten remains a summary.
    """
    edits: list[Edit] = []
    count = view.count
    for i in where:
        if room is not None and count <= room:
            break
        item = view.items[i]
        if item.kind == "mend":
            continue
        message = transform(item.message)
        if message is item.message or message == item.message:
            continue
        saved = item.count - view.counter.message(message)
        if saved <= 0:
            continue
        edits.append(Replace(pack(item.ids), message, how=_how(item, how)))
        count -= saved
    return edits


def _how(item: Item, how: How) -> How:
    return "summary" if item.kind == "summary" else how
