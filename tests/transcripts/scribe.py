"""Writes small transcripts line by line, for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew.messages import Message
from clew.sessions import Session
from clew.storage.store import Store

Json = dict[str, Any]


def jsonl(*lines: Json | str | bytes) -> bytes:
    """Lines of a file; dicts as JSON, text and bytes as they are."""
    out = []
    for line in lines:
        if isinstance(line, dict):
            line = json.dumps(line, ensure_ascii=False)
        out.append(line.encode() if isinstance(line, str) else line)
    return b"\n".join(out) + b"\n"


def written(folder: Path, *lines: Json | str | bytes, name: str = "t.jsonl") -> Path:
    """A file of these lines."""
    path = folder / name
    path.write_bytes(jsonl(*lines))
    return path


class Claude:
    """A Claude Code session being written: every line hangs below the one before unless told otherwise."""

    def __init__(self, *, side: bool = False) -> None:
        self.lines: list[Json | str | bytes] = []
        self.last: str | None = None
        self.side = side

    def line(self, kind: str, uuid: str, *, parent: str | None = "", **fields: Any) -> Json:
        line: Json = {
            "parentUuid": self.last if parent == "" else parent,
            "isSidechain": self.side,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-01-01T00:00:{len(self.lines) % 60:02}.000Z",
            "sessionId": "s",
            "version": "2.1.332",
            **fields,
        }
        self.lines.append(line)
        self.last = uuid
        return line

    def user(self, uuid: str, text: Any, **fields: Any) -> Json:
        return self.line("user", uuid, message={"role": "user", "content": text}, **fields)

    def result(self, uuid: str, call: str, text: Any = "done", **fields: Any) -> Json:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.user(uuid, [block], toolUseResult={"stdout": "done"}, **fields)

    def block(self, uuid: str, id: str, block: Json, output: int = 7, **fields: Any) -> Json:
        message = {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [block],
            "stop_reason": None,
            "usage": {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 100},
        }
        return self.line("assistant", uuid, message=message, **fields)

    def text(self, uuid: str, id: str, text: str, **fields: Any) -> Json:
        return self.block(uuid, id, {"type": "text", "text": text}, **fields)

    def call(self, uuid: str, id: str, call: str, **fields: Any) -> Json:
        return self.block(
            uuid, id, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}, **fields
        )

    def compact(self, uuid: str, summary: str, *, kept: list[str] | None = None, **facts: Any) -> None:
        """A boundary and its summary."""
        before = self.last
        facts = {"trigger": "auto", "preTokens": 1000, "postTokens": 100, **facts}
        if kept is not None:
            facts["preservedMessages"] = {"anchorUuid": f"{uuid}-summary", "uuids": kept, "allUuids": kept}
        self.line(
            "system",
            uuid,
            parent=None,
            subtype="compact_boundary",
            logicalParentUuid=before,
            content="Conversation compacted",
            compactMetadata=facts,
        )
        self.user(f"{uuid}-summary", summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def data(self) -> bytes:
        return jsonl(*self.lines)


class Pi:
    """A Pi session being written, as a tree (version 3) or in the oldest, linear layout."""

    def __init__(self, *, linear: bool = False) -> None:
        self.linear = linear
        self.last: str | None = None
        header: Json = {"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
        self.lines: list[Json | str | bytes] = [header if linear else {**header, "version": 3}]

    def entry(self, kind: str, id: str = "", *, parent: str | None = "", **fields: Any) -> Json:
        line: Json = {"type": kind, "timestamp": f"2026-01-01T00:00:{len(self.lines) % 60:02}.000Z", **fields}
        if not self.linear:
            line |= {"id": id, "parentId": self.last if parent == "" else parent}
            self.last = id
        self.lines.append(line)
        return line

    def message(self, id: str, role: str, content: Any, *, parent: str | None = "", **fields: Any) -> Json:
        return self.entry("message", id, parent=parent, message={"role": role, "content": content, **fields})

    def user(self, id: str, text: str, **fields: Any) -> Json:
        return self.message(id, "user", [{"type": "text", "text": text}], **fields)

    def assistant(self, id: str, *blocks: Json, stop: str = "stop", **fields: Any) -> Json:
        usage = {"input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 1, "totalTokens": 116}
        fields = {"api": "anthropic-messages", "usage": usage if blocks else {}, "stopReason": stop, **fields}
        return self.message(id, "assistant", list(blocks), **fields)

    def failed(self, id: str, **fields: Any) -> Json:
        return self.assistant(id, stop="error", errorMessage="429", **fields)

    def data(self) -> bytes:
        return jsonl(*self.lines)


def say(text: str) -> Json:
    return {"type": "text", "text": text}


def pi_call(id: str, name: str = "bash", **arguments: Any) -> Json:
    return {"type": "toolCall", "id": id, "name": name, "arguments": arguments}


class Letters(Struct, frozen=True):
    """Counts four characters a token: quick, and enough where tokens do not matter."""

    name: str = "letters"

    def text(self, text: str) -> int:
        return len(text) // 4

    def message(self, message: Message) -> int:
        shown = [message.text, *(c.arguments for c in message.calls), *(r.text for r in message.results)]
        return 4 + sum(map(len, shown)) // 4

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return 0


def session(store: str | Path | Store = "memory://", id: str | None = None) -> Session:
    """A session without a policy."""
    return Session.open(store, id, counter=Letters())
