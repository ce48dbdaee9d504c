"""When a session compacts, what it commits, and what it does when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.errors import BadBudget, EmptyReply, OverflowReply, RateLimited
from clew.messages import assistant, user
from clew.models.base import ModelCall, Reply
from clew.models.steps import Failure, ReadFile, Steps
from clew.sessions import Compaction, Draft, Drop, Due, Failed, Replace, Session, View, compaction, pack
from plain import Echo, Older, opened, texts


def fill(session: Session, turns: int = 5) -> None:
    for n in range(turns):
        session.append_many([user(f"question {n:02}"), assistant(f"answer {n:02}..")])


def bodies(session: Session, kind: type) -> list[object]:
    return [e.body for e in session.entries() if isinstance(e.body, kind)]


def test_messages_compacts_when_due_and_the_log_keeps_everything() -> None:
    model = Echo("summary")
    with opened(policy=Older(), model=model) as session:
        fill(session)
        logged = list(session.entries())
        assert len(session.view.items) == 10
        assert texts(session)[:1] == ["question 00"]
        shown = session.messages()
        assert [m.text for m in shown] == ["summary", "question 04", "answer 04.."]
        assert session.view.tokens <= 100
        entry = session.branch()[-1]
        assert isinstance(entry.body, Compaction)
        assert (entry.body.before, entry.body.after, entry.body.reason) == (110, 29, "threshold")
        assert [*session.entries()][:10] == logged
        assert session.expand(entry) == logged[:8]
        assert session.messages() == shown
        assert len(model.calls) == 1
        session.branch_to(10)
        assert len(session.view.items) == 10


def test_a_reopened_session_shows_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", policy=Older()) as session:
        fill(session, 30)
        for n in range(30):
            session.append(user(f"more {n}"))
            session.messages()
        shown, id = session.messages(), session.id
    with opened(tmp_path / "a.db", id) as session:
        assert session.messages() == shown


def test_a_failed_attempt_leaves_the_view_and_is_logged() -> None:
    with opened(policy=Older(), model=Echo(EmptyReply("nothing came back", raw="…"))) as session:
        fill(session)
        before = session.view
        assert session.messages() == before.messages
        assert session.messages() == before.messages
        assert [f.failure.attempt for f in bodies(session, Failed)] == [1, 2]  # type: ignore[attr-defined]
        session.model = Echo("summary")
        assert len(session.messages()) == 3
        session.model = Echo(EmptyReply("again"))
        fill(session)
        session.messages()
        assert [f.failure.attempt for f in bodies(session, Failed)] == [1, 2, 1]  # type: ignore[attr-defined]


def test_failures_are_counted_by_branch_and_after_reopening(tmp_path: Path) -> None:
    failing = Echo(EmptyReply("no"))
    with opened(tmp_path / "a.db", policy=Older(), model=failing) as session:
        fill(session)
        session.messages()
        id = session.id
    with opened(tmp_path / "a.db", id, policy=Older(), model=failing) as session:
        session.messages()
        session.branch_to(10)
        session.messages()
        assert [f.failure.attempt for f in bodies(session, Failed)] == [1, 2, 1]  # type: ignore[attr-defined]


def test_an_error_the_policy_does_not_handle_comes_out_and_changes_nothing() -> None:
    class Unhandled(Older, frozen=True):
        def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
            yield ModelCall(())
            raise AssertionError

    with opened(policy=Unhandled(), model=Echo(RateLimited("slow down"))) as session:
        fill(session)
        with pytest.raises(RateLimited):
            session.messages()
        assert (session.leaf, len(session.view.items)) == (10, 10)


class Useless(Older, frozen=True):
    """Compacts without getting smaller."""

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        yield ModelCall(())
        last = view.items[-1]
        return compaction(view, [Replace(last.ids, user(last.message.text))], due, policy="useless")


class TwoByTwo(Older, frozen=True):
    """Drops two messages a compaction."""

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        yield ModelCall(())
        return compaction(view, [Drop(view.items[0].ids + view.items[1].ids)], due, policy="two by two")


@pytest.mark.parametrize(("policy", "attempts"), [(Useless(), 1), (TwoByTwo(limit=10), 3)])
def test_compactions_in_one_call_are_bounded(policy: Older, attempts: int) -> None:
    model = Echo()
    with opened(policy=policy, model=model) as session:
        fill(session)
        session.messages()
        assert len(model.calls) == attempts
        assert len(bodies(session, Compaction)) == attempts


def test_compact_by_hand_has_a_focus_and_may_find_nothing_to_do() -> None:
    model = Echo("short")
    with opened(policy=Older(limit=10_000, keep=1), model=model) as session:
        fill(session, 1)
        session.messages()
        assert model.calls == []
        entry = session.compact(focus="the parser")
        assert entry is not None
        assert isinstance(entry.body, Compaction)
        assert (entry.body.reason, model.calls[0].focus) == ("manual", "the parser")
        session.rewind()
        assert session.compact() is None


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (OverflowReply("too much"), True),
        (ValueError("Error code: 400 - prompt is too long: 210000 tokens > 200000 maximum"), True),
        (ValueError("This model's maximum context length is 8192 tokens"), True),
        (ValueError("input token count (1200000) exceeds the maximum number of tokens allowed"), True),
        (ValueError("{'code': 'context_length_exceeded'}"), True),
        (ValueError("413 (no body)"), True),
        (ValueError("Throttling error: too many tokens, please wait"), False),
        (ValueError("429: rate limit; too many tokens per minute"), False),
        (ValueError("connection reset"), False),
        (ValueError(""), False),
    ],
)
def test_recover_compacts_after_an_overflow_only(error: Exception, known: bool) -> None:
    with opened(policy=Older(limit=10_000)) as session:
        fill(session)
        assert session.recover(error) is known
        reasons = [c.reason for c in bodies(session, Compaction)]  # type: ignore[attr-defined]
        assert reasons == (["overflow"] if known else [])
        assert session.recover(error) is False, "the summary and the last messages are all there is"


def test_recover_knows_the_status_of_a_body_that_is_too_large() -> None:
    class Refused(Exception):
        status_code = 413

    with opened(policy=Older(limit=10_000)) as session:
        fill(session)
        assert session.recover(Refused("Request Entity Too Large"))
    with opened() as session:
        fill(session)
        assert not session.recover(Refused())


def test_the_window_given_wins_over_the_models() -> None:
    seen: list[int] = []

    class Watching(Older, frozen=True):
        def budget(self, window: int) -> Budget:
            seen.append(window)
            return Budget.of(window)

    opened(policy=Watching(), window=777).close()
    opened(policy=Watching(), model=Echo(context_window=888)).close()
    assert seen == [777, 888]


def test_a_budget_that_cannot_work_makes_no_session(tmp_path: Path) -> None:
    opened(tmp_path / "a.db").close()
    for window in (5, 0):
        with pytest.raises(BadBudget):
            opened(tmp_path / "a.db", policy=Older(), window=window)
    assert len(Session.list(tmp_path / "a.db")) == 1


def test_a_policy_reads_files_through_the_session() -> None:
    answers: list[str | None] = []

    class Reading(Older, frozen=True):
        def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
            answers.append((yield ReadFile("src/a.py")))
            return None

    for reader in (None, {"src/a.py": "x = 1"}.get):
        with opened(policy=Reading(), reader=reader) as session:
            session.compact()
    assert answers == [None, "x = 1"]


def test_lone_surrogates_in_a_summary_do_not_stop_its_commit() -> None:
    with opened(policy=Older(), model=Echo("cut \ud83d here")) as session:
        fill(session)
        assert session.messages()[0].text == "cut \ufffd here"


# -- async


class Waiting(Echo):
    """A model whose async calls let something else happen first."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__("summary")
        self.meanwhile = meanwhile

    async def acomplete(self, call: ModelCall) -> Reply:
        await asyncio.sleep(0)
        self.meanwhile()
        return self.complete(call)


def test_async_calls_do_the_same() -> None:
    async def go() -> list[str]:
        with opened(policy=Older(limit=10_000, keep=4), model=Echo("s")) as session:
            fill(session)
            assert len(await session.amessages()) == 10
            assert await session.acompact() is not None
            assert await session.arecover(OverflowReply("too much")) is False
            assert await session.arecover(ValueError("other")) is False
            return texts(session)

    assert asyncio.run(go()) == ["s", "question 03", "answer 03..", "question 04", "answer 04.."]


def test_what_is_appended_while_a_summary_is_made_is_kept() -> None:
    with opened(policy=Older(keep=2)) as session:
        fill(session)
        session.model = Waiting(lambda: session.append(user("by the way")))
        assert [m.text for m in asyncio.run(session.amessages())] == [
            "summary",
            "question 04",
            "answer 04..",
            "by the way",
        ]


@pytest.mark.parametrize("leave", [lambda s: s.branch_to(4), lambda s: s.rewind(5), lambda s: s.branch_to(None)])
def test_a_summary_for_a_branch_that_was_left_meanwhile_is_not_used(leave: Callable[[Session], object]) -> None:
    with opened(policy=Older()) as session:
        fill(session)
        session.model = Waiting(lambda: leave(session))
        asyncio.run(session.amessages())
        assert bodies(session, Compaction) == []
        assert texts(session) == [m.text for m in session.messages()]


def test_two_tasks_at_once_compact_once() -> None:
    async def go(session: Session) -> None:
        await asyncio.gather(*(session.amessages() for _ in range(3)))

    with opened(policy=Older()) as session:
        fill(session)
        session.model = Waiting(lambda: None)
        asyncio.run(go(session))
        assert len(bodies(session, Compaction)) == 1


@pytest.mark.parametrize("point", [0, 1, 2])
def test_cancelling_at_any_point_leaves_a_whole_session(point: int) -> None:
    class Slow(Echo):
        async def acomplete(self, call: ModelCall) -> Reply:
            for _ in range(3):
                await asyncio.sleep(0)
            return self.complete(call)

    async def go(session: Session) -> None:
        task = asyncio.create_task(session.amessages())
        for _ in range(point + 1):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with opened(policy=Older(), model=Slow("summary")) as session:
        fill(session)
        before = session.view
        asyncio.run(go(session))
        assert session.view.messages == before.messages
        assert len(session.messages()) == 3


class Marked(Struct, frozen=True):
    """Keeps the newest message only, and says in its details how many compactions there were before."""

    name: str = "marked"

    def budget(self, window: int) -> Budget:
        return Budget.of(window)

    def due(self, view: View, budget: Budget) -> Due | None:
        return Due("idle") if len(view.items) > 3 else None

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        yield Failure("noted", attempt=due.failures + 1)
        ids = pack(i for item in view.items[:-1] for i in item.ids)
        made = compaction(view, [Drop(ids)], due, policy=self.name, details={"列": [1, {"a": None}]})
        return replace(made, calls=2)


def test_a_failure_noted_on_the_way_does_not_stop_the_compaction() -> None:
    with opened(policy=Marked()) as session:
        fill(session)
        assert [m.text for m in session.messages()][-1:] == ["answer 04.."]
        kinds = [type(e.body).__name__ for e in session.branch()][-2:]
        assert kinds == ["Failed", "Compaction"]
        (made,) = bodies(session, Compaction)
        assert isinstance(made, Compaction)
        assert (made.details, made.calls, made.reason) == ({"列": [1, {"a": None}]}, 2, "idle")
        assert isinstance(made.edits[0], Drop)
        assert session.append_many([Draft(made)])[0].body == made
