"""Anthropic messages, both ways.

The payload is `{"system": …, "messages": […]}`. What encodes otherwise than it was built: the
leading system messages become `system`, later ones labelled user text; neighbours of one side are
joined, results first; empty messages and blank text blocks go; white space ends no last assistant
message; thinking of other providers and foreign blocks are left out; ids and names get valid
characters. Provider fields are kept under `meta["anthropic"]`; keys with `@` are Clew's own marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from clew.codecs.foreign import (
    IMAGE,
    UNSHOWN,
    CallIds,
    arguments_object,
    left_out,
    located,
    marked,
    on_the_web,
    own,
    plain,
    system_note,
    tool_name,
)
from clew.codecs.shape import (
    Json,
    Spot,
    a_list,
    an_object,
    copied,
    inner,
    json_text,
    objects,
    optional_string,
    rest,
    shallow,
    string,
    string_or_list,
)
from clew.codecs.turns import Shown, numbered, side, turns
from clew.codecs.usage import anthropic_usage
from clew.messages import FinishReason, Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage

CODEC = "anthropic"

_THINKING = ("thinking", "redacted_thinking")
_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


# --- decode -------------------------------------------------------------------------------------


def decode(payload: Any) -> list[Message]:
    """The messages of a payload, or of a bare list of messages. Raises `BadPayload` on anything malformed.

    Of a whole request body only `system` and `messages` are read.
    """
    data = {"messages": payload} if isinstance(payload, list) else an_object(payload, Spot())
    if "messages" not in data:
        (Spot() / "messages").fail("missing")
    found = [(at, m) for at, fields in objects(data["messages"], Spot() / "messages") for m in _split(fields, at)]
    return [*_system(data), *numbered(found, CODEC)]


def decode_reply(response: Any) -> tuple[Message, FinishReason, Usage]:
    """The reply in a response: message, why it ended, and tokens. Raises `BadPayload`."""
    data = shallow(an_object(response, Spot()), Spot())
    parts = tuple(_blocks(data.get("content"), "assistant", Spot() / "content"))
    reason = data.get("stop_reason")
    finish: FinishReason = _FINISH.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    usage = anthropic_usage(data.get("usage"))
    return Message("assistant", parts, usage), finish, usage


def _system(data: Json) -> list[Message]:
    if "system" not in data:
        return []
    at = Spot() / "system"
    shallow({"system": data["system"]}, at)
    parts, marks = _content(data["system"], "system", at)
    return [Message("system", parts, None, marked(CODEC, marks))]


def _split(data: Json, at: Spot) -> list[Message]:
    """The one or two messages that a provider message stands for: tool results, and what was said."""
    role = string(data, "role", at)
    if role not in ("user", "assistant", "system"):
        (at / "role").fail(f"unknown role {role!r}; known: user, assistant, system")
    if "content" not in data:
        (at / "content").fail("missing")
    parts, marks = _content(data["content"], role, at / "content")
    meta = marked(CODEC, rest(data, ("role", "content")) | marks)
    if role == "system":
        return [Message("system", parts, None, {CODEC: own(meta, CODEC) | {"@system": True}})]
    if role == "assistant":
        return [Message("assistant", parts, None, meta)]
    results = tuple(p for p in parts if isinstance(p, ToolResult))
    said = tuple(p for p in parts if not isinstance(p, ToolResult))
    out = [Message("tool", results)] if results else []
    if said or not results:
        out.append(Message("user", said))
    return [replace(out[0], meta=meta), *out[1:]]


def _content(content: Any, role: str, at: Spot) -> tuple[tuple[Part, ...], Json]:
    """The parts, and the mark that tells how they were written if not in the usual way."""
    if isinstance(content, str):
        return (Text(content),), {}
    parts = tuple(_blocks(content, role, at))
    return parts, {"@content": "list"} if not parts or (len(parts) == 1 and plain(parts[0])) else {}


def _blocks(content: Any, role: str, at: Spot) -> list[Part]:
    return [_block(an_object(b, at / i), role, at / i) for i, b in enumerate(a_list(content, at))]


def _block(data: Json, role: str, at: Spot) -> Part:
    kind = string(data, "type", at)
    if kind == "text":
        return Text(string(data, "text", at), marked(CODEC, rest(data, ("type", "text"))))
    if kind == "image" and role in ("user", "tool_result"):
        return _image(data, at)
    if kind == "tool_result" and role == "user":
        return _result(data, at)
    if kind == "tool_use" and role == "assistant":
        text = json_text(inner(data, "input", at), at / "input")
        fields = rest(data, ("type", "id", "name", "input"))
        return ToolCall(string(data, "id", at), string(data, "name", at), text, marked(CODEC, fields))
    if kind == "thinking" and role == "assistant":
        signature = optional_string(data, "signature", at)
        fields = rest(data, ("type", "thinking", "signature"))
        if not signature:  # made by an Anthropic-like model that signs nothing
            fields["@signature"] = "empty" if "signature" in data else "absent"
        return Thinking(string(data, "thinking", at), signature, marked(CODEC, fields))
    if kind == "redacted_thinking" and role == "assistant":
        fields = {"type": "redacted_thinking"} | rest(data, ("type", "data"))
        return Thinking("", string(data, "data", at), {CODEC: fields})
    if kind in ("tool_use", "tool_result", *_THINKING):
        (at / "type").fail(f"{kind} in the wrong place")
    return Opaque(CODEC, copied(data))


def _image(data: Json, at: Spot) -> Image | Opaque:
    source, here = inner(data, "source", at), at / "source"
    kind = string(source, "type", here)
    fields = rest(data, ("type", "source"))
    if kind == "base64":
        if more := rest(source, ("type", "media_type", "data")):
            fields["source"] = more
        body, media_type = string(source, "data", here), string(source, "media_type", here)
        return Image(data=body, media_type=media_type, meta=marked(CODEC, fields))
    if kind == "url":
        if more := rest(source, ("type", "url")):
            fields["source"] = more
        return Image(string(source, "url", here), meta=marked(CODEC, fields))
    return Opaque(CODEC, copied(data))


def _result(data: Json, at: Spot) -> ToolResult:
    call_id = string(data, "tool_use_id", at)
    is_error = data.get("is_error", False)
    if not isinstance(is_error, bool):
        (at / "is_error").fail("expected a boolean")
    fields = rest(data, ("type", "tool_use_id", "content") + (("is_error",) if is_error else ()))
    if "content" not in data:
        return ToolResult(call_id, (), is_error, meta=marked(CODEC, fields))
    parts, marks = _content(data["content"], "tool_result", at / "content")
    content = tuple(p for p in parts if isinstance(p, Text | Image | Opaque))
    return ToolResult(call_id, content, is_error, meta=marked(CODEC, fields | marks))


# --- encode -------------------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> Json:
    """The payload for the messages; `system` is there when the messages begin with a system message."""
    messages = list(messages)
    head = list(takewhile(lambda m: m.role == "system", messages))
    out: Json = {}
    ids = CallIds(strict=True)
    system = _encode_system(head, ids)
    if system is not None:
        out["system"] = system
    shown = [(m, _encode_message(m, ids)) for m in messages[len(head) :]]
    sided = _sided([(m, blocks) for m, blocks in shown if blocks or _directive(m)])
    out["messages"] = [_encode_turn(turn) for turn in turns(sided, CODEC)]
    _strip_end(out["messages"])
    return out


def _encode_system(head: list[Message], ids: CallIds) -> str | list[Json] | None:
    blocks = [b for m in head for b in _shown([_encode_part(p, "system", ids) for p in m.parts])]
    how = own(head[0].meta, CODEC).get("@content") if head else None
    if not blocks:
        return [] if how == "list" else "" if len(head) == 1 and head[0].parts == (Text(""),) else None
    return string_or_list(blocks, as_list=len(head) > 1 or how == "list")


def _encode_message(message: Message, ids: CallIds) -> list[Json]:
    """The blocks of a message; none when nothing in it can be shown."""
    if message.role == "assistant":
        ids.reply()
    role = message.role
    blocks = _shown([_encode_part(p, "user" if role == "tool" else role, ids) for p in message.parts])
    if role == "assistant":
        return _thinking_in_place(blocks)
    if not blocks and role == "user" and left_out(message.parts):
        return [{"type": "text", "text": UNSHOWN}]
    return blocks


def _thinking_in_place(blocks: list[Json]) -> list[Json]:
    """The API wants thinking, if there is any, at the beginning, and never at the end."""
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()
    if blocks and blocks[0]["type"] not in _THINKING:
        return [b for b in blocks if b["type"] not in _THINKING]
    return blocks


def _sided(messages: list[tuple[Message, list[Json]]]) -> Iterator[Shown[Json]]:
    """Says which side each message is written on.

    Models from Claude Opus 4.8 on take system messages in the conversation where a user message is
    before and an assistant message, or nothing, after. A system message decoded from such a place
    stays one while its place is like that; any other is labelled user text.
    """
    for i, (message, blocks) in enumerate(messages):
        if message.role == "system":
            before = i > 0 and (side(messages[i - 1][0]) == "user" or _ends_in_server_tool(messages[i - 1][1]))
            after = i + 1 == len(messages) or messages[i + 1][0].role == "assistant"
            if _directive(message) or (before and after and "@system" in own(message.meta, CODEC)):
                yield Shown("system", message, blocks)
            else:
                notes = [system_note(b["text"]) for b in blocks if b["type"] == "text"]
                yield Shown("user", replace(message, meta={}), [{"type": "text", "text": text} for text in notes])
        else:
            yield Shown(side(message), message, blocks)


def _directive(message: Message) -> bool:
    """A system message without text that sets `output_config` from its place on; the API takes it anywhere."""
    return not message.parts and "output_config" in own(message.meta, CODEC)


def _ends_in_server_tool(blocks: list[Json]) -> bool:
    kind: str = blocks[-1]["type"] if blocks else ""
    return kind == "server_tool_use" or kind.endswith("_tool_result")


def _encode_turn(turn: list[Shown[Json]]) -> Json:
    fields: Json = {}
    content: list[Json] = []
    for _, message, blocks in turn:
        fields |= own(message.meta, CODEC)
        # Thinking leads its message; of a reply joined to an earlier one it is left out.
        content += [b for b in blocks if b["type"] not in _THINKING] if content else blocks
    how = fields.pop("@content", "")
    for mark in ("@at", "@system"):
        fields.pop(mark, None)
    as_list = how == "list" or len(turn) > 1
    if as_list:
        content.sort(key=lambda b: b["type"] != "tool_result")
    return {"role": turn[0].side, "content": string_or_list(content, as_list=as_list), **fields}


def _shown(blocks: Iterable[Json | None]) -> list[Json]:
    """The blocks the API accepts: no empty text, and no white space alone unless another text has more."""
    found = [b for b in blocks if b is not None]
    texts = [bool(b["text"].strip()) for b in found if b["type"] == "text"]
    if all(texts):
        return found
    more = any(texts)
    return [b for b in found if b["type"] != "text" or (more and b["text"])]


def _encode_part(part: Part, where: str, ids: CallIds) -> Json | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **own(part.meta, CODEC)}
    if isinstance(part, Opaque):
        return dict(copied(part.data)) if part.codec == CODEC else None
    if isinstance(part, Image):
        return _encode_image(part) if where == "user" else {"type": "text", "text": IMAGE}
    if isinstance(part, Thinking):
        return _encode_thinking(part)
    if isinstance(part, ToolCall):
        return _encode_call(part, ids)
    return _encode_result(part, ids)


def _encode_image(image: Image) -> Json:
    fields = own(image.meta, CODEC)
    image = located(image)
    if image.data and image.media_type in _MEDIA_TYPES:
        source: Json = {"type": "base64", "media_type": image.media_type, "data": image.data}
    elif on_the_web(image.url):
        source = {"type": "url", "url": image.url}
    else:
        return {"type": "text", "text": IMAGE}
    return {"type": "image", "source": source | fields.pop("source", {}), **fields}


def _encode_thinking(part: Thinking) -> Json | None:
    if CODEC not in part.meta and (part.meta or not part.signature):
        return None  # unsigned, or signed by another provider
    fields = own(part.meta, CODEC)
    if fields.pop("type", "") == "redacted_thinking":
        return {"type": "redacted_thinking", "data": part.signature, **fields}
    unsigned = fields.pop("@signature", "")
    out = {"type": "thinking", "thinking": part.text, "signature": part.signature, **fields}
    if unsigned == "absent":
        del out["signature"]
    return out


def _encode_call(call: ToolCall, ids: CallIds) -> Json:
    out: Json = {"type": "tool_use", "id": ids.call(call), "name": tool_name(call.name)}
    return out | {"input": arguments_object(call.arguments)} | own(call.meta, CODEC)


def _encode_result(result: ToolResult, ids: CallIds) -> Json:
    fields = own(result.meta, CODEC)
    how = fields.pop("@content", "")
    out: Json = {"type": "tool_result", "tool_use_id": ids.result(result)[0]}
    if result.content or how == "list":
        if how != "list" and len(result.content) == 1 and isinstance(only := result.content[0], Text) and not only.meta:
            out["content"] = only.text
        else:
            # An error may hold text only.
            written = [_encode_part(p, "error" if result.is_error else "user", ids) for p in result.content]
            out["content"] = _shown(b for b in written if b and (b["type"] == "text" or not result.is_error))
    if result.is_error:
        out["is_error"] = True
    return out | fields


def _strip_end(messages: list[Json]) -> None:
    """The API refuses a last assistant message that ends with white space."""
    if not messages or messages[-1]["role"] != "assistant":
        return
    last = messages[-1]
    if isinstance(last["content"], str):
        last["content"] = last["content"].rstrip()
        return
    while last["content"] and last["content"][-1]["type"] == "text":
        block = last["content"][-1]
        block["text"] = block["text"].rstrip()
        if block["text"]:
            break
        last["content"].pop()
