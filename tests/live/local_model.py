"""A real model in a file, through `clew chat`, the engine and a summary. Not part of `make test`: `.ci/live` fetches
the model and runs it. CLEW_LIVE_MODEL is the path of a GGUF file.

A model of half a billion parameters knows little: what is tested is that all works together, not what it says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew import Session, policies
from clew.agent import AgentModule, Delta, Ended
from clew.errors import OverflowReply
from clew.messages import assistant, user
from clew.models import Local, ModelCall
from clew.sessions.entries import Compaction, Failed

MODEL = Path(os.environ["CLEW_LIVE_MODEL"])
WINDOW = 2_048


@pytest.fixture(scope="module")
def model() -> Local:
    return Local(MODEL, context_window=WINDOW, temperature=0)


def test_chat(tmp_path: Path) -> None:
    """Two turns and a second chat that recalls the first, offline, through pipes."""

    def chat(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "clew", "chat", "--model", f"local:{MODEL}", "--no-tools", *arguments],
            env={**os.environ, "CLEW_DB": str(tmp_path / "clew.db")},
            input=lines,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        print(done.stdout, done.stderr)
        assert done.returncode == 0, done.stderr
        return done

    first = chat(lines="My cat is called 小白 and is three years old. Answer in one short sentence.\n/cost\n/tree\n")
    assert "1 model calls" in first.stdout
    again = chat("What is the name of my cat? Answer with the name only.")
    assert "recalled" in again.stderr
    assert "小白" in again.stdout


def test_a_stream_can_be_stopped(model: Local) -> None:
    pieces = model.stream(ModelCall((user("Count from one to one hundred in words."),)))
    assert isinstance(next(pieces), Delta)
    pieces.close()
    assert model.complete(ModelCall((user("Say hello."),), max_output=8)).text


def test_what_is_too_long_is_an_overflow(model: Local) -> None:
    with pytest.raises(OverflowReply):
        model.complete(ModelCall((user("word " * 2 * WINDOW),)))


def test_the_context_fits_whatever_its_summaries_are_worth(model: Local) -> None:
    policy = policies.pi(keep=100, reserve=400)
    with Session.open("memory://", policy=policy, model=model, window=WINDOW) as session:
        for n in range(60):
            session.append(user(f"Note {n}: Ada paid invoice {8_000 + n} for the harbour of Bergen."))
            session.append(assistant(f"Noted: invoice {8_000 + n} is paid."))
        before = session.view.tokens
        session.messages()
        assert before > policy.budget(WINDOW).trigger
        assert session.view.tokens <= policy.budget(WINDOW).input
        print([entry.body for entry in session.branch() if isinstance(entry.body, Compaction | Failed)])


def test_the_engine_streams_its_answer(model: Local) -> None:
    with Session.open("memory://", policy=policies.pi(), model=model) as session:
        *events, last = AgentModule(model, history=session, instructions="Answer in one word.").stream("2 + 2 = ?")
        assert isinstance(last, Ended)
        assert last.result.final_result
        assert any(isinstance(one, Delta) for one in events)
