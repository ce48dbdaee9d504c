"""The shared conversation strategies give what they promise."""

from __future__ import annotations

from hypothesis import given, settings
from tests.conversations import broken_conversations, conversations

from clew.messages import Message


def paired(messages: list[Message]) -> bool:
    """Whether every call is answered right after its message, once, and nothing else is answered."""
    waiting: list[str] = []
    for m in messages:
        if m.role == "tool":
            for r in m.results:
                if r.call_id not in waiting:
                    return False
                waiting.remove(r.call_id)
        elif waiting:
            return False
        else:
            waiting = [c.id for c in m.calls]
    return not waiting


@given(conversations(usage=True))
def test_conversations_are_valid(messages: list[Message]) -> None:
    assert paired(messages)
    spoken = [m for m in messages if m.role != "system"]
    assert spoken[0].role == "user"
    assert all(not m.blank for m in messages)
    assert all((m.usage is not None) == (m.role == "assistant") for m in messages)


@settings(max_examples=50)
@given(broken_conversations(max_turns=2))
def test_broken_conversations_are_lists_of_messages(messages: list[Message]) -> None:
    assert all(isinstance(m, Message) for m in messages)
