"""Gemini contents, both ways.

The payload is `{"systemInstruction": …, "contents": […]}` with the REST names (camelCase). What
encodes otherwise than it was built: the leading system messages become `systemInstruction`, later
ones labelled user text; neighbours of one side are joined, results first; empty messages and texts
go; thinking of other providers and foreign blocks are left out. Calls without an id get one made of
name and number, which is not written back. Provider fields are kept under `meta["gemini"]`; keys
with `@` are Clew's own marks.

Gemini 3 wants a `thoughtSignature` with the calls of the running turn; calls that another provider
made have none, and whoever sends them adds the placeholder the API documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from clew.codecs.foreign import (
    IMAGE,
    UNSHOWN,
    CallIds,
    Unnumbered,
    arguments_object,
    left_out,
    located,
    marked,
    on_the_web,
    own,
    system_note,
    tool_name,
)
from clew.codecs.shape import (
    Json,
    Spot,
    a_list,
    a_string,
    an_object,
    copied,
    inner,
    json_object,
    json_text,
    objects,
    optional_string,
    rest,
    shallow,
    string,
)
from clew.codecs.turns import Shown, numbered, turns
from clew.codecs.usage import gemini_usage
from clew.messages import FinishReason, Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage

CODEC = "gemini"

_KINDS = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
)
_SNAKE = ("system_instruction", "function_call", "function_response", "inline_data", "file_data")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_USER_ROLES = ("user", "function", "tool")
_FINISH: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "IMAGE_SAFETY": "refusal",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
}


# --- decode -------------------------------------------------------------------------------------


def decode(payload: Any) -> list[Message]:
    """The messages of a payload, or of a bare list of contents. Raises `BadPayload` on anything malformed.

    Of a whole request body only `systemInstruction` and `contents` are read.
    """
    data = {"contents": payload} if isinstance(payload, list) else an_object(payload, Spot())
    _refuse_snake_case(data, Spot())
    if "contents" not in data:
        (Spot() / "contents").fail("missing")
    ids = Unnumbered()
    found = [(at, m) for at, fields in objects(data["contents"], Spot() / "contents") for m in _split(fields, at, ids)]
    return [*_system(data), *numbered(found, CODEC)]


def decode_reply(response: Any) -> tuple[Message, FinishReason, Usage]:
    """The reply in a response: message, why it ended, and tokens. Raises `BadPayload`.

    Of several candidates the first counts. A prompt that was blocked has none: a refusal without parts.
    """
    top = Spot()
    data = shallow(an_object(response, top), top)
    usage = gemini_usage(data.get("usageMetadata"))
    candidates = a_list(data.get("candidates", []), top / "candidates")
    if not candidates:
        if not isinstance(data.get("promptFeedback"), dict):
            (top / "candidates").fail("no candidate")
        return Message("assistant", (), usage), "refusal", usage
    at = top / "candidates" / 0
    candidate = an_object(candidates[0], at)
    content = an_object(candidate.get("content", {}), at / "content")
    # A reply that ended while the model was thinking has no parts.
    found = _split({"parts": [], **content, "role": "model"}, at / "content", Unnumbered())[0]
    reply = replace(found, usage=usage)
    finish = _FINISH.get(str(candidate.get("finishReason")), "unknown")
    return reply, "tool_calls" if reply.calls and finish == "stop" else finish, usage


def _refuse_snake_case(data: Json, at: Spot) -> None:
    for key in _SNAKE:
        if key in data:
            (at / key).fail("Python SDK name; give the REST form (camelCase)")


def _system(data: Json) -> list[Message]:
    if "systemInstruction" not in data:
        return []
    at = Spot() / "systemInstruction"
    instruction = shallow(an_object(data["systemInstruction"], at), at)
    parts = _parts(instruction, "system", at, Unnumbered())
    return [Message("system", parts, None, marked(CODEC, rest(instruction, ("parts",))))]


def _split(data: Json, at: Spot, ids: Unnumbered) -> list[Message]:
    """The one or two messages that a content stands for: function responses, and what was said."""
    role = optional_string(data, "role", at)
    if role == "model":
        ids.reply()
        parts = _parts(data, "assistant", at, ids)
        return [Message("assistant", parts, None, marked(CODEC, rest(data, ("role", "parts"))))]
    if "role" in data and role not in _USER_ROLES:
        (at / "role").fail(f"unknown role {role!r}; known: model, {', '.join(_USER_ROLES)}")
    fields = rest(data, ("role", "parts"))
    if role != "user":
        fields["@role"] = role
    parts = _parts(data, "user", at, ids)
    results = tuple(p for p in parts if isinstance(p, ToolResult))
    said = tuple(p for p in parts if not isinstance(p, ToolResult))
    if not results:
        return [Message("user", said, None, marked(CODEC, fields))]
    if not said:
        return [Message("tool", results, None, marked(CODEC, fields))]
    places = [i for i, p in enumerate(parts) if not isinstance(p, ToolResult)]
    marks = {"@places": places} if places[0] < len(results) else {}
    return [Message("tool", results, None, marked(CODEC, fields)), Message("user", said, None, marked(CODEC, marks))]


def _parts(data: Json, role: str, at: Spot, ids: Unnumbered) -> tuple[Part, ...]:
    if "parts" not in data:
        (at / "parts").fail("missing")
    at = at / "parts"
    return tuple(_part(an_object(p, at / i), role, at / i, ids) for i, p in enumerate(a_list(data["parts"], at)))


def _part(data: Json, role: str, at: Spot, ids: Unnumbered) -> Part:
    _refuse_snake_case(data, at)
    kinds = [k for k in _KINDS if k in data]
    if len(kinds) > 1:
        at.fail(f"a part holds one kind of data, not {' and '.join(kinds)}")
    kind = kinds[0] if kinds else ""
    if kind == "text":
        return _text(data, role, at)
    if kind == "functionCall":
        if role != "assistant":
            (at / kind).fail("only a model content calls functions")
        return _call(data, at, ids)
    if kind == "functionResponse":
        if role != "user":
            (at / kind).fail("only a user content answers functions")
        return _result(data, at, ids)
    if kind in ("inlineData", "fileData"):
        return _media(data, kind, role in ("user", "assistant"), at)
    return Opaque(CODEC, copied(data))


def _text(data: Json, role: str, at: Spot) -> Text | Thinking:
    text, fields = string(data, "text", at), rest(data, ("text",))
    if "thoughtSignature" in data:
        a_string(data["thoughtSignature"], at / "thoughtSignature")
    if role == "assistant" and data.get("thought") is True:
        return Thinking(text, fields.pop("thoughtSignature", ""), {CODEC: fields})
    return Text(text, marked(CODEC, fields))


def _media(data: Json, kind: str, shown: bool, at: Spot) -> Image | Opaque:
    source, here = inner(data, kind, at), at / kind
    key = "data" if kind == "inlineData" else "fileUri"
    place, media_type = string(source, key, here), optional_string(source, "mimeType", here)
    if not media_type.startswith("image/") or not shown:
        return Opaque(CODEC, copied(data))
    fields = rest(data, (kind,))
    if more := rest(source, (key, "mimeType")):
        fields["source"] = more
    if kind == "inlineData":
        return Image(data=place, media_type=media_type, meta=marked(CODEC, fields))
    return Image(place, media_type=media_type, meta={CODEC: fields | {"@file": True}})


def _call(data: Json, at: Spot, ids: Unnumbered) -> ToolCall:
    call, here = inner(data, "functionCall", at), at / "functionCall"
    name = string(call, "name", here)
    fields, marks = rest(data, ("functionCall",)), rest(call, ("id", "name", "args"))
    if marks:
        fields["functionCall"] = marks
    text = json_text(inner(call, "args", here), here / "args") if "args" in call else "{}"
    if "args" not in call:
        fields["@args"] = "absent"
    return ToolCall(_id(call, here, fields) or ids.call(name), name, text, marked(CODEC, fields))


def _result(data: Json, at: Spot, ids: Unnumbered) -> ToolResult:
    answer, here = inner(data, "functionResponse", at), at / "functionResponse"
    name, response = string(answer, "name", here), inner(answer, "response", here)
    fields = rest(data, ("functionResponse",))
    if more := rest(answer, ("id", "name", "response", "parts")):
        fields["functionResponse"] = more
    is_error = len(response) == 1 and isinstance(response.get("error"), str)
    if is_error or (len(response) == 1 and isinstance(response.get("output"), str)):
        text = response["error" if is_error else "output"]
    else:
        text, fields["@response"] = json_text(response, here / "response"), "object"
    content: list[Text | Image | Opaque] = [Text(text)]
    if "parts" in answer:
        media = a_list(answer["parts"], here / "parts")
        for i, p in enumerate(media):
            spot = here / "parts" / i
            part = _part(an_object(p, spot), "user", spot, ids)
            content.append(part if isinstance(part, Image) else Opaque(CODEC, copied(p)))
        if not media:
            fields["@parts"] = "empty"
    call_id = _id(answer, here, fields) or ids.result(name)
    return ToolResult(call_id, tuple(content), is_error, name, marked(CODEC, fields))


def _id(data: Json, at: Spot, fields: Json) -> str:
    """The id if there is one, else empty, with the mark that tells how none was written."""
    found = optional_string(data, "id", at)
    if not found:
        fields["@id"] = "empty" if "id" in data else "absent"
    return found


# --- encode -------------------------------------------------------------------------------------


def encode(messages: Iterable[Message]) -> Json:
    """The payload for the messages; `systemInstruction` is there when they begin with a system message."""
    messages = list(messages)
    head = list(takewhile(lambda m: m.role == "system", messages))
    out: Json = {}
    writer = _Writer()
    system = [p for m in head for p in writer.message(m)]
    if system:
        out["systemInstruction"] = {"parts": system} | own(head[0].meta, CODEC)
    shown = (Shown(_side(m), m, writer.later(m)) for m in messages[len(head) :])
    out["contents"] = [_encode_turn(turn) for turn in turns((s for s in shown if s.parts), CODEC)]
    return out


def _side(message: Message) -> str:
    return "model" if message.role == "assistant" else "user"


def _encode_turn(turn: list[Shown[Json]]) -> Json:
    fields: Json = {}
    for shown in turn:
        if shown.message.role != "system":  # its fields belong to systemInstruction
            fields |= own(shown.message.meta, CODEC)
    role = fields.pop("@role", turn[0].side)
    fields.pop("@at", None)
    places = fields.pop("@places", [])
    results = [p for shown in turn for p in shown.parts if "functionResponse" in p]
    said = [p for shown in turn for p in shown.parts if "functionResponse" not in p]
    parts = _placed(results, said, places)
    out: Json = {"role": role, "parts": parts} if role else {"parts": parts}
    return out | fields


def _placed(results: list[Json], said: list[Json], places: list[int]) -> list[Json]:
    """Results first, unless the payload had them elsewhere and both are still as many as they were."""
    parts = results + said
    if len(places) == len(said) and places and places[-1] < len(parts):
        parts = list(results)
        for place, part in zip(places, said, strict=True):
            parts.insert(place, part)
    return parts


class _Writer:
    """Writes messages one after the other; a result needs to know the call it answers."""

    def __init__(self) -> None:
        self.ids = CallIds(strict=False)

    def later(self, message: Message) -> list[Json]:
        """The parts of a message after the leading system messages; none when nothing of it can be shown."""
        parts = self.message(message)
        if message.role == "system":
            return [{"text": system_note(p["text"])} for p in parts if "text" in p]
        if not parts and message.role == "user" and left_out(message.parts):
            return [{"text": UNSHOWN}]
        return parts

    def message(self, message: Message) -> list[Json]:
        """The parts of a message."""
        if message.role == "assistant":
            self.ids.reply()
        return [p for p in (self.part(p) for p in message.parts) if p is not None]

    def part(self, part: Part) -> Json | None:
        if isinstance(part, Text):
            fields = own(part.meta, CODEC)
            return {"text": part.text, **fields} if part.text or fields else None
        if isinstance(part, Image):
            return _encode_image(part)
        if isinstance(part, Opaque):
            return dict(copied(part.data)) if part.codec == CODEC else None
        if isinstance(part, ToolCall):
            return self.call(part)
        if isinstance(part, ToolResult):
            return self.result(part)
        if CODEC not in part.meta:
            return None
        signed = {"thoughtSignature": part.signature} if part.signature else {}
        return {"text": part.text, **signed, **own(part.meta, CODEC)}

    def call(self, call: ToolCall) -> Json:
        fields = own(call.meta, CODEC)
        out: Json = {"id": self.ids.call(call), "name": _name(call.name), "args": arguments_object(call.arguments)}
        _unmark(out, fields)
        if fields.pop("@args", "") == "absent" and not out["args"]:
            del out["args"]
        return {"functionCall": out | fields.pop("functionCall", {}), **fields}

    def result(self, result: ToolResult) -> Json:
        fields = own(result.meta, CODEC)
        call_id, call = self.ids.result(result)
        name = _name(call.name if call else result.name)
        out: Json = {"id": call_id, "name": name, "response": {}}
        if call is not None:  # a result has an id exactly when its call has one
            fields.pop("@id", None)
            if mark := own(call.meta, CODEC).get("@id"):
                fields["@id"] = mark
        _unmark(out, fields)
        text, as_object = result.text, None
        if fields.pop("@response", "") == "object":
            as_object = json_object(text)
        out["response"] = {"error" if result.is_error else "output": text} if as_object is None else as_object
        media = [p for p in (self.part(p) for p in result.content if not isinstance(p, Text)) if p is not None]
        if fields.pop("@parts", "") == "empty" or media:
            out["parts"] = media
        return {"functionResponse": out | fields.pop("functionResponse", {}), **fields}


def _unmark(out: Json, fields: Json) -> None:
    mark = fields.pop("@id", "")
    if mark == "absent":
        del out["id"]
    elif mark == "empty":
        out["id"] = ""


def _name(name: str) -> str:
    """A valid function name: it begins with a letter or `_`, and may have dots and colons, unlike elsewhere."""
    if _NAME.fullmatch(name):
        return name
    valid = tool_name(name)
    return valid if _NAME.fullmatch(valid) else f"_{valid}"


def _encode_image(image: Image) -> Json:
    fields = own(image.meta, CODEC)
    more = fields.pop("source", {})
    if fields.pop("@file", False):
        source = {"fileUri": image.url, "mimeType": image.media_type}
        return {"fileData": source | more, **fields}
    image = located(image)
    if image.data:
        return {"inlineData": {"mimeType": image.media_type, "data": image.data} | more, **fields}
    if on_the_web(image.url):
        return {"fileData": {"fileUri": image.url, "mimeType": image.media_type} | more, **fields}
    return {"text": IMAGE}
