"""The last resort: always fits, gives up as little as it can, and breaks nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.budget import Budget
from clew.errors import ContextOverflow
from clew.messages import Message, Text, Thinking, ToolCall, ToolResult, assistant, system, tool, user
from clew.policies.last_resort import last_resort
from clew.sessions.entries import Entry, Said
from clew.sessions.rules import violations
from clew.sessions.view import View, project
from clew.tokens import Heuristic
from conversations import broken_conversations, conversations

SIGNED = Thinking("let me see " * 30, "c2lnbmF0dXJl")


def view_of(messages: list[Message]) -> View:
    return project([Entry(i + 1, i or None, Said(m)) for i, m in enumerate(messages)], Heuristic()).view


def after(messages: list[Message], window: int, **options: int) -> View:
    view = view_of(messages)
    budget = Budget.of(window, **options)
    done = view.edited(last_resort(view, budget))
    assert violations(done.messages) == []
    assert done.tokens <= budget.input
    return done


def rounds(n: int, text: str) -> list[Message]:
    return [m for i in range(n) for m in (assistant(ToolCall(f"r{i}", "bash", "{}")), tool(f"r{i}", f"{i}: {text}"))]


def test_nothing_is_done_to_a_view_that_fits() -> None:
    view = view_of([user("hi"), assistant("hello")])
    assert last_resort(view, Budget.of(8_000)) == []


def test_old_results_go_first_and_only_as_many_as_it_takes() -> None:
    messages = [user("look at the files"), *rounds(30, "line\n" * 200)]
    done = after(messages, 12_000, target=6_000)
    assert done.tokens <= 6_000
    masked = [i.kind == "mask" for i in done.items if i.message.role == "tool"]
    assert masked == sorted(masked, reverse=True), "oldest first"
    assert not masked[-1], "the newest round is whole"
    assert done.messages[0] == user("look at the files")
    assert done.messages[2].results[0].text == "[old result left out: 1,003 characters]"
    assert len(done.items) == len(messages)


def test_huge_messages_lose_their_middle_before_rounds_are_given_up() -> None:
    essay = "beginning " + "字" * 30_000 + " end"
    done = after([user(essay), assistant("read"), user("and now?")], 8_000)
    short = done.messages[0].text
    assert short.startswith("beginning ")
    assert short.endswith(" end")
    assert "characters left out …]" in short
    assert done.messages[1:] == [assistant("read"), user("and now?")]


def test_the_oldest_rounds_become_an_extract_that_names_what_was_asked() -> None:
    talk = [m for i in range(200) for m in (user(f"第{i}个问题：修改 src/file_{i}.py"), assistant(f"answer {i} " * 20))]
    done = after([*talk, user("newest")], 8_000)
    assert done.messages[0].role == "user"
    assert done.items[0].kind == "summary"
    assert "第0个问题" in done.messages[0].text
    assert done.messages[-1] == user("newest")
    assert done.messages[-2] == talk[-1]


def test_one_turn_may_be_larger_than_the_window() -> None:
    done = after([system("s"), user("修好它"), *rounds(300, "x" * 400)], 8_000)
    assert user("修好它") in done.messages
    assert done.items[-1].kind == "message"
    assert done.messages[-1].results[0].text.startswith("299: ")


def test_a_newest_round_larger_than_the_window_is_shortened_and_its_arguments_stay_an_object() -> None:
    big = json.dumps({"path": "a.py", "text": "行\n" * 40_000, "deep": {"list": ["word " * 9_000]}}, ensure_ascii=False)
    calls = assistant(SIGNED, "writing", ToolCall("a", "write", big), ToolCall("b", "read", '{"path": "b.py"}'))
    results = Message("tool", (ToolResult("a", (Text("ok"),)), ToolResult("b", (Text("数" * 50_000),))))
    done = after([user("write it"), calls, results], 8_000)
    made = done.messages[1]
    assert made.role == "assistant"
    assert not [p for p in made.parts if isinstance(p, Thinking)], "an edited message loses its thinking as a whole"
    arguments = json.loads(made.calls[0].arguments)
    assert arguments["path"] == "a.py"
    assert "characters left out" in arguments["text"]
    assert made.calls[1] == calls.calls[1]
    assert done.messages[2].results[1].text.count("数") > 100


def test_thinking_of_messages_that_stay_is_untouched() -> None:
    replies = [assistant(SIGNED, "short")] * 3
    done = after([user("go"), *replies, *rounds(40, "y " * 500)], 8_000, target=6_000)
    assert [m for m in done.messages if m in replies]
    for message in done.messages:
        for part in message.parts:
            assert not isinstance(part, Thinking) or part == SIGNED


def test_what_cannot_be_shortened_is_left_out() -> None:
    crowd = assistant(*(ToolCall(f"call-{i}", "tool-with-a-long-name", "{}") for i in range(400)))
    results = Message("tool", tuple(ToolResult(f"call-{i}", (Text("r"),)) for i in range(400)))
    done = after([user("do it all"), crowd, results], 2_048)
    assert done.messages[-1] == user("do it all")


def test_the_fixed_part_alone_may_be_too_large() -> None:
    view = view_of([system("law " * 2_000), user("short"), assistant("a" * 9_000)])
    with pytest.raises(ContextOverflow):
        last_resort(view, Budget.of(2_048))


@given(st.one_of(conversations(), broken_conversations()), st.sampled_from((1_024, 2_048, 8_000)), st.floats(0.1, 1))
def test_it_always_fits(messages: list[Message], window: int, share: float) -> None:
    view = view_of(messages)
    budget = Budget.of(window, target=0.4)
    limit = int(budget.input * share)
    try:
        done = view.edited(last_resort(view, budget, limit))
    except ContextOverflow:
        return
    assert violations(done.messages) == []
    newest = view.last_user()
    floor = view.weigh(i for n, i in enumerate(view.items) if n == newest or (n < view.head() and i.kind == "message"))
    assert done.tokens <= max(limit, floor)
    for item in done.items:
        for call in item.message.calls:
            if item.kind == "shrink" and call not in [c for m in messages for c in m.calls]:
                assert isinstance(json.loads(call.arguments), dict)
