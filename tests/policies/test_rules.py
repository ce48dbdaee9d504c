"""The rules of a view find each fault of a broken log, and every view is free of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given

from clew.messages import Image, Message, Text, ToolCall, ToolResult, assistant, sanitized, system, tool, user
from clew.sessions.entries import Entry, Said
from clew.sessions.rules import RULES, Violation, violations
from clew.sessions.view import project
from clew.tokens import Heuristic
from conversations import broken_conversations, conversations

CALL = assistant(ToolCall("a", "bash"), ToolCall("b", "bash"))


@pytest.mark.parametrize(
    ("messages", "rule", "index"),
    [
        ([user("hi"), CALL, tool("a", "x")], "paired", 1),
        ([user("hi"), CALL, user("wait"), tool("a", "x"), tool("b", "y")], "paired", 1),
        ([user("hi"), tool("a", "x")], "paired", 1),
        ([user("hi"), CALL, tool("a", "x"), tool("b", "x"), tool("a", "again")], "paired", 4),
        ([assistant("hello")], "user first", 0),
        ([system("s"), tool("a", "x")], "user first", 1),
        ([user("hi"), assistant("")], "not empty", 1),
        ([user(" \n")], "not empty", 0),
        ([user(ToolCall("a", "bash"))], "parts by role", 0),
        ([user("hi"), Message("tool", (Text("x"),))], "parts by role", 1),
        ([user("cut in the middle \ud83d")], "whole characters", 0),
    ],
)
def test_each_fault_is_found(messages: list[Message], rule: str, index: int) -> None:
    assert (rule, index) in [(v.rule, v.index) for v in violations(messages)]


def test_calls_of_the_same_id_are_matched_in_order() -> None:
    twice = assistant(ToolCall("a", "bash"), ToolCall("a", "bash"))
    assert violations([user("hi"), twice, tool("a", "1"), tool("a", "2")]) == []
    (found,) = violations([user("hi"), twice, tool("a", "1")])
    assert found == Violation("paired", 1, "call 'a' has no result right behind it")


def test_an_image_alone_is_a_message() -> None:
    assert violations([user(Image(url="https://example.com/a.png"))]) == []
    assert violations([user("x"), CALL, Message("tool", (ToolResult("b"), ToolResult("a")))]) == []


@given(conversations(max_turns=2))
def test_valid_conversations_break_no_rule(messages: list[Message]) -> None:
    assert violations(messages) == []


@given(broken_conversations(max_breaks=8, max_turns=3, max_text=200))
def test_every_view_of_a_broken_log_breaks_no_rule(messages: list[Message]) -> None:
    state = project([], Heuristic())
    for i, message in enumerate(messages):
        clean, _ = sanitized(message)
        state = state.step(Entry(i + 1, i or None, Said(clean)))
        assert violations(state.view.messages) == []


def test_there_is_a_rule_for_each_word_of_the_law() -> None:
    assert set(RULES) == {"parts by role", "not empty", "user first", "paired", "whole characters"}
