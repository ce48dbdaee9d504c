"""Moving in the log: branches, rewinding, forks, labels, and what is behind a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import UnknownName
from clew.messages import assistant, system, tool, user
from clew.sessions import BranchSummary, Compaction, Draft, Drop, Insert, Replace, Said, Session
from plain import Older, opened, texts


def talk(session: Session, turns: int, start: int = 0) -> None:
    for n in range(start, start + turns):
        session.append_many([user(f"u{n}"), assistant(f"a{n}")])


def test_branching_off_keeps_the_old_branch() -> None:
    with opened() as session:
        talk(session, 2)
        session.branch_to(2)
        assert texts(session) == ["u0", "a0"]
        session.append(user("other"))
        assert texts(session) == ["u0", "a0", "other"]
        assert [e.id for e in session.branch()] == [1, 2, 5]
        session.branch_to(4)
        assert texts(session) == ["u0", "a0", "u1", "a1"]
        session.branch_to(None)
        assert texts(session) == []
        session.append(user("fresh"))
        assert texts(session) == ["fresh"]
        assert [e.id for e in session.entries()] == [1, 2, 3, 4, 5, 6]
        with pytest.raises(UnknownName, match="no entry 7; its newest is 6"):
            session.branch_to(7)


def test_the_leaf_is_durable_before_the_move_returns(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as session:
        talk(session, 3)
        session.branch_to(session.branch()[1])
        with opened(path, session.id, mode="read") as reader:
            assert (reader.leaf, texts(reader)) == (2, ["u0", "a0"])


def test_rewind_goes_before_the_users_messages() -> None:
    with opened() as session:
        session.append(system("s"))
        talk(session, 150)
        assert session.rewind().body == Said(user("u149"), 4, "letters")
        assert session.leaf == 299
        session.rewind(149)
        assert texts(session) == ["s"]
        with pytest.raises(UnknownName, match=r"cannot go back 1 turns: the branch of session \w+ has 0"):
            session.rewind()
        session.branch_to(301)
        with pytest.raises(UnknownName, match="has 150"):
            session.rewind(151)
        with pytest.raises(UnknownName, match="0 turns: 1 is the newest"):
            session.rewind(0)
        assert session.leaf == 301


def test_rewind_across_compactions_to_every_turn() -> None:
    with opened(policy=Older(limit=30, keep=2)) as session:
        shown: dict[int | None, list[str]] = {}
        for n in range(20):
            shown[session.leaf] = texts(session)
            session.append_many([user(f"u{n:03}"), assistant(f"a{n:03}")])
            session.messages()
        end = session.leaf
        assert sum(isinstance(e.body, Compaction) for e in session.branch()) >= 3
        for turns in range(1, 21):
            session.branch_to(end)
            session.rewind(turns)
            assert texts(session) == shown[session.leaf]


def test_a_fork_reads_on_from_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path, title="root") as root:
        talk(root, 3)
        with root.fork(4, title="try") as fork:
            assert (fork.leaf, texts(fork)) == (4, ["u0", "a0", "u1", "a1"])
            root.append(user("root goes on"))
            assert fork.append(user("so does the fork")).id == 5
            assert [e.id for e in fork.entries()] == [1, 2, 3, 4, 5]
            assert (fork.title, [(a.session, a.entry, a.title) for a in fork.lineage()]) == (
                "try",
                [(root.id, 4, "root")],
            )
            with fork.fork() as second, second.fork(2) as third:
                assert (second.leaf, third.leaf, third.title) == (5, 2, "try")
                third.append(assistant("third"))
                second.append(assistant("second"))
                third_id, second_id = third.id, second.id
        assert texts(root)[-1] == "root goes on"
    with opened(path, third_id) as third:
        assert texts(third) == ["u0", "a0", "third"]
        assert [e.id for e in third.branch()] == [1, 2, 3]
        assert [(a.session, a.entry) for a in third.lineage()] == [(root.id, 4), (fork.id, 5), (second_id, 2)]
    with opened(path, second_id) as second:
        assert texts(second) == ["u0", "a0", "u1", "a1", "so does the fork", "second"]
        assert second.damage == ()
    stored = {row.id: row.entries for row in Session.list(path)}
    assert stored == {root.id: 7, fork.id: 1, second_id: 1, third_id: 1}, "no entry is copied"


def test_a_fork_may_go_to_older_branches_of_its_parent() -> None:
    with opened() as root:
        talk(root, 2)
        root.branch_to(2)
        root.append(user("second try"))
        with root.fork() as fork:
            fork.branch_to(4)
            fork.append(user("back on the first"))
            assert texts(fork) == ["u0", "a0", "u1", "a1", "back on the first"]
            assert fork.rewind(3).id == 1
            assert (fork.leaf, texts(fork)) == (None, [])
            fork.append(user("new root"))
            assert texts(fork) == ["new root"]


def test_a_fork_of_nothing_and_keys_across_forks() -> None:
    with opened() as root, root.fork() as fork:
        assert fork.append(user("x"), key="k").id == 1
        assert [(a.session, a.entry) for a in fork.lineage()] == [(root.id, None)]
        with fork.fork() as inner:
            assert inner.append(user("y"), key="k").id == 1, "what is inherited is held too"
            fork.append(user("z"), key="later")
            assert inner.append(user("y"), key="later").id == 2


def test_a_fork_after_compaction_sees_the_summary_and_can_open_it() -> None:
    with opened(policy=Older(limit=30, keep=2)) as root:
        talk(root, 10)
        root.messages()
        boundary = root.leaf
        assert boundary is not None
        with root.fork() as fork:
            assert texts(fork) == texts(root)
            assert [e.id for e in fork.expand(boundary)] == list(range(1, 19))
            talk(fork, 10)
            fork.messages()
            assert [e.id for e in fork.expand(fork.branch()[-1])] == [*range(1, 21), *range(22, 40)]


def test_the_tree_has_children_kinds_and_labels() -> None:
    with opened() as session:
        talk(session, 2)
        session.branch_to(2)
        session.label(4, "old end")
        session.label(2, "here")
        session.label(2, "")
        session.pin("never")
        tree = session.tree()
        assert [n for n in tree if tree[n].parent is None] == [1]
        assert tree[2].children == (3, 5)
        assert {n: node.label for n, node in tree.items() if node.label} == {4: "old end"}
        assert [node.kind for node in tree.values()] == ["message"] * 4 + ["label"] * 3 + ["pin"]
        with pytest.raises(UnknownName, match="no entry 99"):
            session.label(99, "x")


def test_expand_opens_summaries_of_summaries() -> None:
    with opened() as session:
        talk(session, 3)
        s = "summary"
        session.append_many([Draft(Compaction((Replace(((1, 4),), user(s)),)))])  # 7
        session.append_many([Draft(Compaction((Drop((5,)), Insert(None, user("note")))))])  # 8: the note stands for 8
        session.append_many([Draft(Compaction((Replace((8, 6), user(s)), Insert(None, user(s), sources=(7,)))))])  # 9
        assert [e.id for e in session.expand(7)] == [1, 2, 3, 4]
        assert [e.id for e in session.expand(8)] == [5]
        assert [e.id for e in session.expand(9)] == [1, 2, 3, 4, 5, 6]
        assert session.expand(3) == [session.branch()[2]]
        assert session.expand(session.branch()[2]) == session.expand(3)


def test_a_compactions_own_message_does_not_expand_for_ever() -> None:
    with opened() as session:
        session.append(user("a"))
        session.append_many([Draft(Compaction((Insert(None, user("n")), Drop((0,)), Drop(((1, 5),)))))])
        assert [e.id for e in session.expand(2)] == [1]


def test_expand_opens_the_branch_that_was_left() -> None:
    with opened() as session:
        talk(session, 3)
        session.branch_to(2)
        entry = session.append_many([Draft(BranchSummary(user("tried and failed"), leaf=6))])[0]
        assert texts(session)[-1] == "tried and failed"
        assert [e.id for e in session.expand(entry)] == [3, 4, 5, 6]


def test_branch_after_reads_only_what_is_new() -> None:
    with opened() as session:
        talk(session, 2)
        session.branch_to(2)
        session.append(tool("x", "y"))
        assert [e.id for e in session.branch_after(0)] == [1, 2, 5]
        assert [e.id for e in session.branch_after(2)] == [5]
        assert session.branch_after(5) == []
