"""Messages as Pi writes them: its roles and blocks, turned into Clew's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clew.errors import ClewError
from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage, user
from clew.transcripts.figures import count, mapping, reported

NAME = "pi"

_json = msgspec.json.Encoder()


class Unreadable(ClewError):
    """A message has not the shape its role asks for."""


def message_of(entry: Mapping[str, Any]) -> Message | None:
    """The message an entry holds; None when the model never saw it or the role is unknown."""
    value = entry.get("message")
    if not isinstance(value, dict):
        raise Unreadable("a message entry without a message")
    role = value.get("role")
    if role == "user":
        return Message("user", _blocks(value.get("content")), meta=_meta(entry, value))
    if role == "assistant":
        parts = _blocks(value.get("content"), signed=value.get("api") == "anthropic-messages")
        return Message("assistant", parts, usage_of(value.get("usage")), _meta(entry, value))
    if role == "toolResult":
        return _result(entry, value)
    if role == "system":
        return Message("system", _system(value), meta=_meta(entry, value))
    if role == "bashExecution":
        return None if value.get("excludeFromContext") else _shell(entry, value)
    if role in ("custom", "hookMessage"):
        return Message("user", _blocks(value.get("content")), meta=_meta(entry, value, "harness"))
    if role in ("branchSummary", "compactionSummary"):
        return summary_of(value)
    return None


def summary_of(value: Mapping[str, Any]) -> Message:
    """A summary as a user message, between `<summary>` tags as Pi shows it."""
    text = f"Summary of what came before:\n\n<summary>\n{value.get('summary')}\n</summary>"
    return Message("user", (Text(text),), meta={"transcript": {"origin": "summary"}})


def usage_of(usage: Any) -> Usage | None:
    """Usage of one call in Pi's words; None when there is none or all is zero."""
    facts = mapping(usage)
    used = Usage(
        input=count(facts.get("input")),
        output=count(facts.get("output")),
        cache_read=count(facts.get("cacheRead")),
        cache_write=count(facts.get("cacheWrite")),
        reasoning=count(facts.get("reasoning")),
    )
    return reported(used)


def _blocks(content: Any, signed: bool = False) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list):
        raise Unreadable(f"content is a {type(content).__name__}")
    return tuple(_block(block, signed) for block in content)


def _block(block: Any, signed: bool) -> Part:
    """One content block. A thinking signature counts as one only where Anthropic's API gave it."""
    if not isinstance(block, dict):
        raise Unreadable(f"a content block is a {type(block).__name__}")
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"], _rest(block, "type", "text"))
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        signature = block.get("thinkingSignature")
        if signed and isinstance(signature, str):
            return Thinking(block["thinking"], signature, _rest(block, "type", "thinking", "thinkingSignature"))
        return Thinking(block["thinking"], meta=_rest(block, "type", "thinking"))
    if kind == "toolCall" and isinstance(block.get("id"), str) and isinstance(block.get("name"), str):
        arguments = _json.encode(block.get("arguments", {})).decode()
        return ToolCall(block["id"], block["name"], arguments, _rest(block, "type", "id", "name", "arguments"))
    if kind == "image" and isinstance(block.get("data"), str):
        media = block.get("mimeType")
        media = media if isinstance(media, str) else ""
        return Image(data=block["data"], media_type=media, meta=_rest(block, "type", "data", "mimeType"))
    return Opaque(NAME, block)


def _result(entry: Mapping[str, Any], value: Mapping[str, Any]) -> Message:
    call = value.get("toolCallId")
    if not isinstance(call, str):
        raise Unreadable("a tool result without toolCallId")
    name = value.get("toolName")
    content = tuple(p for p in _blocks(value.get("content")) if isinstance(p, Text | Image | Opaque))
    result = ToolResult(call, content, value.get("isError") is True, name if isinstance(name, str) else "")
    return Message("tool", (result,), meta=_meta(entry, value, "tool"))


def _system(value: Mapping[str, Any]) -> tuple[Part, ...]:
    sections = mapping(value.get("sections")).values()
    return (*_blocks(value.get("content") or None), *(Text(s) for s in sections if isinstance(s, str)))


def _shell(entry: Mapping[str, Any], value: Mapping[str, Any]) -> Message:
    """A command the user ran beside the conversation, as the model is told of it."""
    output = value.get("output")
    lines = [f"I ran `{value.get('command')}`."]
    lines.append(f"```\n{output}\n```" if isinstance(output, str) and output.strip() else "(no output)")
    code = value.get("exitCode")
    if value.get("cancelled"):
        lines.append("(cancelled)")
    elif code:
        lines.append(f"(exit code {code})")
    if value.get("truncated"):
        lines.append(f"(output cut; all of it: {value.get('fullOutputPath')})")
    return Message("user", user("\n".join(lines)).parts, meta=_meta(entry, value, "harness"))


def _meta(entry: Mapping[str, Any], value: Mapping[str, Any], origin: str = "") -> dict[str, Any]:
    """The fields that have no place in a message, kept as they are."""
    fields = {k: v for k, v in entry.items() if k not in ("type", "message", "timestamp")}
    fields["message"] = {k: v for k, v in value.items() if k not in ("role", "content")}
    meta: dict[str, Any] = {NAME: fields}
    if origin:
        meta["transcript"] = {"origin": origin}
    return meta


def _rest(block: Mapping[str, Any], *known: str) -> dict[str, Any]:
    rest = {k: v for k, v in block.items() if k not in known}
    return {NAME: rest} if rest else {}
