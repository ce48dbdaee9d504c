"""A conversation, wherever it comes from, makes a valid payload for every provider."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.codecs import strategies

from clew.codecs import anthropic, gemini, openai, responses
from clew.messages import (
    Image,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    sanitized,
    system,
    tool,
    user,
)
from clew.sessions.entries import Entry, Said
from clew.sessions.view import project
from conversations import PIXEL, broken_conversations, conversations
from provider_rules import violations


class Ones:
    """Counts every message as one token: what a view shows does not depend on the counter."""

    name = "ones"

    def text(self, text: str) -> int:
        return 1

    def message(self, message: Message) -> int:
        return 1

    def tools(self, tools: object) -> int:
        return 0


CODECS: dict[str, ModuleType] = {"openai": openai, "responses": responses, "anthropic": anthropic, "gemini": gemini}

decoded = st.one_of(
    strategies.openai().map(openai.decode),
    strategies.responses().map(responses.decode),
    strategies.anthropic().map(anthropic.decode),
    strategies.gemini().map(gemini.decode),
)


def view(messages: list[Message]) -> list[Message]:
    """The messages as a session shows them: sanitised and mended."""
    entries = [Entry(i, i - 1 or None, Said(sanitized(m)[0])) for i, m in enumerate(messages, 1)]
    return project(entries, Ones()).view.messages


def assert_valid(messages: list[Message]) -> None:
    """Every provider accepts the messages, and what it would get decodes to the same again."""
    for name, codec in CODECS.items():
        payload = codec.encode(messages)
        # Blocks newer than any checker stay what they are for the provider they came from.
        assert [v for v in violations(payload, name) if "from_the_future" not in v] == [], name
        assert codec.encode(codec.decode(payload)) == payload


@given(conversations())
def test_conversations(messages: list[Message]) -> None:
    assert_valid(messages)


@given(conversations(images_too=False), st.sampled_from(sorted(CODECS)))
def test_everything_said_called_and_answered_gets_through(messages: list[Message], name: str) -> None:
    back = CODECS[name].decode(CODECS[name].encode(messages))

    def said(found: list[Message], role: str) -> str:
        return "\n".join(m.text for m in found if m.role == role).rstrip()

    for role in ("system", "user", "assistant"):
        assert said(back, role) == said(messages, role)
    calls, calls_back = ([c for m in found for c in m.calls] for found in (messages, back))
    assert [(c.id, c.name, json.loads(c.arguments)) for c in calls_back] == [
        (c.id, c.name, json.loads(c.arguments)) for c in calls
    ]
    results, results_back = ([r for m in found for r in m.results] for found in (messages, back))
    assert [(r.call_id, r.text) for r in results_back] == [(r.call_id, r.text) for r in results]


@given(broken_conversations())
def test_views_of_broken_conversations(messages: list[Message]) -> None:
    assert_valid(view([*messages, user("Go on.")]))


@given(decoded)
def test_payloads_of_other_providers(messages: list[Message]) -> None:
    assert_valid(view([*messages, user("Go on.")]))


@given(decoded, st.data())
def test_marks_left_over_in_an_edited_view_do_no_harm(messages: list[Message], data: st.DataObject) -> None:
    kept = [m for m in messages if data.draw(st.integers(0, 3))]
    for i in data.draw(st.lists(st.integers(0, len(kept)), max_size=3)):
        kept.insert(i, data.draw(st.sampled_from((user("A summary."), assistant("Noted."), system("Be kind.")))))
    masked = [
        replace(
            m, parts=tuple(replace(p, content=(Text("[old]"),)) if isinstance(p, ToolResult) else p for p in m.parts)
        )
        if data.draw(st.booleans())
        else m
        for m in kept
    ]
    assert_valid(view([*masked, user("Go on.")]))


@given(broken_conversations(max_turns=2, max_text=50), st.sampled_from(sorted(CODECS)))
def test_encoding_never_fails(messages: list[Message], name: str) -> None:
    """Not even on what no provider accepts, lone surrogates included."""
    odd = Message("user", (Text("half a \ud83d character"), Image(), Opaque("other", {"type": "x"}), ToolCall("", "")))
    CODECS[name].encode([*messages, odd, Message("tool", (ToolResult("\udc00", (Text("\ud800"),)),))])


# --- single rules -------------------------------------------------------------------------------

CALLS = assistant(ToolCall("a", "bash", '{"command": "ls"}'), ToolCall("b", "bash"))


def test_results_of_parallel_calls_end_in_one_message_before_what_the_user_says() -> None:
    messages = [user("hi"), CALLS, tool("a", "1"), tool("b", "2"), user("and now?")]
    last = anthropic.encode(messages)["messages"][-1]
    assert [b["type"] for b in last["content"]] == ["tool_result", "tool_result", "text"]
    last = gemini.encode(messages)["contents"][-1]
    assert [next(iter(p)) for p in last["parts"]] == ["functionResponse", "functionResponse", "text"]
    assert [p["functionResponse"]["name"] for p in last["parts"][:2]] == ["bash", "bash"]


def test_foreign_ids_become_valid_the_same_for_call_and_result() -> None:
    calls = assistant(ToolCall("call_1|fc_2", "f"), ToolCall("call_1.fc_2", "f"), ToolCall("", "f"))
    messages = [user("x"), calls, tool("call_1.fc_2", "2"), tool("call_1|fc_2", "1"), tool("", "3")]
    made, results = anthropic.encode(messages)["messages"][1:]
    assert [b["id"] for b in made["content"]] == ["call_1_fc_2", "call_1_fc_2_2", "call"]
    assert [(b["tool_use_id"], b["content"]) for b in results["content"]] == [
        ("call_1_fc_2_2", "2"),
        ("call_1_fc_2", "1"),
        ("call", "3"),
    ]


def test_ids_used_again_in_a_later_round_stay_pairs() -> None:
    messages = [user("x"), assistant(ToolCall("0", "f")), tool("0", "a"), assistant(ToolCall("0", "f")), tool("0", "b")]
    assert violations(anthropic.encode(messages), "anthropic") == []


def test_thinking_goes_only_to_whom_it_came_from() -> None:
    unsigned, foreign = Thinking("hm"), Thinking("hm", "sig", {"gemini": {"thought": True}})
    messages = [user("x"), assistant(unsigned, foreign, Thinking("mine", "sig"), "y")]
    assert anthropic.encode(messages)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "mine", "signature": "sig"},
        {"type": "text", "text": "y"},
    ]
    assert gemini.encode(messages)["contents"][1]["parts"] == [
        {"text": "hm", "thoughtSignature": "sig", "thought": True},
        {"text": "y"},
    ]
    assert openai.encode(messages)[1] == {"role": "assistant", "content": "y"}
    assert responses.encode(messages)[1] == {"role": "assistant", "content": "y"}


def test_system_messages_lead_or_are_labelled() -> None:
    messages = [system("a"), system("b"), user("x"), assistant("y"), system("c"), user("z")]
    out = anthropic.encode(messages)
    assert out["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [b["text"] for b in out["messages"][-1]["content"]] == ["[system] c", "z"]
    out = gemini.encode(messages)
    assert out["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert out["contents"][-1]["parts"] == [{"text": "[system] c"}, {"text": "z"}]
    assert [m["role"] for m in openai.encode(messages)] == [m.role for m in messages]


def test_an_anthropic_system_message_stays_one_only_in_its_place() -> None:
    said = anthropic.decode([{"role": "user", "content": "x"}, {"role": "system", "content": "c"}])
    assert anthropic.encode([*said, assistant("y")])["messages"][1] == {"role": "system", "content": "c"}
    elsewhere = anthropic.encode([user("x"), assistant("y"), said[1], user("z")])["messages"]
    assert [m["role"] for m in elsewhere] == ["user", "assistant", "user"]


def test_a_system_instruction_that_ends_up_later_takes_no_field_with_it() -> None:
    given = gemini.decode({"systemInstruction": {"role": "system", "parts": [{"text": "s"}]}, "contents": []})
    assert gemini.encode([user("x"), *given])["contents"] == [
        {"role": "user", "parts": [{"text": "x"}, {"text": "[system] s"}]}
    ]


def test_images_in_tool_results_reach_openai_in_a_user_message_after_the_round() -> None:
    shot = ToolResult("a", (Text("taken"), Image(data=PIXEL, media_type="image/png")))
    out = openai.encode([user("x"), CALLS, Message("tool", (shot,)), tool("b", "ok"), assistant("nice")])
    assert [m["role"] for m in out] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert out[2]["content"] == "taken"
    assert out[4]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"


@pytest.mark.parametrize(
    ("image", "written"),
    [
        (Image(data="/9j/AA=="), {"type": "base64", "media_type": "image/jpeg", "data": "/9j/AA=="}),
        (Image("data:image/gif;base64,R0lG"), {"type": "base64", "media_type": "image/gif", "data": "R0lG"}),
        (Image("https://e.com/a.png"), {"type": "url", "url": "https://e.com/a.png"}),
    ],
)
def test_images_are_written_as_the_api_wants_them(image: Image, written: dict[str, Any]) -> None:
    block = {"type": "image", "source": written}
    assert anthropic.encode([user(image)]) == {"messages": [{"role": "user", "content": [block]}]}


@pytest.mark.parametrize("image", [Image(), Image("gs://b/a.png"), Image(data="Qk0=", media_type="image/bmp")])
def test_an_image_the_api_cannot_take_is_named(image: Image) -> None:
    assert anthropic.encode([user("see", image)])["messages"][0]["content"][1] == {"type": "text", "text": "[image]"}


def test_a_user_message_of_foreign_blocks_alone_is_not_lost_without_a_word() -> None:
    audio: Part = Opaque("openai", {"type": "input_audio", "input_audio": {}})
    for codec in (anthropic, gemini, responses):
        assert "cannot take" in str(codec.encode([user(audio), assistant("I heard it.")]))


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    messages = [user("x"), assistant(ToolCall("a", "f", '{"cut": "of'), ToolCall("b", "f", " "))]
    blocks = anthropic.encode(messages)["messages"][1]["content"]
    assert [b["input"] for b in blocks] == [{"raw_arguments": '{"cut": "of'}, {}]
    assert openai.encode(messages)[1]["tool_calls"][0]["function"]["arguments"] == '{"cut": "of'


def test_blank_text_and_trailing_white_space_do_not_reach_anthropic() -> None:
    messages = [
        user("x"),
        assistant(" ", ToolCall("a", "f")),
        tool("a", "1"),
        assistant("\n"),
        assistant("done. \n", ""),
    ]
    assert [m["content"] for m in anthropic.encode(messages)["messages"]] == [
        "x",
        [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "a", "content": "1"}],
        "done.",
    ]


def test_thinking_that_nothing_follows_does_not_reach_anthropic() -> None:
    """A reply that was broken off while the model thought."""
    cut = assistant(Thinking("hm", "sig"))
    assert anthropic.encode([user("x"), cut, user("y")])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}
    ]
    late = assistant("a", Thinking("hm", "sig"), "b")
    assert [b["text"] for b in anthropic.encode([user("x"), late])["messages"][1]["content"]] == ["a", "b"]


def test_an_error_result_reaches_anthropic_as_text_only() -> None:
    shot = ToolResult("a", (Text("failed"), Image(data=PIXEL)), is_error=True)
    result = anthropic.encode([user("x"), CALLS, Message("tool", (shot,))])["messages"][2]["content"][0]
    assert [b["text"] for b in result["content"]] == ["failed", "[image]"]


def test_a_refusal_stays_in_the_view() -> None:
    payload = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "refusal": "No."}]
    assert openai.encode(view(openai.decode(payload))) == payload
