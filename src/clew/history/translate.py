"""History messages as entries of a log, and items of a view as history messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from clew.codecs import openai
from clew.errors import BadPayload
from clew.history.messages import HistoryMessage
from clew.messages import Message, Part, Role, Text, ToolCall, ToolResult
from clew.policies.harness.qitos import META
from clew.sessions.edits import unpack
from clew.sessions.view import Item

_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def logged(message: HistoryMessage, waiting: set[str]) -> Message:
    """The message as it is logged, its role, step and metadata kept under `META`. `waiting`: calls without a result.

    A tool message that answers one of them becomes its result; any other message of a role that providers do not
    know on its own is shown to the model as the user's.
    """
    meta = {META: {"role": message.role, "step": message.step_id, "metadata": message.metadata}}
    call_id = str(message.metadata.get("tool_call_id") or "")
    if message.role == "tool" and call_id in waiting:
        return Message("tool", (ToolResult(call_id, (Text(message.text),)),), meta=meta)
    role = _ROLES.get(message.role, "user")
    parts = _content(role, message.content)
    if role == "assistant":
        parts = (*parts, *calls_of(message.metadata))
    return Message(role, parts, meta=meta)


def calls_of(metadata: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls the metadata tells of: ids alone, or calls in OpenAI's form."""
    return tuple(_call(value) for value in metadata.get("tool_calls") or ())


def _call(value: Any) -> ToolCall:
    if not isinstance(value, Mapping):
        return ToolCall(str(value), "tool")
    function = value.get("function") or {}
    return ToolCall(str(value.get("id", "")), str(function.get("name", "tool")), str(function.get("arguments", "{}")))


def _content(role: Role, content: Any) -> tuple[Part, ...]:
    """A content as parts: text, or a list in OpenAI's form; anything else as its text."""
    if isinstance(content, list):
        try:
            return openai.decode([{"role": role, "content": content}])[0].parts
        except BadPayload:
            pass
    return (Text(str(content or "")),)


def role_of(item: Item) -> str:
    """The role a history gives an item."""
    return str(item.message.meta.get(META, {}).get("role", item.message.role))


def shown(item: Item, step: int, source: str) -> Iterator[HistoryMessage]:
    """An item of a view as history messages, one for each result. `source` names the maker of a summary."""
    message = item.message
    metadata = dict(message.meta.get(META, {}).get("metadata", {}))
    if item.kind == "summary":
        mark = {"summary": True, "source": source, "summarized_message_count": sum(1 for _ in unpack(item.ids))}
        yield HistoryMessage(message.role, message.text, step, {**mark, "summarized_through_step": step})
        return
    if item.kind in ("mask", "shrink"):
        metadata |= {"compacted": True, "compaction_mode": "micro"}
    elif item.kind == "mend":
        metadata["mend"] = True
    if message.role == "tool":
        for result in message.results:
            yield HistoryMessage("tool", result.text, step, {**metadata, "tool_call_id": result.call_id})
        return
    if message.role == "assistant" and metadata.get("tool_calls"):
        left = {call.id for call in message.calls}
        metadata["tool_calls"] = [v for v in metadata["tool_calls"] if _call(v).id in left]
    yield HistoryMessage(role_of(item), _back(message), step, metadata)


def _back(message: Message) -> Any:
    """The content as it was given: text, or a list in OpenAI's form when there is more than text."""
    parts = tuple(p for p in message.parts if not isinstance(p, ToolCall))
    if all(isinstance(p, Text) for p in parts):
        return message.text
    return openai.encode([Message(message.role, parts)])[0]["content"]


def whole(items: Sequence[Item]) -> list[Item]:
    """The items with calls and results in pairs: what lost its other half to a filter goes."""
    made = {call.id for item in items for call in item.message.calls}
    answered = {result.call_id for item in items for result in item.message.results}
    out: list[Item] = []
    for item in items:
        parts = tuple(p for p in item.message.parts if _paired(p, made, answered))
        if len(parts) != len(item.message.parts):
            item = replace(item, message=replace(item.message, parts=parts))
        if not item.message.blank:
            out.append(item)
    return out


def _paired(part: Part, made: set[str], answered: set[str]) -> bool:
    if isinstance(part, ToolCall):
        return part.id in answered
    return not isinstance(part, ToolResult) or part.call_id in made
