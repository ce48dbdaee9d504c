"""Real recordings under every policy, in small and large windows: every view is what any provider accepts.

The views are checked by `provider_rules`, which shares no code with Clew: every one right after a
compaction, and every sixteenth of those that only grew; for the example session every single one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clew import Session, policies
from clew.codecs import anthropic, gemini, openai, responses
from clew.errors import ContextOverflow
from clew.messages import Message
from clew.models import Extractive
from clew.sessions.rules import violations as broken_rules
from clew.tokens import Heuristic
from clew.transcripts import Recording, recording
from provider_rules import violations
from recordings import RECORDINGS

HERE = Path(__file__).parents[2]
FOLDERS = ("claude-code", "pi", "openclaw", "openai-messages", "mini-swe-agent")
SHARED = [p for folder in FOLDERS for p in sorted((RECORDINGS / folder).glob("*")) if not p.name.endswith(".meta.json")]
EXAMPLE = HERE / "examples" / "session.jsonl"
POLICIES = [
    *(listing.name for listing in policies.available()),
    "pi:version=0.73.1",
    "qitos:lossless=false,summary_role=system",
]
WINDOWS = (8_000, 32_000, 200_000)
PAYLOADS = {
    "openai": openai.encode,
    "responses": responses.encode,
    "anthropic": anthropic.encode,
    "gemini": gemini.encode,
}
COUNTER = Heuristic()


def runs(path: Path) -> list[Recording]:
    first = recording(path)
    return [first, *(recording(path, run=n) for n in range(2, first.runs + 1))]


def newest_words(messages: list[Message]) -> Message | None:
    return next((m for m in reversed(messages) if m.role == "user" and not m.blank), None)


def fitted(session: Session) -> dict[str, int] | None:
    """Asks for the messages; the figures when they cannot fit."""
    try:
        session.messages()
    except ContextOverflow as error:
        return error.figures
    return None


def replayed(tape: Recording, policy: str, window: int, every: int) -> int:
    """Replays and checks; returns how many views were checked."""
    checked = calls = 0
    said: list[Message] = []
    chosen = policies.policy(policy)
    limit = chosen.budget(window).input
    with Session.open("memory://", policy=chosen, model=Extractive(), window=window, counter=COUNTER) as session:
        for message in tape.messages:
            plain = Message(message.role, message.parts)
            if message.role == "assistant" and not message.blank:
                leaf = session.leaf
                overflow = fitted(session)
                if overflow is not None:  # true only when what can never be left out does not fit
                    newest = newest_words(said)
                    fixed = [*(m for m in said if m.role == "system"), *([newest] if newest else [])]
                    assert overflow["needed"] == sum(map(COUNTER.message, fixed)) > limit
                    session.append(plain)
                    said.append(plain)
                    continue
                assert session.view.tokens <= limit
                if not session.view.items:  # a file cut in the middle of a round: nothing was said yet
                    assert all(m.role == "tool" for m in said)
                elif session.leaf != leaf or calls % every == 0:
                    checked += 1
                    messages = session.view.messages
                    assert broken_rules(messages) == []
                    for provider, encode in PAYLOADS.items():
                        assert violations(encode(messages), provider) == []
                    newest = newest_words(said)
                    assert newest is None or newest.parts in [m.parts for m in messages]
                calls += 1
            session.append(plain)
            said.append(plain)
    return checked


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_example_session(policy: str, window: int) -> None:
    tape = recording(EXAMPLE)
    every = 1 if window < 200_000 else 8  # the views of the large window hold everything said so far
    assert replayed(tape, policy, window, every) > 20


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("path", SHARED, ids=lambda p: p.name)
def test_recordings_of_other_tools(path: Path, policy: str) -> None:
    for tape in runs(path):
        for window in WINDOWS:
            assert replayed(tape, policy, window, every=16) >= bool(tape.messages)
