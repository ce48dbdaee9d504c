"""What single lines of a Claude Code file say: replies put together again, and user lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clew.codecs.usage import anthropic_usage
from clew.errors import BadPayload
from clew.messages import Message, Part, Text, ToolResult
from clew.sessions.entries import Note
from clew.transcripts.claude_blocks import assistant_parts, user_messages
from clew.transcripts.events import Damage, Line
from clew.transcripts.figures import count, reported, seconds
from clew.transcripts.lines import Record

NAME = "claude-code"

WORTH = 100
"""Characters from which a text that a line holds twice is kept once."""

_MACHINE = ("<command-", "<local-command-", "<task-notification>", "<system-reminder>", "<bash-")
"""How text begins that the tool writes in the user's name."""


def reply(lines: Sequence[Record], parent: str | None, side: bool, billed: bool) -> list[Line | Damage]:
    """One API message of all its lines; `billed` says whether its usage is still to be counted."""
    last = lines[-1].line
    first = lines[0]
    blocks: list[Any] = []
    best: Any = None
    envelope: dict[str, Any] = {}
    for record in lines:
        envelope = record.value.pop("message")
        content = envelope.pop("content", None)
        if isinstance(content, list):
            blocks += content
        elif content is not None:
            blocks.append({"type": "text", "text": content})
        usage = envelope.get("usage")
        if isinstance(usage, dict) and (best is None or _output(usage) >= _output(best)):
            best = usage
    key = first.value["uuid"]
    meta: dict[str, Any] = {NAME: {"message": envelope, "lines": [record.value for record in lines]}}
    raw = first.raw if len(lines) == 1 else b"".join(record.raw for record in lines)
    at = seconds(first.value.get("timestamp"))
    if side:
        meta["transcript"] = {"origin": "subagent"}
    try:
        parts, unreadable = assistant_parts(blocks)
    except BadPayload as error:
        note = Note(f"{NAME}/unreadable", {"reason": str(error), "content": blocks, **meta[NAME]})
        return [Line(key, parent, note, raw, last, at, side), _shapeless(last)]
    usage = reported(anthropic_usage(best)) if billed else None
    line = Line(key, parent, Message("assistant", parts, usage, meta), raw, last, at, side)
    if unreadable:
        meta[NAME]["unreadable"] = unreadable
        return [line, _shapeless(last)]
    return [line]


def _shapeless(line: int) -> Damage:
    return Damage(line, "content of unknown shape: kept, but not shown", lost=False)


def _output(usage: Mapping[str, Any]) -> int:
    return count(usage.get("output_tokens"))


def said(record: Record, key: str, parent: str | None, side: bool) -> list[Line | Damage]:
    """The messages of a user line: its tool results, and what the user (or the tool in their name) wrote."""
    value = record.value
    envelope = value.pop("message")
    content = envelope.pop("content", None)
    if envelope != {"role": "user"}:
        value["message"] = envelope
    at = seconds(value.get("timestamp"))
    try:
        decoded, unreadable = user_messages(content)
    except BadPayload as error:
        note = Note(f"{NAME}/unreadable", {**value, "reason": str(error), "content": content})
        return [Line(key, parent, note, record.raw, record.line, at, side), _shapeless(record.line)]
    first = decoded[0]
    if first.role == "tool" and len(first.parts) == 1:
        _say_once(value, first.parts[0])
    lines: list[Line | Damage] = []
    for n, spoken in enumerate(decoded):
        name = f"{key}/{n}" if n else key
        meta = dict(spoken.meta)
        if n == 0:
            meta[NAME] = {"lines": [value]}
        if (origin := _origin(spoken, value, side)) != "human":
            meta["transcript"] = {"origin": origin}
        message = Message(spoken.role, spoken.parts, None, meta)
        lines.append(Line(name, parent, message, record.raw, record.line, at, side))
        parent = name
    if unreadable:
        value["unreadable"] = unreadable
        lines.append(_shapeless(record.line))
    return lines


def _say_once(value: dict[str, Any], result: Part) -> None:
    """Most lines hold a tool's output twice: fields that repeat the result's text are but named under `@text`."""
    beside = value.get("toolUseResult")
    if type(beside) is not dict or not isinstance(result, ToolResult) or len(result.content) != 1:
        return
    shown = result.content[0]
    if isinstance(shown, Text) and len(shown.text) > WORTH:
        same = [name for name, text in beside.items() if text == shown.text]
        if same:
            value["toolUseResult"] = {k: v for k, v in beside.items() if k not in same} | {"@text": same}


def _origin(message: Message, value: Mapping[str, Any], side: bool) -> str:
    """Who speaks: human, tool, summary, harness (text the tool adds in the user's name), or subagent."""
    if message.role == "tool":
        return "tool"
    if side:
        return "subagent"
    if value.get("isCompactSummary") is True:
        return "summary"
    first = message.parts[0] if message.parts else None
    if value.get("isMeta") is True or (isinstance(first, Text) and first.text.startswith(_MACHINE)):
        return "harness"
    return "human"


def holds_results(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content)
