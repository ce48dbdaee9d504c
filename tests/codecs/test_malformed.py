"""Malformed payloads give `BadPayload` with the place, and never another error."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.codecs import strategies

from clew.codecs import anthropic, gemini, openai, responses
from clew.errors import BadPayload

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
DECODERS: dict[str, Callable[[Any], Any]] = {
    "openai": openai.decode,
    "responses": responses.decode,
    "anthropic": anthropic.decode,
    "gemini": gemini.decode,
    "openai reply": openai.decode_reply,
    "anthropic reply": anthropic.decode_reply,
}
VALID = {
    "openai": strategies.openai(),
    "responses": strategies.responses(),
    "anthropic": strategies.anthropic(),
    "gemini": strategies.gemini(),
}
ENCODERS: dict[str, Callable[[Any], Any]] = {
    "openai": openai.encode,
    "responses": responses.encode,
    "anthropic": anthropic.encode,
    "gemini": gemini.encode,
}


@given(st.sampled_from(sorted(DECODERS)), json_values)
@example("openai", {"messages": []})
@example("gemini", {"contents": [{"parts": [{"functionCall": {"name": "f", "args": float("nan")}}]}]})
def test_any_json_value(name: str, value: Any) -> None:
    with contextlib.suppress(BadPayload):
        DECODERS[name](value)


@given(st.sampled_from(sorted(VALID)), st.data(), json_values)
def test_a_valid_payload_with_one_value_replaced_or_taken_out(name: str, data: st.DataObject, value: Any) -> None:
    payload = copy.deepcopy(data.draw(VALID[name]))
    places = [*_places(payload)]
    holder, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        holder[key] = value
    else:
        del holder[key]
    with contextlib.suppress(BadPayload):
        messages = DECODERS[name](payload)
        for encode in ENCODERS.values():  # what is taken in can be written out, to everyone
            encode(messages)


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("name", "payload", "index", "field"),
    [
        ("openai", "hello", None, ""),
        ("openai", [{"role": "user", "content": "a"}, "b"], 1, ""),
        ("openai", [{"content": "a"}], 0, "role"),
        ("openai", [{"role": "robot", "content": "a"}], 0, "role"),
        ("openai", [{"role": ["user"], "content": "a"}], 0, "role"),
        ("openai", [{"role": "user"}], 0, "content"),
        ("openai", [{"role": "user", "content": None}], 0, "content"),
        ("openai", [{"role": "user", "content": [{"text": "a"}]}], 0, "content[0].type"),
        ("openai", [{"role": "user", "content": [{"type": "text", "text": 1}]}], 0, "content[0].text"),
        ("openai", [{"role": "user", "content": [{"type": "image_url", "image_url": "u"}]}], 0, "content[0].image_url"),
        ("openai", [{"role": "assistant", "tool_calls": {}}], 0, "tool_calls"),
        ("openai", [{"role": "assistant", "tool_calls": [CALL | {"id": 7}]}], 0, "tool_calls[0].id"),
        ("openai", [{"role": "assistant", "tool_calls": [CALL | {"type": "x"}]}], 0, "tool_calls[0].type"),
        (
            "openai",
            [{"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": {}}}]}],
            0,
            "tool_calls[0].function.arguments",
        ),
        ("openai", [{"role": "tool", "content": "a"}], 0, "tool_call_id"),
        ("openai", [{"role": "function", "content": "a"}], 0, "name"),
        ("openai", [{"role": "user", "content": "a", "name": 3}], 0, "name"),
        ("responses", {"input": []}, None, ""),
        ("responses", [{"content": "a"}], 0, "type"),
        ("responses", [{"type": "message", "content": "a"}], 0, "role"),
        ("responses", [{"type": "function_call", "name": "f", "arguments": "{}"}], 0, "call_id"),
        ("responses", [{"type": "function_call_output", "call_id": "a"}], 0, "output"),
        ("responses", [{"type": "reasoning", "summary": ["x"]}], 0, "summary[0]"),
        ("anthropic", 3, None, ""),
        ("anthropic", {"system": "a"}, None, "messages"),
        ("anthropic", {"system": 1, "messages": []}, None, "system"),
        ("anthropic", [{"role": "tool", "content": "a"}], 0, "role"),
        ("anthropic", [{"role": "user", "content": {}}], 0, "content"),
        ("anthropic", [{"role": "user", "content": [{"type": "tool_result"}]}], 0, "content[0].tool_use_id"),
        ("anthropic", [{"role": "user", "content": [{"type": "image", "source": {}}]}], 0, "content[0].source.type"),
        (
            "anthropic",
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]}],
            0,
            "content[0].input",
        ),
        ("anthropic", [{"role": "user", "content": [{"type": "tool_use"}]}], 0, "content[0].type"),
        ("gemini", {"contents": {}}, None, "contents"),
        ("gemini", {"system_instruction": {}, "contents": []}, None, "system_instruction"),
        ("gemini", [{"role": "assistant", "parts": []}], 0, "role"),
        ("gemini", [{"role": "user"}], 0, "parts"),
        ("gemini", [{"role": "user", "parts": ["a"]}], 0, "parts[0]"),
        ("gemini", [{"role": "user", "parts": [{"text": "a", "inlineData": {}}]}], 0, "parts[0]"),
        ("gemini", [{"role": "user", "parts": [{"function_call": {}}]}], 0, "parts[0].function_call"),
        ("gemini", [{"role": "user", "parts": [{"functionCall": {}}]}], 0, "parts[0].functionCall"),
        ("gemini", [{"role": "model", "parts": [{"functionCall": {}}]}], 0, "parts[0].functionCall.name"),
        ("openai reply", {"choices": []}, None, "choices"),
        ("anthropic reply", {"content": "a"}, None, "content"),
    ],
)
def test_the_place_is_named(name: str, payload: Any, index: int | None, field: str) -> None:
    with pytest.raises(BadPayload) as caught:
        DECODERS[name](payload)
    assert (caught.value.index, caught.value.field) == (index, field)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("openai", [{"role": "user", "content": [{"type": "x", "x": nested(100_000)}]}]),
        ("responses", [{"type": "web_search_call", "x": nested(100_000)}]),
        ("anthropic", [{"role": "user", "content": "a", "x": nested(100_000)}]),
        ("anthropic", {"system": [{"type": "text", "text": "a", "x": nested(100_000)}], "messages": []}),
        ("gemini", [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": nested(100_000)}}]}]),
    ],
)
def test_nested_beyond_reason(name: str, payload: Any) -> None:
    with pytest.raises(BadPayload, match="deep"):
        DECODERS[name](payload)


def test_nested_within_reason() -> None:
    payload = [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": nested(190)}]}]
    assert anthropic.encode(anthropic.decode(payload)) == {"messages": payload}


def test_argument_text_nested_beyond_reason_is_text() -> None:
    text = '{"a": ' * 100_000 + "1" + "}" * 100_000
    call = CALL | {"function": {"name": "f", "arguments": text}}
    made = openai.decode([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert anthropic.encode(made)["messages"][0]["content"][0]["input"] == {"raw_arguments": text}


class Response:
    """Stands for the object an SDK returns."""

    def model_dump(self) -> dict[str, Any]:
        return {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}]}


def test_an_object_of_an_sdk_where_its_payload_is_wanted() -> None:
    with pytest.raises(BadPayload, match=r"not a Python value of type Response; its model_dump\(\) is one"):
        openai.decode_reply(Response())  # type: ignore[arg-type]
    assert openai.decode_reply(Response().model_dump())[0].text == "a"
    with pytest.raises(BadPayload, match="not a Python value of type set"):
        openai.decode({1})  # type: ignore[arg-type]
