"""What is remembered, as part of a prompt: fenced, labelled, within bounds, and nothing that is in sight anyway."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew.agent.conversation import Conversation
from clew.memory.records import MemoryRecord, digest
from clew.memory.render import message
from clew.memory.window import clipped
from clew.messages import Text
from clew.sessions.edits import unpack
from clew.sessions.view import View
from clew.tokens.protocol import TokenCounter

META = "clew"
"""Under this name a part's `meta` tells which records it shows: `{"recalled": [{"id", "score", "why"}]}`."""


class Remembered(Struct, frozen=True):
    """A part of a prompt (None: nothing to show), and the records in it."""

    part: Text | None = None
    records: tuple[MemoryRecord, ...] = ()


def remembered(found: Sequence[MemoryRecord], conversation: Conversation, tokens: int) -> Remembered:
    """The records that the conversation does not show already, in at most so many tokens.

    Records by relevance lose the last ones, records in the order of time the first; a single one that is too large
    is shown in part.
    """
    session = conversation.session
    new = [r for r in found if not _in_sight(r, session.id, session.view)]
    shown = within(new, tokens, conversation.counter)
    if not shown or (made := message(shown)) is None:
        return Remembered()
    told = [{"id": r.id, "digest": digest(r.text), **_why(r)} for r in shown]
    return Remembered(Text(made.text, {META: {"recalled": told}}), tuple(shown))


def within(records: Sequence[MemoryRecord], tokens: int, counter: TokenCounter) -> list[MemoryRecord]:
    """As many of the records as fit, with their dates and the fence around them."""
    in_time = all(a.created <= b.created for a, b in pairwise(records))
    by_worth = list(records[::-1] if in_time and len(records) > 1 else records)
    taken: list[MemoryRecord] = []
    for record in by_worth:
        if _size([*taken, record], counter) > tokens:
            break
        taken.append(record)
    if by_worth and not taken:
        first = by_worth[0]
        room = tokens - _size([replace(first, content="")], counter)
        taken = [clipped(first, room, counter)] if room > 0 else []
    return taken[::-1] if in_time and len(records) > 1 else taken


def _size(records: Sequence[MemoryRecord], counter: TokenCounter) -> int:
    made = message(records)
    return counter.message(made) if made else 0


def _in_sight(record: MemoryRecord, session: str, view: View) -> bool:
    """Whether the view holds what the record was made from, or the record itself as it is now."""
    said = {int(s.entry) for s in record.sources if s.session == session and s.entry.isdigit()}
    if said and all(s.session == session for s in record.sources):
        there = {i for item in view.items if item.kind == "message" for i in unpack(item.ids)}
        if said <= there:
            return True
    wanted = (record.id, digest(record.text))
    return any((told.get("id"), told.get("digest")) == wanted for told in _told(view))


def _told(view: View) -> list[dict[str, Any]]:
    return [
        told
        for item in view.items
        for part in item.message.parts
        if isinstance(part, Text) and META in part.meta
        for told in part.meta[META].get("recalled", ())
    ]


def _why(record: MemoryRecord) -> dict[str, Any]:
    return {name: record.metadata[name] for name in ("score", "why") if name in record.metadata}
