"""Imports that are killed, and imports at the same time: one session, and nothing in it twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.sessions import Session

LINES = 30_000


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough for several transactions."""
    path = tmp_path_factory.mktemp("transcript") / "long.jsonl"
    roles = ("user", "assistant")
    lines = (json.dumps({"role": roles[n % 2], "content": f"{n} " + "word " * 20}) for n in range(LINES))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def importing(transcript: Path, db: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "clew", "import", str(transcript), "--db", str(db)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def entries(db: Path) -> Sequence[str]:
    """The texts of the only session, which has no damage and no branches."""
    (row,) = Session.list(db)
    with Session.open(db, row.id, mode="read") as session:
        assert session.damage == ()
        assert len(session.branch()) == row.entries
        return [m.text for m in session.view.messages]


def test_a_killed_import_goes_on_where_it_was(transcript: Path, tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    chosen = random.Random(7)
    seen = 0
    for _ in range(6):
        with importing(transcript, db) as process:
            try:
                process.wait(chosen.uniform(0.3, 1.5))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
        stored = Session.list(db) if db.exists() else []
        now = len(entries(db)) if stored else 0
        assert now >= seen
        seen = now
    with importing(transcript, db) as process:
        assert process.wait(120) == 0
    said = entries(db)
    assert [int(text.split()[0]) for text in said] == list(range(LINES))


def test_imports_of_one_file_at_the_same_time_make_one_session(transcript: Path, tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    running = [importing(transcript, db) for _ in range(3)]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert any(code == 0 for _, code in ended)
    for (_, errors), code in ended:
        assert code == 0 or (code == 2 and b"is being written by" in errors), errors
    assert len(entries(db)) == LINES
