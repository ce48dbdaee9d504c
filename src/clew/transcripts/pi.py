"""Pi and OpenClaw session files (JSON Lines; read off Pi's first linear layout, version 3, and OpenClaw's).

The oldest files have no ids: entries follow one another, and a compaction names the first entry it
kept by its line (the header is line 0). Version 3 is a tree of `id` and `parentId`; the current end
is the last line. The header and everything that is not part of the conversation become notes in
that tree.

A provider that fails leaves an empty reply, and the next attempt may write the user's message
again: a repetition with nothing but failed replies in between is a note, so the view has it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clew.messages import Message, Part
from clew.sessions.entries import Note
from clew.transcripts.events import Aside, Body, Boundary, Damage, Event, Hidden, Leaf, Line, Name
from clew.transcripts.figures import count, mapping, seconds
from clew.transcripts.lines import Record, records
from clew.transcripts.pi_messages import NAME, Unreadable, message_of, summary_of, usage_of


def read(lines: Iterable[tuple[int, bytes]]) -> Iterator[Event]:
    """The events of a Pi or OpenClaw file, in file order."""
    log = _Log()
    for record in records(lines):
        if isinstance(record, Damage):
            yield record
        else:
            yield from log.take(record)
    if log.last:
        yield Leaf(log.last)


class _Log:
    """What has to be remembered from line to line."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.entries: list[str] = []
        self.last: str | None = None
        self.header: str | None = None
        self.linear = True
        self.asked: tuple[tuple[Part, ...], str] | None = None
        """What the user said last without an answer, and the line where its failed replies end."""

    def take(self, record: Record) -> Iterator[Event]:
        value = record.value
        own = value.get("id")
        header = value.get("type") == "session"
        if header:
            self.linear = not count(value.get("version"))
        key = own if isinstance(own, str) and not header else record.key
        parent, missing = self._parent(value, key, header)
        if missing:
            yield Damage(record.line, missing, lost=False)
        body, wrong = self._body(value, parent)
        if wrong:
            yield Damage(record.line, wrong, lost=False)
        at = seconds(value.get("timestamp")) or seconds(mapping(value.get("message")).get("timestamp"))
        yield Line(key, parent, body, record.raw, record.line, at)
        self._follow(key, parent, value, body)
        self.known.add(key)
        self.last = key
        if header:
            self.header = key
        if self.linear:
            self.entries.append(key)

    def _parent(self, value: Mapping[str, Any], key: str, header: bool) -> tuple[str | None, str]:
        if "parentId" not in value:
            return self.last, ""
        name = value["parentId"]
        if name in (None, "") or name == key:
            return (self.header if self.last == self.header else None), ""
        if isinstance(name, str) and name in self.known:
            return name, ""
        if self.last == self.header:
            return self.last, ""  # the head of the file was cut off
        return self.last, f"its parent {name} is not in the file: linked to the line before it"

    def _body(self, value: dict[str, Any], parent: str | None) -> tuple[Body, str]:
        """What the line is, and what is wrong with it."""
        kind = value.get("type")
        try:
            if kind == "message":
                spoken = message_of(value)
                if spoken is not None and self._asked_again(spoken, parent):
                    return Note(f"{NAME}/asked-again", value), ""
                return (spoken, "") if spoken is not None else (Note(f"{NAME}/message", value), "")
            if kind == "custom_message":
                return message_of({**value, "message": {"role": "custom", "content": value.get("content")}}) or Note(
                    f"{NAME}/custom_message", value
                ), ""
            if kind == "compaction":
                return self._compaction(value)
            if kind == "branch_summary" and isinstance(value.get("summary"), str) and value["summary"].strip():
                leaf = value.get("fromId")
                return Aside(summary_of(value), leaf if isinstance(leaf, str) else "", {NAME: value}), ""
        except Unreadable as error:
            return Note(f"{NAME}/unreadable", value), str(error)
        target = value.get("targetId")
        if kind == "label" and isinstance(target, str) and target in self.known:
            label = value.get("label")
            return Name(target, label if isinstance(label, str) else ""), ""
        if kind == "context_edit" and isinstance(target, str) and target in self.known and not value.get("replacement"):
            return Hidden(target, {NAME: value}), ""
        return Note(f"{NAME}/{kind if isinstance(kind, str) else 'line'}", value), ""

    def _compaction(self, value: dict[str, Any]) -> tuple[Body, str]:
        if not isinstance(value.get("summary"), str) or not value["summary"].strip():
            return Note(f"{NAME}/compaction", value), "a compaction without a summary"
        first = value.get("firstKeptEntryId")
        wrong = ""
        if "firstKeptEntryIndex" in value and first is None:
            index = value["firstKeptEntryIndex"]
            if type(index) is int and 0 < index < len(self.entries):
                first = self.entries[index]
            elif index != 0:
                wrong = f"firstKeptEntryIndex {index} lies outside this file: nothing above is kept"
        whole = value.get("systemMessage")
        system = message_of({"message": whole}) if isinstance(whole, dict) else None
        details = {k: v for k, v in value.items() if k not in ("summary", "systemMessage")}
        body = Boundary(
            summary_of(value),
            kept_from=first if isinstance(first, str) else "",
            system=system,
            before=count(value.get("tokensBefore")),
            details={NAME: details},
            usage=usage_of(value.get("usage")),
        )
        return body, wrong

    # -- repeated questions

    def _asked_again(self, message: Message, parent: str | None) -> bool:
        return message.role == "user" and (message.parts, parent) == self.asked

    def _follow(self, key: str, parent: str | None, value: Mapping[str, Any], body: Body) -> None:
        message = mapping(value.get("message"))
        role = message.get("role") if isinstance(body, Message) else None
        if isinstance(body, Message) and role == "user":
            self.asked = (body.parts, key)
        elif self.asked is not None and self.asked[1] == parent and _says_nothing(role, body, message):
            self.asked = (self.asked[0], key)
        else:
            self.asked = None


def _says_nothing(role: Any, body: Body, message: Mapping[str, Any]) -> bool:
    if isinstance(body, Note):
        return True
    failed = role == "assistant" and message.get("stopReason") in ("error", "aborted")
    return failed and isinstance(body, Message) and body.blank
