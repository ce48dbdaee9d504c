"""OpenAI Responses input items, both ways.

A reply of the model is several items here (reasoning, message, calls) and one assistant message in
Clew: neighbouring items of the assistant become one message. Items Clew does not interpret (web
search, MCP, computer use, …) stay as opaque parts of it. What encodes otherwise than it was built:
neighbouring assistant messages and the results of one tool message lose the borders between them;
thinking and foreign blocks of other providers are left out; names get valid characters. Item fields
are kept under `meta["responses"]`; keys with `@` are Clew's own marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.codecs.foreign import IMAGE, UNSHOWN, CallIds, inline, left_out, located, marked, own, plain, tool_name
from clew.codecs.shape import (
    Json,
    Spot,
    a_list,
    an_object,
    copied,
    json_object,
    json_text,
    objects,
    rest,
    string,
    string_or_list,
)
from clew.codecs.usage import openai_usage
from clew.messages import FinishReason, Image, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult, Usage

CODEC = "responses"

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "text")
_INSIDE = ("input_file", "input_audio", "input_video", "refusal")
"""Types of opaque parts that stand inside a message; other opaque parts are items of their own."""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refusal"}


# --- decode -------------------------------------------------------------------------------------


def decode(payload: Any) -> list[Message]:
    """The messages of a list of input items. Raises `BadPayload` on anything malformed."""
    out: list[Message] = []
    reply: list[Part] = []
    layout: list[Json] = []

    def close() -> None:
        if layout:
            out.append(Message("assistant", tuple(reply), None, _layout(reply, layout)))
            reply.clear()
            layout.clear()

    for at, data in objects(payload, Spot()):
        kind = _type(data, at)
        if kind in _OUTPUTS:
            close()
            out.append(Message("tool", (_output(data, kind, at),)))
        elif kind == "message":
            role = _ROLES.get(string(data, "role", at))
            if role is None:
                (at / "role").fail(f"unknown role {data['role']!r}; known: {', '.join(_ROLES)}")
            parts, fields = _message(data, role, at)
            if role == "assistant":
                reply += parts
                layout.append(fields | {"@parts": len(parts)})
                continue
            close()
            out.append(Message(role, parts, None, marked(CODEC, fields)))
        else:
            reply.append(_item(data, kind, at))
            layout.append({})
    close()
    return out


def decode_reply(response: Any) -> tuple[Message, FinishReason, Usage]:
    """The reply in a response: message, why it ended, and tokens. Raises `BadPayload`."""
    data = an_object(response, Spot())
    found = decode(data.get("output"))
    if any(m.role != "assistant" for m in found):
        (Spot() / "output").fail("holds items that are not the model's")
    parts = found[0].parts if found else ()
    usage = openai_usage(data.get("usage"))
    reply = Message("assistant", parts, usage, found[0].meta if found else {})
    return reply, _finish(data, reply), usage


def _finish(data: Json, reply: Message) -> FinishReason:
    if any(isinstance(p, Opaque) and p.data.get("type") == "refusal" for p in reply.parts):
        return "refusal"
    status, details = data.get("status"), data.get("incomplete_details")
    if status == "completed":
        return "tool_calls" if reply.calls else "stop"
    if status == "incomplete" and isinstance(details, dict):
        return _INCOMPLETE.get(str(details.get("reason")), "unknown")
    return "error" if status in ("failed", "cancelled") else "unknown"


def _type(data: Json, at: Spot) -> str:
    if "type" in data:
        return string(data, "type", at)
    if "role" not in data:
        (at / "type").fail("missing")
    return "message"


def _layout(parts: list[Part], layout: list[Json]) -> dict[str, Any]:
    """How the parts are divided into items, kept only when that is not plain from the parts."""
    return {} if list(_divided(parts)) == layout else {CODEC: {"@items": list(layout)}}


def _divided(parts: Iterable[Part]) -> Iterator[Json]:
    """The usual division: neighbouring texts, images and inside blocks are one message."""
    inside = 0
    for part in parts:
        if _is_inside(part):
            inside += 1
            continue
        if inside:
            yield {"@parts": inside}
            inside = 0
        yield {}
    if inside:
        yield {"@parts": inside}


def _is_inside(part: Part) -> bool:
    if isinstance(part, Opaque):
        return part.codec == CODEC and part.data.get("type") in _INSIDE
    return isinstance(part, Text | Image)


def _message(data: Json, role: Role, at: Spot) -> tuple[tuple[Part, ...], Json]:
    """The parts of a message item, and its other fields."""
    if "content" not in data:
        (at / "content").fail("missing")
    fields = rest(data, ("role", "content"))
    if data["role"] == "developer":
        fields["role"] = "developer"
    parts, marks = _content(data["content"], role, at / "content")
    return parts, fields | marks


def _content(content: Any, role: Role, at: Spot) -> tuple[tuple[Text | Image | Opaque, ...], Json]:
    if isinstance(content, str):
        return (Text(content),), {}
    parts = tuple(_part(an_object(p, at / i), role, at / i) for i, p in enumerate(a_list(content, at)))
    usual = parts and not (len(parts) == 1 and plain(parts[0]))
    return parts, {} if usual else {"@content": "list"}


def _part(data: Json, role: Role, at: Spot) -> Text | Image | Opaque:
    kind = string(data, "type", at)
    if kind in _TEXTS:
        known = ("text", "type") if kind == _text_type(role) else ("text",)
        return Text(string(data, "text", at), marked(CODEC, rest(data, known)))
    if kind == "input_image" and role in ("user", "tool") and isinstance(url := data.get("image_url"), str):
        fields = rest(data, ("type", "image_url"))
        found = inline(url)
        if found:
            return Image(data=found[1], media_type=found[0], meta=marked(CODEC, fields))
        return Image(url, meta=marked(CODEC, fields))
    return Opaque(CODEC, copied(data))


def _text_type(role: Role) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _item(data: Json, kind: str, at: Spot) -> Part:
    if kind in _CALLS:
        key = _CALLS[kind]
        text = string(data, key, at)
        fields = rest(data, ("type", "call_id", "name", key))
        if kind == "custom_tool_call":
            fields["type"], text = kind, json_text({"input": text}, at)
        return ToolCall(string(data, "call_id", at), string(data, "name", at), text, marked(CODEC, fields))
    if kind == "reasoning":
        return _reasoning(data, at)
    return Opaque(CODEC, copied(data))


def _reasoning(data: Json, at: Spot) -> Thinking:
    texts = []
    for key in ("summary", "content"):
        if data.get(key) is None:
            continue
        for i, p in enumerate(a_list(data[key], at / key)):
            spot = at / key / i
            texts.append(string(an_object(p, spot), "text", spot))
    sealed = data.get("encrypted_content")
    if sealed is not None and not isinstance(sealed, str):
        (at / "encrypted_content").fail("expected a string")
    return Thinking("\n\n".join(texts), sealed or "", {CODEC: rest(data, ("encrypted_content",) if sealed else ())})


def _output(data: Json, kind: str, at: Spot) -> ToolResult:
    if "output" not in data:
        (at / "output").fail("missing")
    content, marks = _content(data["output"], "tool", at / "output")
    fields = rest(data, ("type", "call_id", "output")) | marks
    if kind == "custom_tool_call_output":
        fields["type"] = kind
    return ToolResult(string(data, "call_id", at), content, meta=marked(CODEC, fields))


# --- encode -------------------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> list[Json]:
    """The input items for the messages."""
    out: list[Json] = []
    ids = CallIds(strict=False)
    for message in messages:
        if message.role == "tool":
            out.extend(_encode_output(r, ids) for r in message.results)
        elif message.role == "assistant":
            ids.reply()
            out.extend(_encode_reply(message, ids))
        else:
            written = _encode_message(message.parts, message.role, own(message.meta, CODEC))
            if written is not None:
                out.append(written)
    return out


def _encode_reply(message: Message, ids: CallIds) -> Iterator[Json]:
    parts = list(message.parts)
    at = 0
    for fields in _items(message):
        if "@parts" in fields:
            n = fields.pop("@parts")
            written = _encode_message(tuple(parts[at : at + n]), "assistant", fields)
        else:
            n, written = 1, _encode_item(parts[at], ids)
        at += n
        if written is not None:
            yield written


def _items(message: Message) -> list[Json]:
    """The kept division into items if it still fits the parts, else the usual one."""
    usual = list(_divided(message.parts))
    kept = own(message.meta, CODEC).get("@items")
    if not isinstance(kept, list):
        return usual
    alone: list[bool] = []
    for fields in kept:
        alone += [False] * fields["@parts"] if "@parts" in fields else [True]
    fits = len(alone) == len(message.parts) and all(
        isinstance(p, Opaque) or _is_inside(p) is not a for p, a in zip(message.parts, alone, strict=True)
    )
    return kept if fits else usual


def _encode_message(parts: tuple[Part, ...], role: Role, fields: Json) -> Json | None:
    how = fields.pop("@content", "")
    content = [c for c in (_encode_part(p, role) for p in parts) if c is not None]
    if not content and how != "list":
        if role == "assistant" or not left_out(parts):
            return None
        return {"role": role, "content": UNSHOWN}
    return {"role": role, "content": string_or_list(content, as_list=how == "list", kind=_text_type(role)), **fields}


def _encode_part(part: Part, role: Role) -> Json | None:
    if isinstance(part, Text):
        return {"type": _text_type(role), "text": part.text, **own(part.meta, CODEC)}
    if isinstance(part, Opaque):
        return dict(copied(part.data)) if part.codec == CODEC else None
    if not isinstance(part, Image):
        return None
    fields, url = own(part.meta, CODEC), part.url
    if part.data:
        url = f"data:{located(part).media_type};base64,{part.data}"
    if not url or role not in ("user", "tool"):
        return {"type": _text_type(role), "text": IMAGE}
    return {"type": "input_image", "image_url": url, **fields}


def _encode_item(part: Part, ids: CallIds) -> Json | None:
    if isinstance(part, ToolCall):
        return _encode_call(part, ids)
    if isinstance(part, Thinking):
        if CODEC not in part.meta:
            return None
        sealed = {"encrypted_content": part.signature} if part.signature else {}
        return own(part.meta, CODEC) | sealed
    return dict(copied(part.data)) if isinstance(part, Opaque) and part.codec == CODEC else None


def _encode_call(call: ToolCall, ids: CallIds) -> Json:
    fields = own(call.meta, CODEC)
    kind = fields.pop("type", "function_call")
    text = call.arguments
    if kind == "custom_tool_call":
        written = (json_object(text) or {}).get("input")
        text = written if isinstance(written, str) else text
    name = tool_name(call.name)
    return {"type": kind, "call_id": ids.call(call), "name": name, _CALLS[kind]: text, **fields}


def _encode_output(result: ToolResult, ids: CallIds) -> Json:
    fields = own(result.meta, CODEC)
    how, kind = fields.pop("@content", ""), fields.pop("type", "function_call_output")
    call_id, call = ids.result(result)
    if call is not None:  # a result is of the kind of its call
        custom = own(call.meta, CODEC).get("type") == "custom_tool_call"
        kind = "custom_tool_call_output" if custom else "function_call_output"
    content = [c for c in (_encode_part(p, "tool") for p in result.content) if c is not None]
    output = string_or_list(content, as_list=how == "list", kind=_text_type("tool")) if content or how == "list" else ""
    return {"type": kind, "call_id": call_id, "output": output, **fields}
