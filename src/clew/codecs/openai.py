"""OpenAI chat completions messages, both ways.

What encodes otherwise than it was built: a tool message of several results becomes one message
each; images in tool results move to a user message after the round (tool messages take text only);
thinking and foreign blocks are left out; names get valid characters. Everything a payload holds
beside text, images and calls is kept under `meta["openai"]`; keys with `@` are Clew's own marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from clew.codecs.foreign import (
    IMAGE,
    UNSHOWN,
    CallIds,
    Unnumbered,
    inline,
    left_out,
    located,
    marked,
    own,
    plain,
    tool_name,
)
from clew.codecs.shape import (
    Json,
    Spot,
    a_list,
    an_object,
    copied,
    inner,
    json_object,
    json_text,
    objects,
    rest,
    shallow,
    string,
    string_or_list,
)
from clew.codecs.usage import openai_usage
from clew.messages import FinishReason, Image, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult, Usage

CODEC = "openai"

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}
_ANSWERS = ("refusal", "audio")
"""Fields of an assistant message that stand in place of content; kept as opaque parts `{field: value}`."""

_IMAGES_FOLLOW = "[image of tool result {}]"


# --- decode -------------------------------------------------------------------------------------


def decode(payload: Any) -> list[Message]:
    """The messages of a chat completions payload. Raises `BadPayload` on anything malformed."""
    ids = Unnumbered()
    return [_message(data, at, ids) for at, data in objects(payload, Spot())]


def decode_reply(response: Any) -> tuple[Message, FinishReason, Usage]:
    """The reply in a chat completions response: message, why it ended, and tokens. Raises `BadPayload`."""
    top = Spot()
    data = shallow(an_object(response, top), top)
    choices = a_list(data.get("choices"), top / "choices")
    if not choices:
        (top / "choices").fail("no choice")
    choice = an_object(choices[0], top / "choices" / 0)
    fields = inner(choice, "message", top / "choices" / 0)
    # Responses spell out what is absent (null, []); requests leave it out.
    fields = {k: v for k, v in fields.items() if v is not None and v != []}
    message = _message(fields, top / "choices" / 0 / "message", Unnumbered())
    reason = choice.get("finish_reason")
    finish: FinishReason = _FINISH.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    if fields.get("refusal"):
        finish = "refusal"
    elif message.calls and finish == "stop":
        finish = "tool_calls"
    usage = openai_usage(data.get("usage"))
    return replace(message, usage=usage), finish, usage


def _message(data: Json, at: Spot, ids: Unnumbered) -> Message:
    role = _ROLES.get(string(data, "role", at))
    if role is None:
        (at / "role").fail(f"unknown role {data['role']!r}; known: {', '.join(_ROLES)}")
    if data.get("name") is not None:
        string(data, "name", at)
    if role == "tool":
        return _result(data, at, ids)
    content, marks = _content(data, role, at)
    fields = rest(data, ("role", "content")) | marks
    if data["role"] == "developer":
        fields["role"] = "developer"
    parts = _assistant(content, fields, at, ids) if role == "assistant" else content
    return Message(role, parts, None, marked(CODEC, fields))


def _content(data: Json, role: Role, at: Spot) -> tuple[tuple[Text | Image | Opaque, ...], Json]:
    """The parts of `content`, and the mark that tells how it was written if not in the usual way."""
    if "content" not in data:
        if role != "assistant":
            (at / "content").fail("missing")
        return (), {"@content": "absent"}
    content, at = data["content"], at / "content"
    if content is None:
        if role not in ("assistant", "tool"):
            at.fail("null")
        return (), {"@content": "null"}
    if isinstance(content, str):
        return (Text(content),), {}
    parts = tuple(_part(p, role, at / i) for i, p in enumerate(a_list(content, at)))
    usual = parts and not (len(parts) == 1 and plain(parts[0]))
    return parts, {} if usual else {"@content": "list"}


def _part(value: Any, role: Role, at: Spot) -> Text | Image | Opaque:
    data = an_object(value, at)
    kind = string(data, "type", at)
    if kind == "text":
        return Text(string(data, "text", at), marked(CODEC, rest(data, ("type", "text"))))
    if kind == "image_url" and role in ("user", "tool"):
        source = inner(data, "image_url", at)
        url = string(source, "url", at / "image_url")
        fields = rest(data, ("type", "image_url"))
        if more := rest(source, ("url",)):
            fields["image_url"] = more
        if role == "tool":
            fields["@in_result"] = True
        found = inline(url)
        if found:
            return Image(data=found[1], media_type=found[0], meta=marked(CODEC, fields))
        return Image(url, meta=marked(CODEC, fields))
    return Opaque(CODEC, copied(data))


def _assistant(parts: tuple[Part, ...], fields: Json, at: Spot, ids: Unnumbered) -> tuple[Part, ...]:
    """The parts with reasoning, refusal, audio and calls, which are taken out of the fields."""
    reasoning = fields.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        del fields["reasoning_content"]
        parts = (Thinking(reasoning, meta={CODEC: {"type": "reasoning_content"}}), *parts)
    parts = (*parts, *(Opaque(CODEC, {key: fields.pop(key)}) for key in _ANSWERS if fields.get(key)))
    here = at / "tool_calls"
    if fields.get("tool_calls") is not None and (calls := a_list(fields["tool_calls"], here)):
        del fields["tool_calls"]
        parts = (*parts, *(_call(an_object(c, here / i), here / i) for i, c in enumerate(calls)))
    ids.reply()
    if fields.get("function_call") is not None:
        function = an_object(fields.pop("function_call"), at / "function_call")
        name = string(function, "name", at / "function_call")
        text = string(function, "arguments", at / "function_call")
        extra = {"type": "function_call", "function": rest(function, ("name", "arguments"))}
        parts = (*parts, ToolCall(ids.call(name), name, text, {CODEC: extra}))
    return parts


def _call(data: Json, at: Spot) -> ToolCall:
    call_id, kind = string(data, "id", at), string(data, "type", at)
    if kind not in ("function", "custom"):
        (at / "type").fail(f"unknown type {kind!r}")
    function, here = inner(data, kind, at), at / kind
    name = string(function, "name", here)
    fields = rest(data, ("id", "type", kind))
    text_key = "arguments" if kind == "function" else "input"
    text = string(function, text_key, here)
    if more := rest(function, ("name", text_key)):
        fields["function"] = more
    if kind == "custom":
        fields["type"] = "custom"
        text = json_text({"input": text}, here)
    return ToolCall(call_id, name, text, marked(CODEC, fields))


def _result(data: Json, at: Spot, ids: Unnumbered) -> Message:
    content, fields = _content(data, "tool", at)
    name = data.get("name") or ""
    if data["role"] == "function":
        call_id = ids.result(string(data, "name", at))
        fields |= {"role": "function"} | rest(data, ("role", "content", "name"))
    else:
        call_id = string(data, "tool_call_id", at)
        fields |= rest(data, ("role", "content", "tool_call_id") + (("name",) if name else ()))
        if name:
            fields["@name"] = True
    return Message("tool", (ToolResult(call_id, content, False, name, marked(CODEC, fields)),))


# --- encode -------------------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> list[Json]:
    """The chat completions payload for the messages."""
    out: list[Json] = []
    ids = CallIds(strict=False)
    images: list[Json] = []  # out of the tool results of this round
    for message in messages:
        if message.role == "tool":
            out.extend(_encode_result(r, ids, images) for r in message.results)
            continue
        if images:
            out.append({"role": "user", "content": images})
            images = []
        if message.role == "assistant":
            ids.reply()
        written = _encode_message(message, ids)
        if written is not None:
            out.append(written)
    if images:
        out.append({"role": "user", "content": images})
    return out


def _encode_message(message: Message, ids: CallIds) -> Json | None:
    fields = own(message.meta, CODEC)
    out: Json = {"role": fields.pop("role", message.role), "content": None}
    how = fields.pop("@content", "")
    out.update(fields)
    parts = [p for p in (_encode_part(p, message.role) for p in message.parts) if p is not None]
    if message.role == "assistant":
        out.update(answer for p in parts if "type" not in p for answer in p.items())
        parts = [p for p in parts if "type" in p]
        _encode_assistant(message, out, ids)
    if parts or how == "list":
        out["content"] = string_or_list(parts, as_list=how == "list")
    elif message.role == "assistant":
        if not any(out.get(key) for key in (*_ANSWERS, "tool_calls", "function_call")):
            return None
        if how == "absent":
            del out["content"]
    elif left_out(message.parts):
        out["content"] = UNSHOWN
    else:
        return None
    return out


def _encode_part(part: Part, role: Role) -> Json | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **own(part.meta, CODEC)}
    if isinstance(part, Opaque):
        return dict(copied(part.data)) if part.codec == CODEC else None
    if isinstance(part, Image):
        return _encode_image(part) if role == "user" else {"type": "text", "text": IMAGE}
    return None


def _encode_image(image: Image) -> Json:
    fields = own(image.meta, CODEC)
    fields.pop("@in_result", None)
    url = image.url
    if image.data:
        image = located(image)
        url = f"data:{image.media_type};base64,{image.data}"
    elif not url:
        return {"type": "text", "text": IMAGE}
    source = {"url": url, **fields.pop("image_url", {})}
    return {"type": "image_url", "image_url": source, **fields}


def _encode_assistant(message: Message, out: Json, ids: CallIds) -> None:
    thoughts = [p.text for p in message.parts if isinstance(p, Thinking) and CODEC in p.meta]
    if thoughts:
        out["reasoning_content"] = "\n".join(thoughts)
    calls = []
    for call in message.calls:
        fields = own(call.meta, CODEC)
        kind, more = fields.pop("type", "function"), fields.pop("function", {})
        name, text, call_id = tool_name(call.name), call.arguments, ids.call(call)
        if kind == "function_call":
            out["function_call"] = {"name": name, "arguments": text, **more}
            continue
        if kind == "custom":
            written = (json_object(text) or {}).get("input")
            body = {"name": name, "input": written if isinstance(written, str) else text, **more}
        else:
            body = {"name": name, "arguments": text, **more}
        calls.append({"id": call_id, "type": kind, kind: body, **fields})
    if calls:
        out["tool_calls"] = calls


def _encode_result(result: ToolResult, ids: CallIds, images: list[Json]) -> Json:
    fields = own(result.meta, CODEC)
    how, named = fields.pop("@content", ""), fields.pop("@name", False)
    call_id, call = ids.result(result)
    legacy = fields.pop("role", "") == "function"
    if call is not None:
        legacy = own(call.meta, CODEC).get("type") == "function_call"
    parts: list[Json] = []
    for part in result.content:
        if not isinstance(part, Image) or "@in_result" in own(part.meta, CODEC):
            written = _encode_part(part, "user")
            if written is not None:
                parts.append(written)
        else:
            images += [
                {"type": "text", "text": _IMAGES_FOLLOW.format(result.call_id)},
                _encode_image(part),
            ]
    if legacy:
        out: Json = {"role": "function", "name": tool_name(call.name if call else result.name)}
    else:
        out = {"role": "tool", "tool_call_id": call_id} | ({"name": result.name} if named else {})
    if parts or how == "list":
        out["content"] = string_or_list(parts, as_list=how == "list")
    else:
        out["content"] = None if how == "null" else ""
    return out | fields
