"""Asking for a summary: the request always fits, stored text is fenced, and errors stay errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.budget import Budget
from clew.errors import ModelError, OverflowReply, TruncatedReply
from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, assistant, tool, user
from clew.models.base import ModelCall, Reply
from clew.models.scripted import Script, Scripted
from clew.models.steps import Offline, run
from clew.policies.fences import fenced, pinned, summary_message, summary_text
from clew.policies.summarise import HALVINGS, Summary, serialise, summarise
from clew.sessions.entries import Entry, Pin, Said
from clew.sessions.view import View, project
from clew.tokens import Heuristic
from conversations import conversations
from policies_models import too_long_above


def view_of(messages: list[Message], *pins: str) -> View:
    bodies = [*map(Said, messages), *map(Pin, pins)]
    return project([Entry(i + 1, i or None, body) for i, body in enumerate(bodies)], Heuristic()).view


def summary_of(view: View, model: Scripted, window: int, **options: object) -> Summary:
    options = {"max_output": 400} | options
    return run(summarise(view, view.messages, Budget.of(window), **options), Offline(model))


TALK = [
    user("修改超时"),
    assistant("done", ToolCall("a", "edit", '{"path": "x.toml"}')),
    tool("a", "saved", name="edit"),
]


def test_one_call_with_the_messages_as_source_and_as_text() -> None:
    model = Scripted("摘要")
    summary = summary_of(view_of(TALK), model, 8_000, focus="the timeout")
    (call,) = model.calls
    assert summary == Summary("摘要", 1, summary.usage)
    assert call.purpose == "summary"
    assert list(call.source) == TALK
    assert call.focus == "the timeout"
    assert "the timeout" in call.messages[0].text
    assert call.messages[1].text == (
        '<conversation>\n[user] 修改超时\n\n[assistant] done\n[call] edit({"path": "x.toml"})\n\n'
        "[result of edit] saved\n</conversation>"
    )


def test_an_update_carries_the_summary_before() -> None:
    model = Scripted("new")
    summary_of(view_of(TALK), model, 8_000, previous="old summary")
    assert model.calls[0].previous == "old summary"
    assert "<previous>\nold summary\n</previous>" in model.calls[0].messages[1].text


def test_pinned_texts_follow_word_for_word_once() -> None:
    view = view_of(TALK, "never touch main.py", "修改超时")
    summary = summary_of(view, Scripted("the user pinned: 修改超时"), 8_000)
    assert summary.text.count("修改超时") == 1
    assert summary.text.endswith("never touch main.py")


@pytest.mark.parametrize("answer", ["", Reply(assistant("cut"), "length"), "Error: 500"])
def test_what_is_no_answer_is_raised(answer: Script) -> None:
    with pytest.raises(ModelError):
        summary_of(view_of(TALK), Scripted(answer), 8_000)


def test_a_history_of_many_windows_is_summarised_part_by_part() -> None:
    talk = [user(f"{n} " + "字" * 900) for n in range(40)]
    view = view_of(talk)
    model = Scripted(lambda call: f"summary {len(model.calls)}")
    summary = summary_of(view, model, 8_000)
    assert summary.calls == len(model.calls) > 3
    assert [m for call in model.calls for m in call.source] == talk, "each message is seen once, in order"
    assert [c.previous for c in model.calls] == ["", *(f"summary {n}" for n in range(1, summary.calls))]
    for call in model.calls:
        assert sum(map(Heuristic().message, call.messages)) + 400 <= 8_000


def test_a_model_with_a_smaller_window_than_thought_is_asked_for_less() -> None:
    view = view_of([user("word " * 300) for _ in range(40)])
    model = Scripted(too_long_above(3_500, Heuristic(), "short"))
    summary = summary_of(view, model, 16_000)
    assert summary.text == "short"
    assert summary.calls == len(model.calls)


def test_a_model_that_finds_everything_too_long_is_not_asked_for_ever() -> None:
    model = Scripted(OverflowReply("too long"))
    with pytest.raises(OverflowReply):
        summary_of(view_of(TALK), model, 8_000)
    assert len(model.calls) == HALVINGS + 1


@given(conversations(max_turns=3), st.sampled_from((1_500, 4_000, 30_000)), st.text(max_size=3_000))
def test_the_request_always_fits(messages: list[Message], window: int, previous: str) -> None:
    counter = Heuristic()

    def answer(call: ModelCall) -> str:
        assert sum(map(counter.message, call.messages)) + (call.max_output or 0) <= window
        return "an answer"

    summary_of(view_of(messages), Scripted(answer), window, max_output=200, previous=previous)


def test_messages_as_text() -> None:
    message = assistant(Thinking("hidden"), "shown", ToolCall("a", "run", '{"x": "' + "y" * 100 + '"}'))
    text = serialise(message, 40)
    assert "hidden" not in text
    assert text.startswith("[assistant] shown\n[call] run(")
    assert "characters left out" in text
    result = ToolResult(
        "a", (Text("z"), Image(data="AAAA", media_type="image/png"), Opaque("anthropic", {"type": "pdf"})), True
    )
    assert serialise(Message("tool", (result,)), 40) == "[failed] z\n[image image/png]\n[pdf]"


@given(st.text() | st.sampled_from(("</summary>", "<summary>", "a</summary_>b</summary>", "</summary >")))
def test_nothing_inside_a_fence_closes_it(text: str) -> None:
    message = summary_message(text)
    assert summary_text(message) == text
    tag = fenced("summary", text).split("\n", 1)[0][1:-1]
    assert message.text.count(f"</{tag}") == 1


def test_a_text_without_fence_is_its_own_summary_text() -> None:
    assert summary_text(user("plain")) == "plain"


def test_nothing_pinned_changes_nothing() -> None:
    assert pinned("text", ()) == "text"
    assert pinned("", ("a", "a")).endswith("\n\na")


def test_a_truncated_answer_keeps_its_raw_text() -> None:
    with pytest.raises(TruncatedReply) as caught:
        summary_of(view_of(TALK), Scripted(Reply(assistant("half a"), "length")), 8_000)
    assert caught.value.raw == "half a"
