"""Claude Code session files (JSON Lines; read off versions 1.0.98, 2.0.x and 2.1.332).

What is particular about them:
- One API message is written as several lines with one `message.id`, a block each, its tool results
  now and then in between. It becomes one message again: blocks in file order, and the usage, which
  every line repeats (early ones with a wrong, small output), counted once: the largest output.
- Lines hang together by `parentUuid`, but after parallel calls the chain runs through one of the
  results only. Here all results of a message follow it in one chain, whatever the file says.
- Attachments, system lines and bookkeeping become notes in that chain; most have no uuid and stay
  where they stand.
- `compact_boundary` begins a new root; `logicalParentUuid` says what it continues. The summary is
  the next line, preserved messages are named and not written again.
- Subagents: lines with `isSidechain`, inside the file (1.0) or in one of their own (2.1).
- The current end is the last line with a uuid that is no side chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew.messages import Message
from clew.sessions.entries import Note
from clew.transcripts.claude_lines import NAME, holds_results, reply, said
from clew.transcripts.events import Boundary, Damage, Event, Leaf, Line
from clew.transcripts.figures import count, mapping, seconds
from clew.transcripts.lines import Record, records

WAITING = 500
"""Lines kept back while a message may still get another block (subagents write in between)."""


def read(lines: Iterable[tuple[int, bytes]]) -> Iterator[Event]:
    """The events of a Claude Code file, in file order."""
    log = _Log()
    for record in records(lines):
        if isinstance(record, Damage):
            yield record
        else:
            log.take(record)
            if log.settled:
                yield from log.ready()
    yield from log.finish()


class _Place(Struct, eq=False, gc=False):
    """A message with the results and notes that follow it: what comes next hangs below the last of them."""

    last: str
    side: bool
    thread: object


class _Kept(Struct, eq=False, gc=False):
    """Something of which the file may still say more."""

    parent: str | None
    place: _Place
    open: bool = True


class _Reply(_Kept, kw_only=True, eq=False, gc=False):
    """An assistant message of which more lines may come; `again` when it was taken for complete too early."""

    id: str
    lines: list[Record]
    again: bool


class _Compacting(_Kept, kw_only=True, eq=False, gc=False):
    """A boundary whose summary has not come yet."""

    record: Record
    summary: Record | None = None


class _Log:
    """What has to be remembered from line to line."""

    def __init__(self) -> None:
        self.places: dict[str, _Place] = {}
        self.aliases: dict[str, str] = {}
        self.seals: dict[str, int] = {}
        self.queue: list[Line | Damage | _Kept] = []
        self.replies: dict[str, _Reply] = {}
        self.cut: set[str] = set()
        self.boundary: _Compacting | None = None
        self.here: _Place | None = None
        self.main: _Place | None = None
        self.aside: _Place | None = None

    # -- one line in

    def take(self, record: Record) -> None:
        value = record.value
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            self._note(record, record.key, self.here, None)
            return
        seal = hash(record.raw)
        if self.seals.get(uuid) == seal:
            self.queue.append(Damage(record.line, f"repeats an earlier line ({uuid})", lost=False))
            return
        self.seals[uuid] = seal
        side = value.get("isSidechain") is True
        above = self._above(record, side)
        self.here = self._place(record, uuid, side, above)
        if side:
            self.aside = self.here
        else:
            self.main = self.here

    def finish(self) -> Iterator[Event]:
        """What was kept back, and where the conversation stands."""
        for item in self.queue:
            if isinstance(item, _Kept):
                item.open = False
        yield from self.ready()
        end = self.main or self.aside
        if end is not None:
            yield Leaf(end.last)

    def _above(self, record: Record, side: bool) -> _Place | None:
        """What the line follows."""
        value = record.value
        boundary = value.get("subtype") == "compact_boundary"
        name = value.get("logicalParentUuid") if boundary else value.get("parentUuid")
        before = self.aside if side else self.main
        if not isinstance(name, str):
            return before if boundary else None
        place = self.places.get(name)
        if place is None and before is not None:
            reason = f"its parent {name} is not in the file: linked to the line before it"
            self.queue.append(Damage(record.line, reason, lost=False))
            return before
        return place

    def _place(self, record: Record, uuid: str, side: bool, above: _Place | None) -> _Place:
        value = record.value
        kind = value.get("type")
        message = value.get("message")
        if kind == "assistant" and isinstance(message, dict):
            return self._assistant(record, uuid, side, above, message)
        if kind == "user" and isinstance(message, dict):
            return self._user(record, uuid, side, above, message)
        if value.get("subtype") == "compact_boundary":
            place = self._below(uuid, side, above)
            self._close(place)
            self.boundary = _Compacting(above.last if above else None, place, record=record)
            self.queue.append(self.boundary)
            return place
        return self._note(record, uuid, above, side)

    def _assistant(
        self, record: Record, uuid: str, side: bool, above: _Place | None, message: Mapping[str, Any]
    ) -> _Place:
        name = message.get("id")
        name = name if isinstance(name, str) and name else uuid
        waiting = self.replies.get(name)
        if waiting is not None and waiting.place.side == side:
            waiting.lines.append(record)
            self.places[uuid] = waiting.place
            self.aliases[uuid] = waiting.lines[0].value["uuid"]
            return waiting.place
        place = self._below(uuid, side, above)
        self._close(place)
        waiting = _Reply(above.last if above else None, place, id=name, lines=[record], again=name in self.cut)
        self.replies[name] = waiting
        self.queue.append(waiting)
        return place

    def _user(self, record: Record, uuid: str, side: bool, above: _Place | None, message: dict[str, Any]) -> _Place:
        value = record.value
        if value.get("isCompactSummary") is True:
            return self._summary(record, uuid, side, above)
        results = holds_results(message)
        if results and above is not None and above.side == side:
            place = above
        else:
            place = self._below(uuid, side, above)
            self._close(place)
        parent = above.last if above else None
        self.places[uuid] = place
        for line in said(record, uuid, parent, side):
            self.queue.append(line)
            if isinstance(line, Line):
                place.last = line.key
        return place

    def _summary(self, record: Record, uuid: str, side: bool, above: _Place | None) -> _Place:
        waiting = self.boundary
        if waiting is not None and waiting.open and record.value.get("parentUuid") == waiting.record.value["uuid"]:
            waiting.summary = record
            waiting.open = False
            self.places[uuid] = waiting.place
            self.aliases[uuid] = waiting.place.last
            return waiting.place
        place = self._below(uuid, side, above)
        self._close(place)
        self.queue.append(_Compacting(above.last if above else None, place, False, record=record, summary=record))
        return place

    def _note(self, record: Record, key: str, above: _Place | None, side: bool | None) -> _Place:
        value = record.value
        parent = above.last if above else None
        if above is None or (side is not None and above.side != side):
            place = self._below(key, bool(side), above)
        else:
            place = above
            place.last = key
            if side is not None:
                self.places[key] = place
        if side is None and self.here is None:
            self.here = place
        kind = value.get("type")
        name = kind if isinstance(kind, str) else "line"
        subtype = value.get("subtype")
        if isinstance(subtype, str):
            name = f"{name}/{subtype}"
        note = Note(f"{NAME}/{name}", value)
        self.queue.append(Line(key, parent, note, record.raw, record.line, seconds(value.get("timestamp")), place.side))
        return place

    def _below(self, key: str, side: bool, above: _Place | None) -> _Place:
        thread = above.thread if above is not None and above.side == side else object()
        place = self.places[key] = _Place(key, side, thread)
        return place

    def _close(self, place: _Place) -> None:
        """No message of this thread gets more blocks once something else follows it."""
        done = [waiting for waiting in self.replies.values() if waiting.place.thread is place.thread]
        for waiting in done:
            waiting.open = False
            del self.replies[waiting.id]
        if self.boundary is not None and self.boundary.place.thread is place.thread:
            self.boundary.open = False
            self.boundary = None

    # -- lines out

    @property
    def settled(self) -> bool:
        """Whether the oldest line kept back need not be kept any longer."""
        queue = self.queue
        if not queue:
            return False
        first = queue[0]
        return not isinstance(first, _Kept) or not first.open or len(queue) > WAITING

    def ready(self) -> list[Line | Damage]:
        """The lines that nothing more can be said about, in file order."""
        queue = self.queue
        out: list[Line | Damage] = []
        done = 0
        for item in queue:
            if isinstance(item, _Reply):
                if item.open and len(queue) - done <= WAITING:
                    break
                out += self._message(item)
            elif isinstance(item, _Compacting):
                if item.open and len(queue) - done <= WAITING:
                    break
                item.open = False
                out.append(self._compaction(item))
            elif not isinstance(item, _Kept):
                out.append(item)
            done += 1
        del queue[:done]
        return out

    def _message(self, item: _Reply) -> list[Line | Damage]:
        if item.open:
            del self.replies[item.id]
            self.cut.add(item.id)
        return reply(item.lines, item.parent, item.place.side, billed=not item.again)

    def _compaction(self, item: _Compacting) -> Line:
        """The boundary with its summary; without one nothing was replaced, and it is but a note."""
        record = item.record
        value = record.value
        key = value["uuid"]
        at = seconds(value.get("timestamp"))
        side = item.place.side
        if item.summary is None:
            return Line(
                key, item.parent, Note(f"{NAME}/system/compact_boundary", value), record.raw, record.line, at, side
            )
        spoken = next(line for line in said(item.summary, key, None, side) if isinstance(line, Line))
        summary = spoken.body
        if not isinstance(summary, Message):
            return replace(spoken, parent=item.parent)
        facts = mapping(value.get("compactMetadata"))
        preserved = mapping(facts.get("preservedMessages"))
        kept = preserved.get("allUuids") or preserved.get("uuids") or ()
        names = [name for name in kept if isinstance(name, str)] if isinstance(kept, list) else []
        head = mapping(facts.get("preservedSegment")).get("headUuid")
        raw = record.raw if item.summary is record else record.raw + item.summary.raw
        body = Boundary(
            summary,
            kept=tuple(dict.fromkeys(self.aliases.get(name, name) for name in names)),
            kept_from=self.aliases.get(head, head) if isinstance(head, str) and not names else "",
            reason={"manual": "manual"}.get(str(facts.get("trigger")), "threshold"),
            before=count(facts.get("preTokens")),
            after=count(facts.get("postTokens")),
            details={NAME: value} if item.summary is not record else {},
        )
        return Line(key, item.parent, body, raw, item.summary.line, at, side)
