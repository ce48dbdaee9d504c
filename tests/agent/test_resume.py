"""A run that was killed between any two entries goes on, and says so of what it cannot know."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents import add, book, calls
from clew import Session
from clew.agent import AgentModule, Result, State, StopReason, tool
from clew.errors import UnknownName
from clew.history import CompactHistory
from clew.memory import RecordLog
from clew.messages import Usage
from clew.models import Scripted
from clew.sessions.rules import violations

WORKER = Path(__file__).with_name("worker.py")
spec = importlib.util.spec_from_file_location("worker", WORKER)
assert spec is not None
assert spec.loader is not None
worker: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)

ALL = 18
"""Entries of the whole run: its beginning, instructions, prompt, three replies, four calls with results, three steps,
its end."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one store for each number of entries after which the run in it was killed."""
    folder: Path = tmp_path_factory.mktemp("killed")
    done = subprocess.run([sys.executable, WORKER, folder, str(ALL)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["-9"] * ALL, done.stderr
    return folder


def taken_over(path: Path) -> Session:
    """The only session of a store, whose writer is dead: its lease is given back for it."""
    (row,) = Session.list(path)
    session = Session.open(path, row.id)
    session._log.store.release(row.namespace, row.id, row.lease_owner or "")
    session.refresh()
    return session


@pytest.mark.parametrize("after", range(1, ALL + 1))
def test_a_run_goes_on_after_a_kill_between_any_two_entries(after: int, killed: Path) -> None:
    with taken_over(killed / f"{after}.db") as session:
        journal = killed / f"{after}.journal"
        agent = worker.agent(session, journal)
        if after == ALL:
            with pytest.raises(UnknownName, match="no unfinished run"):
                agent.run(None)
        else:
            assert agent.run(None) == "All done. 完成。"
        keys = [e.key for e in session.branch() if e.key]
        assert len([k for k in keys if k.endswith("prompt")]) == 1, "nothing is said twice"
        assert violations(session.messages()) == []
        assert [m.role for m in session.messages()].count("assistant") == 3, "no reply is asked for twice"
        with RecordLog(killed / f"{after}.memory") as log:
            assert [r.text for r in log.records()] == ["Do it.", "All done. 完成。"], "remembered, and once"
        told = [r for m in session.messages() for r in m.results]
        assert [r.call_id for r in told] == ["c00", "c01", "c10", "c11"]
        interrupted = {r.call_id for r in told if "interrupted" in r.text}
        assert all(r.name == "once" for r in told if r.call_id in interrupted), "the others were done again"
        counts = Counter(journal.read_text().splitlines())
        for n in (0, 1):
            assert counts[f"once {n}"] == (0 if f"c{n}0" in interrupted else 1), (
                "not twice, and never passed over unsaid"
            )
            assert counts[f"safe {n}"] == 1


def test_the_number_of_entries_is_that_of_the_whole_run(tmp_path: Path) -> None:
    with Session.open(tmp_path / "a.db") as session:
        worker.agent(session, tmp_path / "a.journal").run("Do it.")
        assert len(session.branch()) == ALL


class Plan(State):
    steps: tuple[str, ...] = ()


class Planner(AgentModule[Plan]):
    state_type = Plan

    def reduce(self, state: Plan, observation: Any, decision: Any) -> Plan:
        fields = {name: getattr(state, name) for name in state.__struct_fields__}
        return Plan(**{**fields, "steps": (*state.steps, decision.mode), "final_result": decision.final_answer or None})


def test_state_and_totals_are_taken_up(tmp_path: Path) -> None:
    session = Session.open(tmp_path / "a.db")
    llm = Scripted([calls(("add", {"a": 1, "b": 1}))] * 2)
    stream = Planner(llm, history=session, tools=[add]).stream("go", steps=("begin",))
    for event in stream:
        if getattr(event, "step", 0) == 2:
            break
    stream.close()  # given up, as by a user who closes the window
    observed = []

    class Watching(Planner):
        def observe(self, state: Plan, observation: Any) -> Any:
            observed.append(observation)
            return observation

    result: Result = Watching(Scripted("ok"), history=session, tools=[add]).run(None, return_state=True)
    assert result.state.steps == ("begin", "act", "act", "final")  # type: ignore[attr-defined]
    assert (result.step_count, result.stop_reason) == (3, StopReason.FINAL)
    assert result.usage == Usage(20, 10)
    seen = observed[0].action_results[0]
    assert (observed[0].step, seen.action.name, seen.action.arguments, seen.output.text) == (
        1,
        "add",
        '{"a":1,"b":1}',
        "2",
    )
    session.close()


def test_a_long_result_that_came_is_not_asked_for_again(tmp_path: Path) -> None:
    with Session.open(tmp_path / "a.db") as session:
        agent = AgentModule(Scripted([calls(("book", {"pages": 300})), "Read."]), history=session, tools=[book])
        agent.run("read")
        whole = next(e for e in session.branch() if e.key.endswith("output:0"))
        done: list[int] = []

        @tool(limit=100, name="book")
        def again(pages: int) -> str:
            """Must not be called."""
            done.append(pages)
            return ""

        for answer in ("Read again.", "And again."):
            session.branch_to(whole)  # as if the process had died right after it was stored
            assert AgentModule(Scripted(answer), history=session, tools=[again]).run(None) == answer
            assert f"entry {whole.id} of the session" in session.messages()[-2].results[0].text
            assert [m.role for m in session.messages()] == ["user", "assistant", "tool", "assistant"]
        assert done == []


def test_limits_count_what_was_used_before(tmp_path: Path) -> None:
    with Session.open(tmp_path / "a.db") as session:
        agent = AgentModule(Scripted(lambda call: calls(("add", {"a": 1, "b": 1}))), history=session, tools=[add])
        for event in agent.stream("go"):
            if getattr(event, "step", 0) == 3:
                break
        result: Result = agent.run(None, return_state=True, max_steps=5)
        assert (result.stop_reason, result.step_count) == (StopReason.STEPS, 5)
        assert len(result.records) == 2


def test_a_state_of_another_kind_is_refused(tmp_path: Path) -> None:
    class Other(State):
        must: int

    class Needy(AgentModule[Other]):
        state_type = Other

    with Session.open(tmp_path / "a.db") as session:
        stream = AgentModule(Scripted("x"), history=session).stream("go")
        next(stream)
        stream.close()
        with pytest.raises(UnknownName, match="state_type"):
            Needy(Scripted("x"), history=session).run(None)


def test_a_history_in_a_store_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    history = CompactHistory(store=path)
    assert history.session is not None
    stream = AgentModule(Scripted([calls(("add", {"a": 20, "b": 3}))]), history=history, tools=[add]).stream("go")
    for event in stream:
        if getattr(event, "stage", "") == "tool_end":
            break
    stream.close()
    id = history.session.id
    history.session.close()
    history = CompactHistory(store=path, session=id)
    llm = Scripted("It is 23.")
    assert AgentModule(llm, history=history, tools=[add]).run(None) == "It is 23."
    assert [m.role for m in llm.calls[0].messages] == ["user", "assistant", "tool"]
