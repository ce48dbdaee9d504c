"""Responses of the providers: the message, why it ended, and tokens."""

from __future__ import annotations

from typing import Any

import pytest

from clew.codecs import anthropic, gemini, openai, responses
from clew.errors import BadPayload
from clew.messages import Message, Text, Thinking, ToolCall, Usage

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


def test_a_responses_reply_is_one_message_of_all_its_items() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
    ]
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 80},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 109,
    }
    message, finish, found = responses.decode_reply(
        {"id": "resp_1", "status": "completed", "output": output, "usage": usage}
    )
    assert [type(p) for p in message.parts] == [Thinking, Text, ToolCall]
    assert finish == "tool_calls"
    assert found == message.usage == Usage(input=20, output=9, cache_read=80, reasoning=4)
    assert responses.encode([message]) == output, "the next request hands the items back as they were"


def said(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content)}


@pytest.mark.parametrize(
    ("response", "finish"),
    [
        ({"status": "completed", "output": []}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}, "refusal"),
        ({"status": "incomplete", "incomplete_details": None, "output": []}, "unknown"),
        ({"status": "failed", "error": {"code": "server_error"}, "output": []}, "error"),
        ({"output": []}, "unknown"),
        (
            {
                "status": "completed",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
                ],
            },
            "refusal",
        ),
    ],
)
def test_why_a_responses_reply_ended(response: dict[str, Any], finish: str) -> None:
    assert responses.decode_reply(response)[1] == finish


def gemini_response(parts: list[dict[str, Any]], reason: str = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}]}


def test_a_gemini_response() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    ]
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 137,
    }
    message, finish, found = gemini.decode_reply(gemini_response(parts) | {"usageMetadata": usage})
    assert [type(p) for p in message.parts] == [Thinking, ToolCall]
    assert finish == "tool_calls"
    assert found == message.usage == Usage(input=40, output=37, cache_read=60, reasoning=30)
    assert gemini.encode([message])["contents"] == [{"role": "model", "parts": parts}]


@pytest.mark.parametrize(
    ("response", "finish"),
    [
        (gemini_response([{"text": "a"}]), "stop"),
        (gemini_response([{"text": "a"}], "MAX_TOKENS"), "length"),
        (gemini_response([{"text": "a"}], "PROHIBITED_CONTENT"), "refusal"),
        (gemini_response([{"text": "a"}], "MALFORMED_FUNCTION_CALL"), "error"),
        (gemini_response([{"text": "a"}], "SOMETHING_NEW"), "unknown"),
        ({"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}, "length"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "refusal"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refusal"),
    ],
)
def test_why_a_gemini_response_ended(response: dict[str, Any], finish: str) -> None:
    message, found, _ = gemini.decode_reply(response)
    assert (message.role, found) == ("assistant", finish)


@pytest.mark.parametrize("codec", [openai, responses, anthropic, gemini])
@pytest.mark.parametrize("response", [None, [], {}, {"choices": [], "output": 1, "content": 1, "candidates": 1}])
def test_what_is_no_response_says_what_is_wrong_with_it(codec: Any, response: Any) -> None:
    with pytest.raises(BadPayload, match="malformed payload"):
        codec.decode_reply(response)


@pytest.mark.parametrize("codec", [openai, responses, anthropic, gemini])
def test_a_reply_without_usage_costs_nothing_that_is_known(codec: Any) -> None:
    response = {
        **chat({"content": "hi"}),
        **gemini_response([{"text": "hi"}]),
        "output": [{"type": "message", "role": "assistant", "content": "hi"}],
        "content": [{"type": "text", "text": "hi"}],
        "usage": None,
    }
    message, _, usage = codec.decode_reply(response)
    assert (message.text, usage) == ("hi", Usage())
    assert isinstance(message, Message)
