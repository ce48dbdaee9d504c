"""Valid payloads of each provider, rich in what real ones hold."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from conversations import PHRASES, PIXEL

Json = dict[str, Any]

texts = st.sampled_from(PHRASES) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(lambda t: t + ".")
names = st.sampled_from(("bash", "read_file", "search-code"))
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=3)
cache = st.sampled_from(({}, {}, {}, {"cache_control": {"type": "ephemeral"}}))


def maybe(draw: st.DrawFn, one_in: int = 3) -> bool:
    """True once in so many."""
    return draw(st.integers(1, one_in)) == one_in


def some(draw: st.DrawFn, part: st.SearchStrategy[Json], at_most: int = 3) -> list[Json]:
    """One to `at_most` parts."""
    return [draw(part) for _ in range(draw(st.integers(1, at_most)))]


class Ids:
    """Fresh ids, as a provider makes them."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, prefix: str) -> str:
        self.n += 1
        return f"{prefix}{self.n}"


# --- OpenAI chat completions --------------------------------------------------------------------


_OPENAI_USER_PART = st.sampled_from(
    (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;charset=utf-8;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "text", "text": "", "cache_control": {"type": "ephemeral"}},
        {"type": "from_the_future", "payload": [1, {"a": None}]},
    )
) | texts.map(lambda t: {"type": "text", "text": t})


_TEXT_PART = st.builds(dict.__or__, texts.map(lambda t: {"type": "text", "text": t}), cache)


def _openai_call(draw: st.DrawFn, ids: Ids) -> Json:
    if maybe(draw, 6):
        return {"id": ids("call_"), "type": "custom", "custom": {"name": draw(names), "input": draw(texts)}}
    text = draw(objects.map(json.dumps) | st.sampled_from(("", "{}", '{ "a" : 1 }', '{"cut": "of')))
    call = {"id": ids("call_"), "type": "function", "function": {"name": draw(names), "arguments": text}}
    return call | draw(st.sampled_from(({}, {"index": 0}, {"extra_content": {"google": {"thought_signature": "x"}}})))


@st.composite
def openai(draw: st.DrawFn) -> list[Json]:
    """Chat completions messages."""
    ids, out = Ids(), []

    def content(part: st.SearchStrategy[Json]) -> Any:
        return some(draw, part) if maybe(draw) else draw(texts | st.just("")) if maybe(draw, 8) else draw(texts)

    if draw(st.booleans()):
        out.append({"role": draw(st.sampled_from(("system", "developer"))), "content": content(_TEXT_PART)})
    for _ in range(draw(st.integers(1, 3))):
        user = {"role": "user", "content": content(_OPENAI_USER_PART)}
        out.append(user | draw(st.sampled_from(({}, {}, {"name": "ada"}, {"cache_control": {"type": "ephemeral"}}))))
        for _ in range(draw(st.integers(0, 2))):
            calls = [_openai_call(draw, ids) for _ in range(draw(st.integers(1, 3)))]
            said = (
                draw(st.sampled_from(({"content": None}, {}, {"content": ""})))
                if maybe(draw, 2)
                else {"content": draw(texts)}
            )
            extra = draw(st.sampled_from(({}, {}, {"refusal": None}, {"reasoning_content": "hm"}, {"name": "bot"})))
            out.append({"role": "assistant", **said, "tool_calls": calls, **extra})
            for call in draw(st.permutations(calls)):
                result = {"role": "tool", "tool_call_id": call["id"], "content": content(_TEXT_PART)}
                out.append(
                    result
                    | draw(st.sampled_from(({}, {}, {"name": "bash"}, {"name": ""}, {"name": None}, draw(cache))))
                )
        if maybe(draw, 5):
            name = draw(names)
            out.append({"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}})
            out.append({"role": "function", "name": name, "content": draw(texts | st.none() | st.just(""))})
        kind = draw(st.integers(0, 5))
        if kind == 0:
            out.append({"role": "assistant", "content": None, "refusal": "I would rather not."})
        elif kind == 1:
            out.append({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
        elif kind == 2:
            out.append({"role": "assistant", "audio": {"id": "audio_1"}})
        elif kind < 5:
            out.append({"role": "assistant", "content": content(_TEXT_PART)})
    return out


# --- OpenAI Responses ---------------------------------------------------------------------------


_INPUT_PART = st.sampled_from(
    (
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "file_id": "file-1", "detail": "high"},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "from_the_future", "x": []},
    )
) | texts.map(lambda t: {"type": "input_text", "text": t})


_OUTPUT_PART = (
    st.sampled_from(
        (
            {"type": "refusal", "refusal": "no"},
            {
                "type": "output_text",
                "text": "see",
                "annotations": [{"type": "url_citation", "url": "https://e.com"}],
            },
        )
    )
    | texts.map(lambda t: {"type": "output_text", "text": t, "annotations": []})
    | texts.map(lambda t: {"type": "output_text", "text": t})
)


OPAQUE_ITEMS = (
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_c",
        "action": {"type": "screenshot"},
        "status": "completed",
    },
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
    {"type": "item_reference", "id": "msg_9"},
)


@st.composite
def responses(draw: st.DrawFn) -> list[Json]:
    """Responses input items."""
    ids, out = Ids(), []
    marks = st.sampled_from(({}, {}, {"type": "message"}, {"type": "message", "status": "completed"}))

    def content(part: st.SearchStrategy[Json]) -> Any:
        return some(draw, part) if draw(st.booleans()) else draw(texts | st.just(""))

    def said() -> Json:
        if draw(st.booleans()):
            return {"role": "assistant", "content": content(_OUTPUT_PART), **draw(marks)}
        parts = some(draw, _OUTPUT_PART)
        item = {"type": "message", "id": ids("msg_"), "role": "assistant", "status": "completed", "content": parts}
        return item | draw(st.sampled_from(({}, {"phase": "commentary"})))

    if draw(st.booleans()):
        role = draw(st.sampled_from(("system", "developer")))
        out.append({"role": role, "content": content(_INPUT_PART), **draw(marks)})
    for _ in range(draw(st.integers(1, 4))):
        out.append({"role": "user", "content": content(_INPUT_PART), **draw(marks)})
        for _ in range(draw(st.integers(0, 2))):
            if draw(st.booleans()):
                summary = [{"type": "summary_text", "text": t} for t in draw(st.lists(texts, max_size=2))]
                sealed = draw(st.sampled_from(({}, {"encrypted_content": "c2VhbA=="}, {"encrypted_content": None})))
                out.append({"type": "reasoning", "id": ids("rs_"), "summary": summary, **sealed})
            if maybe(draw):
                out.append(draw(st.sampled_from(OPAQUE_ITEMS)))
            out.extend(said() for _ in range(draw(st.integers(0, 2))))
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                call = {"call_id": ids("call_"), "name": draw(names)}
                if maybe(draw, 5):
                    call |= {"type": "custom_tool_call", "input": draw(texts)}
                else:
                    call |= {"type": "function_call", "arguments": draw(objects.map(json.dumps) | st.just(""))}
                calls.append(call | draw(st.sampled_from(({}, {"id": ids("fc_"), "status": "completed"}))))
            out.extend(calls)
            for call in draw(st.permutations(calls)):
                output = content(_INPUT_PART)
                item = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": output}
                out.append(item | draw(st.sampled_from(({}, {"id": "fco_1", "status": "completed"}))))
        if draw(st.integers(0, 3)):
            out.append(said())
    return out


# --- Anthropic ----------------------------------------------------------------------------------


_ANTHROPIC_USER_BLOCK = st.builds(
    dict.__or__,
    st.sampled_from(
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"},
            {"type": "from_the_future", "x": {"y": [1]}},
        )
    )
    | texts.map(lambda t: {"type": "text", "text": t}),
    cache,
)


def _anthropic_result(draw: st.DrawFn, call_id: str) -> Json:
    content: Any = draw(texts | st.just(""))
    is_error = draw(st.sampled_from(({}, {"is_error": True}, {"is_error": False})))
    if draw(st.booleans()):
        content = some(draw, _TEXT_PART if is_error.get("is_error") else _ANTHROPIC_USER_BLOCK)
    out = {"type": "tool_result", "tool_use_id": call_id}
    out |= draw(st.sampled_from(({"content": content}, {"content": content}, {}, {"content": []})))
    return out | is_error | draw(cache)


SERVER_TOOL = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "u"}],
    },
]


@st.composite
def anthropic(draw: st.DrawFn) -> Json:
    """A Messages payload."""
    ids, out = Ids(), []
    payload: Json = {}
    if draw(st.booleans()):
        payload["system"] = some(draw, _TEXT_PART) if draw(st.booleans()) else draw(texts)

    def thinking() -> list[Json]:
        blocks = [{"type": "thinking", "thinking": draw(texts), "signature": "c2ln"}] if maybe(draw) else []
        return blocks + ([{"type": "redacted_thinking", "data": "c2VjcmV0"}] if maybe(draw, 5) else [])

    pending: list[Json] = []  # results that the next user message begins with
    for _ in range(draw(st.integers(1, 4))):
        user: Json = {"role": "user", "content": pending + some(draw, _ANTHROPIC_USER_BLOCK)}
        if pending and draw(st.booleans()):
            user["content"] = pending
        elif not pending and draw(st.booleans()):
            user["content"] = draw(texts)
        out.append(user | draw(st.sampled_from(({}, {}, {}, draw(cache)))))
        if maybe(draw, 6):
            out.append({"role": "system", "content": draw(texts | st.just([{"type": "text", "text": "Be brief."}]))})
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            call = {"type": "tool_use", "id": ids("toolu_"), "name": draw(names), "input": draw(objects)}
            calls.append(call | draw(cache))
        said = some(draw, _TEXT_PART, 2) if draw(st.booleans()) or not calls else []
        content: Any = thinking() + (SERVER_TOOL if maybe(draw, 5) else []) + said + calls
        if not calls and maybe(draw, 2):
            content = draw(texts)
        out.append({"role": "assistant", "content": content})
        pending = [_anthropic_result(draw, c["id"]) for c in draw(st.permutations(calls))]
    if pending:
        out.append({"role": "user", "content": pending})
    elif draw(st.booleans()):
        last = out[-1]["content"]
        if isinstance(last, str):
            out[-1]["content"] = last.rstrip()
        elif last[-1]["type"] == "text":
            last[-1] = last[-1] | {"text": last[-1]["text"].rstrip()}
    else:
        out.append({"role": "user", "content": draw(texts)})
    return payload | {"messages": out}


# --- Gemini -------------------------------------------------------------------------------------


_GEMINI_USER_PART = st.sampled_from(
    (
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": "image/png"}},
        {"fileData": {"fileUri": "https://example.com/v.mp4"}, "videoMetadata": {"fps": 1}},
    )
) | texts.map(lambda t: {"text": t})


_GEMINI_RESPONSE = st.one_of(
    texts.map(lambda t: {"output": t}),
    texts.map(lambda t: {"error": t}),
    objects,
    st.just({"output": {"a": 1}}),
)


_SIGNED = st.sampled_from(({}, {}, {"thoughtSignature": "c2ln"}))


@st.composite
def gemini(draw: st.DrawFn) -> Json:
    """A generateContent payload."""
    ids, contents = Ids(), []
    payload: Json = {}
    if draw(st.booleans()):
        role = draw(st.sampled_from(({}, {"role": "system"})))
        payload["systemInstruction"] = {
            "parts": [{"text": t} for t in draw(st.lists(texts, min_size=1, max_size=2))],
            **role,
        }
    pending: list[Json] = []
    signed = _SIGNED
    for _ in range(draw(st.integers(1, 4))):
        parts = pending if pending and draw(st.booleans()) else pending + some(draw, _GEMINI_USER_PART)
        if len(parts) > len(pending) > 0 and maybe(draw, 4):
            parts = (
                draw(st.permutations(parts)) if not any("id" not in p["functionResponse"] for p in pending) else parts
            )
        contents.append({"role": "user", "parts": parts})
        numbered = draw(st.booleans())
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            call: Json = {"name": draw(names)}
            call |= draw(st.sampled_from(({}, {"args": {}}))) if maybe(draw) else {"args": draw(objects)}
            calls.append(call | ({"id": ids("fc-")} if numbered else {}))
        model: list[Json] = []
        if maybe(draw):
            model.append({"text": draw(texts), "thought": True, **draw(signed)})
        if draw(st.booleans()) or not calls:
            model.append({"text": draw(texts), **draw(signed)})
        if maybe(draw, 5):
            model.append({"executableCode": {"language": "PYTHON", "code": "print(1)"}})
            model.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
        model += [{"functionCall": c, **draw(signed)} for c in calls]
        if maybe(draw, 8):
            model.append({"text": "", "thoughtSignature": "c2ln"})
        contents.append({"role": "model", "parts": model})
        pending = []
        for call in calls:
            answer = {"name": call["name"], "response": draw(_GEMINI_RESPONSE)}
            answer |= {"id": call["id"]} if numbered else {}
            if maybe(draw, 5):
                answer["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
            pending.append({"functionResponse": answer})
    if pending:
        contents.append({"role": "user", "parts": pending})
    return payload | {"contents": contents}
