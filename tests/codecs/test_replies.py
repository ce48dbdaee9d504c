"""Responses of the providers: the message, why it ended, and tokens."""

from __future__ import annotations

from typing import Any

import pytest

from clew.codecs import anthropic, openai
from clew.messages import Text, Thinking, ToolCall, Usage

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Done.",
                "refusal": None,
                "annotations": [],
                "tool_calls": None,
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 20},
    },
}


def chat(message: dict[str, Any], reason: Any = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": reason}]}


def test_a_chat_completion() -> None:
    message, finish, usage = openai.decode_reply(CHAT)
    assert (message.parts, finish) == ((Text("Done."),), "stop")
    assert usage == message.usage == Usage(input=400, output=50, cache_read=600, reasoning=20)
    assert openai.encode([message]) == [{"role": "assistant", "content": "Done."}], "nulls are not sent back"


def test_cache_writes_are_not_counted_twice() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "cache_creation_input_tokens": 30}
    usage["prompt_tokens_details"] = {"cached_tokens": 20}  # type: ignore[assignment]
    assert openai.decode_reply(CHAT | {"usage": usage})[2] == Usage(50, 1, 20, 30)


@pytest.mark.parametrize(
    ("message", "reason", "finish"),
    [
        ({"content": "a"}, "length", "length"),
        ({"content": "a"}, "content_filter", "refusal"),
        ({"content": "a"}, "something new", "unknown"),
        ({"content": "a"}, None, "unknown"),
        ({"content": None, "refusal": "No."}, "stop", "refusal"),
        ({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call", "tool_calls"),
    ],
)
def test_why_a_chat_completion_ended(message: dict[str, Any], reason: Any, finish: str) -> None:
    assert openai.decode_reply(chat(message, reason))[1] == finish


def test_calls_and_reasoning_of_a_chat_completion() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message, finish, usage = openai.decode_reply(
        chat({"content": None, "reasoning_content": "hm", "tool_calls": [call]})
    )
    assert [type(p) for p in message.parts] == [Thinking, ToolCall]
    assert finish == "tool_calls", "some servers say stop"
    assert usage == Usage()


def test_an_anthropic_response() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ]
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 700,
        "cache_creation_input_tokens": None,
        "output_tokens": 5,
        "service_tier": "standard",
    }
    response = {"id": "msg_1", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage}
    message, finish, found = anthropic.decode_reply(response)
    assert finish == "tool_calls"
    assert found == message.usage == Usage(input=10, output=5, cache_read=700)
    assert anthropic.encode([message])["messages"] == [{"role": "assistant", "content": content}]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        (None, "unknown"),
    ],
)
def test_why_an_anthropic_response_ended(reason: Any, finish: str) -> None:
    assert anthropic.decode_reply({"content": [], "stop_reason": reason})[1] == finish
