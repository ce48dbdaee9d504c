"""Every policy in a session: the log only grows, a second reader sees the same view, and nothing is out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from clew.errors import ContextOverflow
from clew.messages import Message
from clew.models.scripted import Scripted
from clew.policies import available, policy
from clew.sessions.entries import Compaction, Entry, Failed, Said
from clew.sessions.rules import violations
from clew.sessions.session import Session
from clew.storage import Store, open_store
from conversations import broken_conversations, conversations
from policies_models import ANSWERS

WINDOW = 3_000


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """One store for the sessions of all examples."""
    with closing(open_store("memory://")) as opened:
        yield opened


@pytest.mark.parametrize("name", [listing.name for listing in available()])
@given(
    messages=st.one_of(*(kind(max_turns=2, max_text=2_000) for kind in (conversations, broken_conversations))),
    answer=st.sampled_from(sorted(ANSWERS)),
)
def test_a_session_under_a_policy(store: Store, name: str, messages: list[Message], answer: str) -> None:
    session = Session.open(store, policy=policy(name), model=Scripted(ANSWERS[answer]), window=WINDOW)
    half: list[Entry] = []
    for i, message in enumerate(messages):
        session.append(message)
        try:
            shown = session.messages()
        except ContextOverflow:
            return
        assert violations(shown) == []
        if i == len(messages) // 2:
            half = list(session.entries())
    log = list(session.entries())
    assert log[: len(half)] == half, "the log is append-only"
    assert [e.body.message for e in log if isinstance(e.body, Said)] == messages
    other = Session.open(store, session.id, mode="read", policy=policy(name), window=WINDOW)
    assert json.encode(other.view.messages) == json.encode(session.view.messages)
    assert other.view.tokens == session.view.tokens <= policy(name).budget(WINDOW).input
    for entry in log:
        if isinstance(entry.body, Compaction):
            assert all(isinstance(e.body, Said | Compaction) for e in session.expand(entry))
        if isinstance(entry.body, Failed):
            assert entry.body.failure.reason
