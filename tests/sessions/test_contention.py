"""Several processes on one store, file or server: nothing is lost or doubled, one writes a session at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import LeaseLost, SessionBusy
from clew.messages import user
from clew.sessions import Said, Session
from plain import opened, texts
from servers import Postgres


@pytest.fixture(params=["file", "postgresql"])
def path(request: pytest.FixtureRequest, tmp_path: Path, postgres: Postgres) -> str:
    """Where a new store is."""
    return str(tmp_path / "agent.db") if request.param == "file" else postgres.address(postgres.database())


TESTS = Path(__file__).parents[1]

WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from clew.errors import ClewError, SessionBusy
from clew.messages import user
from plain import opened

def say(**what):
    print(json.dumps(what), flush=True)

job = json.loads(sys.argv[2])
say(ready=True)
sys.stdin.readline()
session = opened(job["path"], job.get("session"), if_busy=job.get("if_busy", "error"))
try:
    for n in range(job["count"]):
        session.append(user(f"{job['name']} {n}"))
    say(session=session.id, lineage=[a.session for a in session.lineage()])
except SessionBusy as busy:
    say(busy=busy.session, owner=busy.owner)
sys.stdin.readline()
session.close()
"""


class Worker:
    """A process that waits for the word, appends, reports, and waits again before it closes."""

    def __init__(self, **job: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(TESTS), json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate("\n")
        assert self.process.returncode == 0


def together(workers: list[Worker]) -> list[dict[str, object]]:
    for worker in workers:
        assert worker.hear() == {"ready": True}
    for worker in workers:
        worker.go()
    return [worker.hear() for worker in workers]


def test_four_processes_each_with_a_session_of_its_own(path: str) -> None:
    workers = [Worker(path=path, name=f"w{n}", count=100) for n in range(4)]
    reports = together(workers)
    for worker in workers:
        worker.end()
    assert len({r["session"] for r in reports}) == 4
    for n, report in enumerate(reports):
        with opened(path, str(report["session"]), mode="read") as session:
            assert texts(session) == [f"w{n} {i}" for i in range(100)]
            assert session.damage == ()


def test_four_processes_on_one_session_and_one_writes(path: str) -> None:
    with opened(path) as session:
        session.append(user("start"))
        id = session.id
    workers = [Worker(path=path, name=f"w{n}", count=20, session=id) for n in range(4)]
    reports = together(workers)
    wrote = [n for n, report in enumerate(reports) if "session" in report]
    assert len(wrote) == 1
    assert [r.get("busy") for r in reports].count(id) == 3
    with opened(path, id, mode="read") as session:
        assert texts(session) == ["start", *(f"w{wrote[0]} {i}" for i in range(20))]
    for worker in workers:
        worker.end()
    with opened(path, id) as session:
        session.append(user("after they closed"))


def test_those_who_ask_for_it_get_a_fork(path: str) -> None:
    with opened(path) as session:
        session.append(user("start"))
        id = session.id
    workers = [Worker(path=path, name=f"w{n}", count=20, session=id, if_busy="fork") for n in range(4)]
    reports = together(workers)
    for worker in workers:
        worker.end()
    assert sorted(len(r["lineage"]) for r in reports) == [0, 1, 1, 1]  # type: ignore[arg-type]
    assert len({r["session"] for r in reports}) == 4
    for n, report in enumerate(reports):
        with opened(path, str(report["session"]), mode="read") as session:
            own = [f"w{n} {i}" for i in range(20)]
            assert texts(session)[-20:] == own
            assert texts(session)[0] == "start"


def test_a_killed_writers_session_is_taken_over_at_once(path: str) -> None:
    with opened(path) as session:
        session.append(user("start"))
        id = session.id
    worker = Worker(path=path, name="w", count=5, session=id)
    together([worker])
    with opened(path, id) as session:
        with pytest.raises(SessionBusy, match="being written by"):
            session.append(user("not yet"))
        worker.process.kill()
        worker.process.communicate()
        assert session.append(user("mine now")).parent == 6
        assert texts(session) == ["start", *(f"w {i}" for i in range(5)), "mine now"]


def test_a_writer_that_slept_too_long_finds_out(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    with opened(path) as slow, opened(path, slow.id) as other:
        slow.append(user("a"))
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 31)
        other.append(user("b"))
        for _ in range(2):
            with pytest.raises(LeaseLost):
                slow.append(user("c"))
        slow.refresh()
        assert texts(slow) == ["a", "b"]
        with opened(path, slow.id, if_busy="fork") as fork:
            fork.append(user("c"))
            assert fork.lineage()[0].session == slow.id
            assert texts(fork) == ["a", "b", "c"]


def test_an_expired_lease_that_nobody_took_is_still_good(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    with opened(path) as session:
        session.append(user("a"))
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3600)
        session.append(user("b after a long model call"))
        assert session.leaf == 2


def test_two_sessions_objects_in_one_process_keep_apart(path: str) -> None:
    with opened(path) as one, opened(path, one.id) as two:
        one.append(user("a"))
        with pytest.raises(SessionBusy):
            two.append(user("b"))
        one.close()
        assert two.append(user("b")).parent == 1


def test_the_writer_is_named_in_the_error(path: str) -> None:
    import os

    with opened(path) as one, opened(path, one.id) as two:
        one.append(user("a"))
        with pytest.raises(SessionBusy) as busy:
            two.append(user("b"))
        assert f":{os.getpid()}:" in busy.value.owner
        assert [e.body for e in two.entries()] == [], "what it saw when it was opened"
        two.refresh()
        assert [e.body for e in two.entries()] == [Said(user("a"), 1, "letters")]


def test_listing_does_not_wait_for_writers(path: str) -> None:
    with opened(path) as session:
        session.append(user("a"))
        with session._log.store.writing():
            assert [row.id for row in Session.list(path)] == [session.id]
            with opened(path, session.id, mode="read") as reader:
                assert texts(reader) == ["a"]
