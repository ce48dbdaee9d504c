"""Pi's own session log, read as Pi reads it: migration, entries, messages, and Pi's token estimate.

An entry is one JSON object of a session file (format version 3, see `docs/session-format.md` of the
package). `read` turns entries into the `PiEntry`s that the decisions of `pi_cut.py` are made on, so
those can be run on a Pi session as well as on a view of Clew's.

Not read: `context_edit` entries and the system messages of 1.6's compactions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from clew.messages import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, user
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.policies.harness.pi_summary import BRANCH_LEAD, COMPACTION_LEAD
from clew.tokens.javascript import stringify, units

Json = Mapping[str, Any]

VERSION = 3
"""The session format both versions write."""

IMAGE_CHARS = 4_800
"""An image counts as so many characters (1,200 tokens); in 0.73.1 none of the user's images does."""


def migrated(log: Sequence[Json], new_id: Callable[[], str]) -> list[dict[str, Any]]:
    """A log of format 1 or 2 as format 3, its header first; a log of format 3 or newer as it is.

    Format 1 has no ids and is linear: entries are chained in order, and an index that names the
    first kept entry (it counts lines, the header too) becomes its id, unless it names the header.
    Format 2 calls the role `custom` `hookMessage`.
    """
    header = next((e for e in log if e.get("type") == "session"), {})
    version = header.get("version") or 1
    lines = [dict(e) for e in log]
    if version < 2:
        _chain(lines, new_id)
    if version < VERSION:
        for line in lines:
            if line.get("type") == "session":
                line["version"] = VERSION
            elif line.get("type") == "message" and (line.get("message") or {}).get("role") == "hookMessage":
                line["message"] = {**line["message"], "role": "custom"}
    return lines


def _chain(lines: list[dict[str, Any]], new_id: Callable[[], str]) -> None:
    parent = None
    for line in lines:
        if line.get("type") == "session":
            continue
        line["id"], line["parentId"] = new_id(), parent
        parent = line["id"]
        index = line.pop("firstKeptEntryIndex", None) if line.get("type") == "compaction" else None
        if isinstance(index, int) and 0 <= index < len(lines) and lines[index].get("type") != "session":
            kept = lines[index].get("id")
            if kept is not None:
                line["firstKeptEntryId"] = kept


def read(log: Iterable[Json], version: Version) -> list[PiEntry]:
    """The entries of a log; its header is left out."""
    return [_entry(e, version) for e in log if e.get("type") != "session"]


def _entry(raw: Json, version: Version) -> PiEntry:
    shown = shown_message(raw)
    kind = raw.get("type")
    details = raw.get("details")
    summarises = kind in ("compaction", "branch_summary")
    return PiEntry(
        id=raw.get("id"),
        kind=kind if kind in ("message", "custom_message", "branch_summary", "compaction") else "metadata",
        role=str(shown.get("role") or "") if shown else "",
        message=for_model(shown) if shown else None,
        tokens=estimate(shown, version) if shown else 0,
        reported=reported(shown) if shown else None,
        parent=raw.get("parentId"),
        summary=raw.get("summary") or "" if summarises else "",
        first_kept=raw.get("firstKeptEntryId"),
        details=details if summarises and not raw.get("fromHook") and isinstance(details, Mapping) else {},
        source=raw,
    )


def read_messages(messages: Iterable[Json], version: Version) -> list[PiEntry]:
    """Bare messages as entries, numbered from 1."""
    return [_entry({"type": "message", "id": i, "message": m}, version) for i, m in enumerate(messages, 1)]


def shown_message(raw: Json) -> Json | None:
    """The message an entry shows; entries of other types have their own roles for it."""
    kind = raw.get("type")
    if kind == "message":
        message: Json | None = raw.get("message")
        return message
    if kind == "custom_message":
        return {"role": "custom", **{k: raw[k] for k in ("customType", "content", "display", "details") if k in raw}}
    if kind == "branch_summary":
        return {"role": "branchSummary", "summary": raw.get("summary"), "fromId": raw.get("fromId")}
    if kind == "compaction":
        return {
            "role": "compactionSummary",
            "summary": raw.get("summary"),
            "tokensBefore": raw.get("tokensBefore"),
        }
    return None


def settings(branch: Iterable[PiEntry]) -> tuple[str, Json | None]:
    """The thinking level and the model at the end of a branch: of the last change, or the last reply's model."""
    level: str = "off"
    model: Json | None = None
    for entry in branch:
        raw = entry.source
        if raw.get("type") == "thinking_level_change":
            level = raw.get("thinkingLevel")
        elif raw.get("type") == "model_change":
            model = {"provider": raw.get("provider"), "modelId": raw.get("modelId")}
        elif entry.kind == "message" and entry.role == "assistant":
            model = {"provider": raw["message"].get("provider"), "modelId": raw["message"].get("model")}
    return level, model


# Messages


def for_model(message: Json) -> Message | None:
    """A message as the model reads it; None for those it never sees."""
    match message.get("role"):
        case "user" | "custom":
            return Message("user", tuple(_content(message.get("content"))))
        case "assistant":
            return Message("assistant", tuple(_spoken(message.get("content"))))
        case "toolResult":
            content = tuple(_content(message.get("content")))
            result = ToolResult(
                str(message.get("toolCallId", "")),
                content,
                bool(message.get("isError")),
                str(message.get("toolName", "")),
            )
            return Message("tool", (result,))
        case "bashExecution":
            return None if message.get("excludeFromContext") else user(bash_text(message))
        case "branchSummary":
            return user(f"{BRANCH_LEAD}\n\n<summary>\n{message.get('summary') or ''}</summary>")
        case "compactionSummary":
            return user(f"{COMPACTION_LEAD}\n\n<summary>\n{message.get('summary') or ''}\n</summary>")
    return None


def bash_text(message: Json) -> str:
    """A command the user ran, as the model reads it: command, output, and how it ended."""
    output, code = message.get("output"), message.get("exitCode")
    text = f"Ran `{message.get('command', '')}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif code:
        text += f"\n\nCommand exited with code {code}"
    if message.get("truncated") and message.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {message['fullOutputPath']}]"
    return text


def _content(content: Any) -> Iterable[Text | Image]:
    if isinstance(content, str):
        yield Text(content)
        return
    for block in content or ():
        if block.get("type") == "text":
            yield Text(block.get("text") or "")
        elif block.get("type") == "image":
            yield Image(data=block.get("data") or "", media_type=block.get("mimeType") or "")


def _spoken(content: Any) -> Iterable[Part]:
    for block in content or ():
        match block.get("type"):
            case "text":
                yield Text(block.get("text") or "")
            case "thinking":
                yield Thinking(block.get("thinking") or "", block.get("thinkingSignature") or "")
            case "toolCall":
                call = json.dumps(block.get("arguments"), ensure_ascii=False)
                yield ToolCall(str(block.get("id", "")), str(block.get("name", "")), call)


# Sizes


def estimate(message: Json, version: Version) -> int:
    """Pi's estimate of a message: characters (UTF-16 units) over 4, rounded up.

    Chinese, Japanese and Korean come out 3 to 4 times too small (a defect of both versions).
    Commands count even when the model never sees them. Unknown roles count nothing.
    """
    match message.get("role"):
        case "user":
            chars = _chars(message.get("content"), images=version != "0.73.1")
        case "custom" | "toolResult":
            chars = _chars(message.get("content"), images=True)
        case "assistant":
            chars = sum(_block_chars(block) for block in message.get("content") or ())
        case "bashExecution":
            chars = _units(message.get("command")) + _units(message.get("output"))
        case "branchSummary" | "compactionSummary":
            chars = _units(message.get("summary"))
        case "system" if version != "0.73.1":
            chars = _chars(message.get("content"), images=True)
            chars += sum(_units(section) for section in (message.get("sections") or {}).values())
            chars += _units(stringify(message["toolsAdded"])) if message.get("toolsAdded") else 0
        case _:
            chars = 0
    return ceil(chars / 4)


def _chars(content: Any, *, images: bool) -> int:
    if isinstance(content, str):
        return _units(content)
    return sum(
        IMAGE_CHARS if images and block.get("type") == "image" else _units(block.get("text"))
        for block in content or ()
        if block.get("type") in ("text", "image")
    )


def _block_chars(block: Json) -> int:
    match block.get("type"):
        case "text":
            return _units(block.get("text"))
        case "thinking":
            return _units(block.get("thinking"))
        case "toolCall":
            return _units(block.get("name")) + _units(stringify(block.get("arguments")))
    return 0


def _units(text: Any) -> int:
    """UTF-16 units of a text; 0 when it is none."""
    return units(text) if isinstance(text, str) else 0


def reported(message: Json) -> int | None:
    """The context in tokens that a reply's usage gives; None for replies that failed or report none."""
    usage = message.get("usage")
    if message.get("role") != "assistant" or usage is None or message.get("stopReason") in ("aborted", "error"):
        return None
    total: int = usage.get("totalTokens") or sum(
        usage.get(k) or 0 for k in ("input", "output", "cacheRead", "cacheWrite")
    )
    return total
