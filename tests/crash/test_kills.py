"""kill -9 at random moments: what was acknowledged is there, nothing is there by half, reopening needs no repair."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.messages import user
from clew.sessions import Compaction, Said, Session
from clew.sessions.view import project
from crash.writer import BATCH
from plain import Letters, opened

KILLS = 60
"""For each kind of writing; there are four kinds."""

SESSIONS = 6
"""How many sessions the kills of a kind are spread over: the others find a session that was killed before."""


class Writer:
    """The process of `writer.py`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("writer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def killed(self, lines: int, seconds: float, **job: Any) -> list[str]:
        """Starts a job, kills it so long after it has said so many lines, and returns all it said."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline().removeprefix("pid "))
        said = [self.process.stdout.readline().strip() for _ in range(lines)]
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        while (line := self.process.stdout.readline().strip()) != "end":
            said.append(line)
        return said


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.process.communicate()


@pytest.mark.parametrize("kind", ["appends", "batches", "compactions", "moves"])
def test_what_was_acknowledged_is_there(writer: Writer, tmp_path: Path, kind: str) -> None:
    random.seed(kind)
    path = tmp_path / "agent.db"
    acknowledged: dict[str, set[int]] = {}
    for n in range(KILLS):
        if n % (KILLS // SESSIONS) == 0:
            id, leaf = "", None
        lines, seconds = random.randint(1, 12), random.uniform(0.0, 0.01)
        said = writer.killed(lines, seconds, path=str(path), kind=kind, session=id or None)
        id = id or said[0].removeprefix("session ")
        known = acknowledged.setdefault(id, set())
        for line in said[1:]:
            known.update(int(i) for i in line.split() if line[0] != "@")
            leaf = int(line.split()[-1].removeprefix("@"))
        with opened(path, id, mode="read") as session:
            check(session, known, kind)
            newest = max(session.tree(), default=0)
            if newest > max(known, default=0):
                assert session.leaf == newest, "an entry and the leaf on it come together"
            elif leaf != session.leaf:
                assert kind == "moves"
                assert (leaf, session.leaf) == (newest, newest - 1), "only a move may have come after"
            leaf = session.leaf
            known.update(session.tree())
    for id, known in acknowledged.items():
        with opened(path, id) as session:
            check(session, known, kind)
            session.append(user("and it goes on"))


def check(session: Session, acknowledged: set[int], kind: str) -> None:
    entries = list(session.entries())
    ids = [e.id for e in entries]
    assert session.damage == ()
    assert ids == list(range(1, len(ids) + 1)), "no hole, and none by half"
    assert acknowledged <= set(ids)
    assert list(session.view.items) == list(project(session.branch(), Letters()).view.items)
    if kind == "batches":
        batches = Counter(e.body.message.text.split()[1] for e in entries if isinstance(e.body, Said) and e.key)
        assert set(batches.values()) <= {BATCH}, "a batch is there whole or not at all"
    if kind == "compactions":
        assert all(session.expand(e) for e in entries if isinstance(e.body, Compaction))


def test_a_store_killed_while_it_is_made_can_be_opened(writer: Writer, tmp_path: Path) -> None:
    random.seed(4)
    for n in range(40):
        path = tmp_path / f"{n}.db"
        said = writer.killed(0, random.uniform(0.0, 0.04), path=str(path), kind="appends")
        with opened(path) as session:
            session.append(user("works"))
            assert session.damage == ()
        if said:
            acknowledged = [int(i) for line in said[1:] for i in line.split()]
            with opened(path, said[0].removeprefix("session "), mode="read") as session:
                assert [e.id for e in session.entries()][: len(acknowledged)] == acknowledged
