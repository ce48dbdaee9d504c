"""Replay: what it says is what a session under that policy really does."""

from __future__ import annotations

import pytest

from clew import Session, policies
from clew.lab.replay import run_replay
from clew.lab.result import Result
from clew.messages import Message, user
from clew.models import Extractive, Scripted
from clew.models.prices import Price
from clew.sessions.entries import Compaction, Said
from clew.tokens import Heuristic
from coding_session import coding_session

PRICE = Price("test", input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
NAMES = [listing.name for listing in policies.available()]


def replayed(messages: list[Message], policy: str = "pi", window: int = 6_000, **changes: object) -> Result:
    result, session = run_replay(
        messages,
        policies.policy(policy),
        window=window,
        model=changes.pop("model", Extractive()),
        counter=Heuristic(),
        price=PRICE,
    )
    session.close()
    return result


@pytest.mark.parametrize("name", NAMES)
def test_views_are_those_of_a_session(name: str) -> None:
    """Every moment's view, rebuilt from the deltas, is what a session fed by hand shows."""
    messages = coding_session()
    result = replayed(messages, name)
    shown: list[int] = []
    moments = iter(result.moments)
    with Session.open("memory://", policy=policies.policy(name), window=6_000) as session:
        for message in messages:
            if message.role == "assistant":
                session.messages()
                moment = next(moments)
                shown = [*shown[: moment.same], *moment.new]
                assert moment.sent == session.view.tokens <= 6_000
                assert [result.items[n].role for n in shown] == [m.role for m in session.view.messages]
                assert sum(result.items[n].tokens for n in shown) == session.view.count
            session.append(Message(message.role, message.parts))
    assert next(moments, None) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_message_has_a_fate(name: str) -> None:
    messages = coding_session()
    result, session = run_replay(
        messages, policies.policy(name), window=6_000, model=Extractive(), counter=Heuristic(), price=PRICE
    )
    assert sum(share.messages for share in result.fates.values()) == len(messages) == result.messages
    said = [e for e in session.branch() if isinstance(e.body, Said)]
    assert [e.body.message.parts for e in said] == [m.parts for m in messages]  # the log has them all, untouched
    assert sum(share.tokens for share in result.fates.values()) == sum(e.body.tokens for e in said)
    assert len(result.compactions) == sum(isinstance(e.body, Compaction) for e in session.branch()) > 0
    for compacted in result.compactions:
        assert compacted.after < compacted.before
        assert session.expand(compacted.entry)
    session.close()


def test_an_unchanged_prefix_is_cached_and_a_compaction_breaks_it() -> None:
    result = replayed(coding_session(), "pi")
    calls = {c.call for c in result.compactions}
    assert calls
    for number, moment in enumerate(result.moments):
        if number == 0:
            assert moment.cached == 0
        elif number in calls:
            assert moment.cached < result.moments[number - 1].sent
        else:
            assert moment.cached == result.moments[number - 1].sent
    assert 0 < result.cache_hits < 1


def test_the_bill_adds_up() -> None:
    result = replayed(coding_session(), "pi")
    cached = sum(m.cached for m in result.moments)
    expected = (cached * 0.3 + (result.sent - cached) * 3.75 + result.output * 15.0) / 1e6
    assert result.dollars == pytest.approx(expected)


def test_usage_of_the_recording_does_not_speak_for_the_replay() -> None:
    with_usage = coding_session()
    without = [Message(m.role, m.parts) for m in with_usage]
    assert [m.sent for m in replayed(with_usage).moments] == [m.sent for m in replayed(without).moments]


def test_a_model_that_fails_is_reported_and_the_replay_goes_on() -> None:
    result = replayed(coding_session(), "pi", model=Scripted(lambda call: "API Error: 500"))
    assert result.failures
    assert all(m.sent <= 6_000 for m in result.moments)
    assert len(result.moments) == sum(m.role == "assistant" for m in coding_session())


def test_calls_that_cannot_be_made_are_listed_and_the_replay_goes_on() -> None:
    messages = [*coding_session(1), user("word " * 20_000), *coding_session(1)[2:], *coding_session(1)[1:]]
    result = replayed(messages)
    huge = len(coding_session(1))
    after = next(n for n, m in enumerate(messages) if n > huge and m.role == "user")
    expected = [n for n in range(huge, after) if messages[n].role == "assistant"]
    assert [i.message for i in result.impossible] == expected
    assert all(i.needed > i.available for i in result.impossible)
    assert result.messages == len(messages)
    assert max(m.message for m in result.moments) == len(messages) - 1
    assert all(m.sent <= 6_000 for m in result.moments)


def test_the_window_must_fit_the_policy() -> None:
    from clew.errors import BadBudget

    with pytest.raises(BadBudget, match="window of 100"):
        replayed(coding_session(1), window=100)
