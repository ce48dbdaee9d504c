"""Whatever a message holds: what is encoded can be decoded, and is what it was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadPayload
from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage, assistant, tool, user
from clew.sessions.entries import Said
from clew.sessions.stored import decoded, encoded

right: dict[str, st.SearchStrategy[Any]] = {
    "meta": st.sampled_from([{}, {"openai": {"a": [1, None, 2.5]}}]),
    "is_error": st.booleans(),
    "role": st.sampled_from(["system", "user", "assistant", "tool"]),
    "usage": st.sampled_from([None, Usage(), Usage(3, 2, 1), Usage("3"), Usage(2.5)]),  # type: ignore[arg-type]
    "data": st.sampled_from(["", "aGk=", {}, {"type": "x"}]),
}
wrong = st.sampled_from([None, 5, True, 2.5, "a", [], ["a"], {}, {"a": 1}, (), Text("a"), user("a"), b"a", {1: 2}])


def made(kind: type[Any], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Structs of this kind with, now and then, anything in any field."""
    choices = right | known
    fields = {name: st.one_of(*[choices.get(name, st.text(max_size=3))] * 12, wrong) for name in kind.__struct_fields__}
    return st.builds(kind, **fields)


leaves = st.one_of(*(made(kind) for kind in (Text, Image, ToolCall, Thinking, Opaque)))
results = made(ToolResult, content=st.lists(leaves, max_size=2).map(tuple))
messages = made(Message, parts=st.lists(leaves | results, max_size=3).map(tuple))


@given(messages)
def test_what_is_encoded_can_be_decoded(message: Message) -> None:
    try:
        data = encoded(Said(message))
    except (BadPayload, UnicodeEncodeError):
        return
    body = decoded(data)
    assert decoded(encoded(body)) == body


@pytest.mark.parametrize("message", [user("a"), assistant("a", ToolCall("c", "bash")), tool("c", "b")])
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert decoded(encoded(Said(message, 3, "x"))) == Said(message, 3, "x")


def test_a_call_within_a_result_is_refused() -> None:
    with pytest.raises(BadPayload, match="content"):
        encoded(Said(Message("tool", (ToolResult("c", (ToolCall("d", "bash"),)),))))  # type: ignore[arg-type]


def test_the_damage_is_told_by_msgspec() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decoded(b'{"type":"message","message":{"role":"nobody"}}')
