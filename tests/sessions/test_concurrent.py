"""One session, several threads or tasks: nothing is lost, nothing is half done."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clew import policies
from clew.errors import StoreError, UnknownName
from clew.messages import assistant, user
from clew.models import ModelCall, Reply, Scripted
from clew.sessions import Compaction, Label, Said, Session
from clew.sessions.rules import violations

WORDS = "word " * 60
SUMMARY = "Words were exchanged, and nothing is left to do."


class Waiting(Scripted):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def acomplete(self, call: ModelCall) -> Reply:
        self.asked.set()
        await self.go.wait()
        return Reply(assistant(SUMMARY))


def opened(path: Path, model: Scripted | None = None) -> Session:
    policy = policies.pi(keep=500, reserve=500)
    return Session.open(path / "agent.db", policy=policy, model=model, window=4_000)


def fill(session: Session, turns: int = 40) -> None:
    session.append_many([m for n in range(turns) for m in (user(f"q{n} {WORDS}"), assistant(f"a{n} {WORDS}"))])


def test_threads_append_one_after_the_other(tmp_path: Path) -> None:
    with opened(tmp_path) as session:

        def write(thread: int) -> list[int]:
            ids = []
            for n in range(25):
                ids.append(session.append(user(f"{thread}/{n} {WORDS}")).id)
                session.append(assistant(WORDS))
                assert session.view.tokens > 0
                assert not violations(session.messages())
            return ids

        with ThreadPoolExecutor(4) as pool:
            ids = [id for found in pool.map(write, range(4)) for id in found]
        said = [e for e in session.branch() if isinstance(e.body, Said)]
        assert len(said) == 200
        assert sorted(ids) == [e.id for e in said if e.body.message.role == "user"]
        assert session.damage == ()
        view = session.messages()
    with Session.open(tmp_path / "agent.db", session.id, mode="read") as again:
        assert again.messages() == view


def test_the_log_may_grow_while_it_is_read(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        fill(session, 3)
        for entry in session.entries():
            session.label(entry, f"entry {entry.id}")
        assert [e.body.target for e in session.entries() if isinstance(e.body, Label)] == [1, 2, 3, 4, 5, 6]


def test_a_cancelled_compaction_leaves_nothing(tmp_path: Path) -> None:
    async def cancelled() -> None:
        model = Waiting()
        with opened(tmp_path, model) as session:
            fill(session)
            before, entries = session.view.messages, list(session.entries())
            task = asyncio.create_task(session.amessages())
            await model.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session.view.messages == before
            assert list(session.entries()) == entries
            model.go.set()
            shown = await session.amessages()
            assert SUMMARY in shown[0].text

    asyncio.run(cancelled())


def test_tasks_that_compact_at_the_same_time_compact_once(tmp_path: Path) -> None:
    async def together() -> None:
        model = Waiting()
        with opened(tmp_path, model) as session:
            fill(session)
            tasks = [asyncio.create_task(session.amessages()) for _ in range(3)]
            await model.asked.wait()
            session.append(user("said meanwhile"))
            model.go.set()
            for shown in await asyncio.gather(*tasks):
                assert shown[-1] == user("said meanwhile")
                assert not violations(shown)
            assert len([e for e in session.entries() if isinstance(e.body, Compaction)]) == 1

    asyncio.run(together())


def test_a_branch_taken_during_a_compaction_is_compacted_itself(tmp_path: Path) -> None:
    """What was being made is of another branch by then, but the request must fit all the same."""

    async def moved() -> None:
        model = Waiting()
        with opened(tmp_path, model) as session:
            fill(session)
            first = session.leaf
            session.branch_to(None)
            fill(session)
            task = asyncio.create_task(session.amessages())
            await model.asked.wait()
            session.branch_to(first)
            model.go.set()
            await task
            assert session.view.tokens <= 3_500
            (made,) = (e for e in session.entries() if isinstance(e.body, Compaction))
            assert made.parent == first

    asyncio.run(moved())


def test_closing_during_a_compaction_is_an_error_of_its_own(tmp_path: Path) -> None:
    async def closed() -> None:
        model = Waiting()
        session = opened(tmp_path, model)
        fill(session)
        task = asyncio.create_task(session.amessages())
        await model.asked.wait()
        session.close()
        model.go.set()
        with pytest.raises(StoreError, match="has been closed"):
            await task

    asyncio.run(closed())


def test_a_fork_that_cannot_be_made_does_not_keep_the_store_open() -> None:
    session = Session.open("memory://")
    fill(session, 1)
    with pytest.raises(UnknownName):
        session.fork(99)
    session.close()
    with pytest.raises(StoreError, match="has been closed"):
        session.append(user("x"))
