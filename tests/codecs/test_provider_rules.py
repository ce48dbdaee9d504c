"""The checker of provider rules accepts what is right and finds each thing that is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from conversations import PIXEL
from provider_rules import violations

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "1"}

USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
USING = {"role": "assistant", "content": [USE]}
ANSWER = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
ANSWERED = {"role": "user", "content": [ANSWER]}
TEXT = {"type": "text", "text": "t"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
SAYS = {"role": "assistant", "content": "yes"}
NOTE = {"role": "system", "content": "note"}

CALL_ITEM = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
OUTPUT_ITEM = {"type": "function_call_output", "call_id": "a", "output": "1"}

G_USER = {"role": "user", "parts": [{"text": "hi"}]}
G_CALL = {"functionCall": {"name": "f", "args": {}, "id": "a"}}
G_CALLING = {"role": "model", "parts": [G_CALL]}
G_ANSWER = {"functionResponse": {"name": "f", "id": "a", "response": {"output": "1"}}}
G_ANSWERED = {"role": "user", "parts": [G_ANSWER]}


def using(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [USE | fields]}


def image(**source: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image", "source": source}]}


GOOD: list[tuple[str, list[Any]]] = [
    ("openai", [{"role": "system", "content": "s"}, USER, CALLING, RESULT, SAYS, USER]),
    ("openai", [USER, CALLING | {"tool_calls": [CALL, CALL | {"id": "b"}]}, RESULT | {"tool_call_id": "b"}, RESULT]),
    ("openai", [USER, USER, SAYS]),
    ("responses", [USER, {"type": "reasoning", "id": "r", "summary": []}, CALL_ITEM, OUTPUT_ITEM, SAYS]),
    ("responses", [USER, CALL_ITEM, CALL_ITEM | {"call_id": "b"}, OUTPUT_ITEM | {"call_id": "b"}, OUTPUT_ITEM]),
    ("anthropic", [USER, USING, ANSWERED, SAYS, USER]),
    ("anthropic", [USER, {"role": "assistant", "content": [THINKING, TEXT, USE]}, ANSWERED]),
    ("anthropic", [USER, USING, {"role": "user", "content": [ANSWER, TEXT]}]),
    ("anthropic", [USER, NOTE, SAYS]),
    ("anthropic", [image(type="base64", media_type="image/png", data=PIXEL)]),
    ("gemini", [G_USER, G_CALLING, G_ANSWERED]),
    ("gemini", [{"parts": [{"text": "hi"}]}]),
]

BAD: list[tuple[str, list[Any], str]] = [
    ("openai", [], "no message"),
    ("openai", [SAYS, USER], "not user"),
    ("openai", [USER, CALLING], "never answered"),
    ("openai", [USER, CALLING, USER, RESULT], "not answered before"),
    ("openai", [USER, RESULT], "without an open call"),
    ("openai", [USER, CALLING, RESULT, RESULT], "without an open call"),
    ("openai", [USER, CALLING | {"tool_calls": [CALL, CALL]}, RESULT, RESULT], "twice"),
    ("openai", [USER, CALLING | {"tool_calls": []}], "at least one"),
    ("openai", [USER, {"role": "assistant", "content": None}], "neither content nor calls"),
    ("openai", [{"role": "user", "content": " "}], "empty message"),
    ("openai", [{"role": "user", "content": []}], "list of parts"),
    ("openai", [{"role": "user", "content": "\ud83d"}], "surrogate"),
    ("openai", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}}]}], "image url"),
    ("openai", [USER, CALLING, RESULT | {"content": [{"type": "image_url", "image_url": {}}]}], "not allowed here"),
    ("openai", [USER | {"@mark": 1}], "mark"),
    ("responses", [], "not a list of items"),
    ("responses", [SAYS, USER], "not of the user"),
    ("responses", [USER, CALL_ITEM], "never answered"),
    ("responses", [USER, CALL_ITEM, CALL_ITEM, OUTPUT_ITEM], "twice"),
    ("responses", [USER, CALL_ITEM, USER, OUTPUT_ITEM], "not answered before"),
    ("responses", [USER, OUTPUT_ITEM], "without an open call"),
    ("responses", [USER, CALL_ITEM, OUTPUT_ITEM, OUTPUT_ITEM], "without an open call"),
    ("responses", [USER, CALL_ITEM | {"name": "a.b"}, OUTPUT_ITEM], "function name"),
    ("responses", [USER, SAYS | {"content": [{"type": "input_text", "text": "a"}]}], "not allowed here"),
    ("anthropic", [], "at least one"),
    ("anthropic", [SAYS, USER], "not user"),
    ("anthropic", [USER, USER], "in a row"),
    ("anthropic", [USER, USING], "never answered"),
    ("anthropic", [USER, USING, USER], "are not answered in it"),
    ("anthropic", [USER, SAYS, ANSWERED], "without a call"),
    ("anthropic", [USER, USING, {"role": "user", "content": [ANSWER, ANSWER]}], "2 results"),
    ("anthropic", [USER, USING, {"role": "user", "content": [TEXT, ANSWER]}], "come first"),
    ("anthropic", [USER, USING, ANSWERED, USING, ANSWERED], "not unique"),
    ("anthropic", [USER, using(id="a|b"), {"role": "user", "content": [ANSWER | {"tool_use_id": "a|b"}]}], "id 'a|b'"),
    ("anthropic", [USER, using(input="{}"), ANSWERED], "an object"),
    ("anthropic", [USER, using(name="a.b"), ANSWERED], "tool name"),
    ("anthropic", [{"role": "user", "content": ""}], "empty text"),
    ("anthropic", [{"role": "user", "content": "\n"}], "only white space"),
    ("anthropic", [{"role": "user", "content": []}], "empty content"),
    ("anthropic", [USER, {"role": "assistant", "content": [TEXT, THINKING, TEXT]}, USER], "begin with it"),
    ("anthropic", [USER, {"role": "assistant", "content": [THINKING]}, USER], "at the end"),
    (
        "anthropic",
        [USER, USING, {"role": "user", "content": [ANSWER | {"is_error": True, "content": [{"type": "image"}]}]}],
        "text only",
    ),
    ("anthropic", [USER, {"role": "assistant", "content": [THINKING | {"signature": ""}, TEXT]}, USER], "unsigned"),
    ("anthropic", [USER, {"role": "assistant", "content": "yes "}], "white space"),
    ("anthropic", [USER, NOTE, USER], "must follow a user message"),
    ("anthropic", [image(type="base64", media_type="image/bmp", data=PIXEL)], "media type"),
    ("anthropic", [image(type="base64", media_type="image/png", data="%")], "base64"),
    ("anthropic", [image(type="url", url="file:///a.png")], "image url"),
    ("gemini", [], "at least one"),
    ("gemini", [G_CALLING, G_ANSWERED], "not user"),
    ("gemini", [G_USER, G_USER], "in a row"),
    ("gemini", [G_USER, G_CALLING], "never answered"),
    ("gemini", [G_USER, G_CALLING, G_USER], "do not match"),
    ("gemini", [G_USER, G_CALLING, {"role": "user", "parts": [G_ANSWER, G_ANSWER]}], "2 function responses"),
    ("gemini", [{"role": "user", "parts": []}], "at least one"),
    ("gemini", [{"role": "user", "parts": [{"text": ""}]}], "empty text"),
    ("gemini", [{"role": "user", "parts": [{"text": "a", "inlineData": {}}]}], "one kind"),
    ("gemini", [{"role": "user", "parts": [{"inlineData": {"data": PIXEL}}]}], "mimeType"),
    ("gemini", [{"role": "user", "parts": [G_CALL]}], "not allowed here"),
]


def payload(provider: str, messages: list[Any]) -> Any:
    return {
        "openai": messages,
        "responses": messages,
        "anthropic": {"messages": messages},
        "gemini": {"contents": messages},
    }[provider]


@pytest.mark.parametrize(("provider", "messages"), GOOD)
def test_good_payloads(provider: str, messages: list[Any]) -> None:
    assert violations(payload(provider, messages), provider) == []


@pytest.mark.parametrize(("provider", "messages", "said"), BAD)
def test_bad_payloads(provider: str, messages: list[Any], said: str) -> None:
    found = violations(copy.deepcopy(payload(provider, messages)), provider)
    assert any(said in v for v in found), found
