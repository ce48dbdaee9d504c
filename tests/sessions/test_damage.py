"""Stored sessions with faults: they open, say what is wrong, and stay as they are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import StoreError
from clew.messages import assistant, user
from clew.sessions import Session
from clew.sessions.tree import Damage, Tree, runs
from plain import opened, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def made(path: Path, turns: int = 3) -> str:
    with opened(path) as session:
        for n in range(turns):
            session.append_many([user(f"u{n}"), assistant(f"a{n}")])
        return session.id


def spoil(path: Path, *statements: str) -> None:
    raw = sqlite3.connect(path)
    for statement in statements:
        raw.execute(statement)
    raw.commit()
    raw.close()


def found(session: Session) -> list[tuple[str, int]]:
    return [(d.kind, d.entry) for d in session.damage]


def dump(path: Path) -> list[str]:
    raw = sqlite3.connect(path)
    lines = [line for line in raw.iterdump() if 'INTO "sessions"' not in line]
    raw.close()
    return lines


def test_a_whole_session_has_no_damage(path: Path) -> None:
    with opened(path, made(path)) as session:
        assert session.damage == ()


@pytest.mark.parametrize(
    "body", ["x'00000000'", '\'{"type":"message"\'', "NULL", "7", "x'ff'", '\'{"type":"poem"}\'', "''"]
)
def test_a_broken_row_is_left_out(path: Path, body: str) -> None:
    id = made(path)
    spoil(
        path,
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'body BLOB NOT NULL', 'body BLOB')",
    )
    spoil(path, f"UPDATE entries SET body = {body} WHERE id = 3")
    before = dump(path)
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "a1", "u2", "a2"]
        assert found(session) == [("body", 3)]
        assert len(session.tree()) == 6
        assert dump(path) == before
        assert session.append(user("on")).parent == 6


def test_a_row_of_nested_lists_without_end(path: Path) -> None:
    id = made(path)
    spoil(path, f"UPDATE entries SET body = '{'[' * 100_000}' WHERE id = 3")
    with opened(path, id) as session:
        assert found(session) == [("body", 3)]


def test_a_missing_row_is_bridged(path: Path) -> None:
    id = made(path)
    spoil(path, "DELETE FROM entries WHERE id IN (3, 4)")
    before = dump(path)
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "u2", "a2"]
        assert session.damage == (
            Damage("gap", 3, "entries 3 to 4 are missing"),
            Damage("parent", 5, "its parent 4 is missing; it follows 2 instead"),
        )
        assert session.branch()[2].parent == 2
        assert dump(path) == before


@pytest.mark.parametrize("parent", ["5", "6", "3", "999999999999", "0", "-4", "'seven'", "2.5", "x'00'"])
def test_a_parent_that_cannot_be(path: Path, parent: str) -> None:
    id = made(path)
    spoil(path, f"UPDATE entries SET parent = {parent} WHERE id = 3")
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "u1", "a1", "u2", "a2"]
        assert found(session) == [("parent", 3)]


def test_a_cycle_of_parents(path: Path) -> None:
    id = made(path)
    spoil(path, "UPDATE entries SET parent = 6 WHERE id = 2", "UPDATE entries SET parent = 2 WHERE id = 6")
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "a2"]
        assert found(session) == [("parent", 2)]


@pytest.mark.parametrize(("leaf", "then"), [("99", 6), ("'x'", 6), ("-1", None), ("x'ff'", 6)])
def test_a_leaf_that_points_nowhere(path: Path, leaf: str, then: int | None) -> None:
    id = made(path)
    spoil(path, f"UPDATE sessions SET leaf = {leaf}")
    with opened(path, id) as session:
        assert session.leaf == then
        assert found(session) == [("leaf", then or 0)]


def test_lost_entries_at_the_end_are_noticed_and_their_ids_not_used_again(path: Path) -> None:
    id = made(path)
    spoil(path, "DELETE FROM entries WHERE id > 4")
    with opened(path, id) as session:
        assert (session.leaf, found(session)) == (4, [("gap", 5), ("leaf", 4)])
        assert session.append(user("on")).id == 7
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "u1", "a1", "on"]
        assert found(session) == [("gap", 5)]


def test_every_row_lost(path: Path) -> None:
    id = made(path)
    spoil(path, "DELETE FROM entries")
    with opened(path, id) as session:
        assert (session.leaf, texts(session)) == (None, [])
        assert session.append(user("on")).id == 7


def test_the_count_of_ids_is_behind(path: Path) -> None:
    id = made(path)
    spoil(path, "UPDATE sessions SET last = 2")
    with opened(path, id) as session:
        assert texts(session) == ["u0", "a0", "u1", "a1", "u2", "a2"]
        assert session.append(user("on")).id == 7


def test_a_fork_without_its_parent(path: Path) -> None:
    with opened(path) as root:
        root.append_many([user("u0"), assistant("a0")])
        with root.fork() as fork:
            fork.append_many([user("u1"), assistant("a1")])
    spoil(path, f"DELETE FROM entries WHERE session = '{root.id}'", f"DELETE FROM sessions WHERE id = '{root.id}'")
    with opened(path, fork.id) as session:
        assert texts(session) == ["u1", "a1"]
        assert found(session) == [("lineage", 2), ("parent", 3)]
        assert session.append(user("on")).id == 5


def test_a_session_that_continues_itself(path: Path) -> None:
    with opened(path) as root, root.fork() as fork:
        fork.append(user("u"))
    spoil(path, f"UPDATE sessions SET parent = '{fork.id}' WHERE id = '{root.id}'")
    with opened(path, fork.id) as session:
        assert texts(session) == ["u"]
        assert found(session) == [("lineage", 0)]


def test_other_values_that_are_none(path: Path) -> None:
    id = made(path)
    spoil(
        path,
        "UPDATE entries SET at = 'noon', kind = x'ff', key = x'80' WHERE id = 3",
        "UPDATE sessions SET title = x'c3', meta = 'no'",
    )
    with opened(path, id) as session:
        assert len(session.branch()) == len(session.tree()) == 6
        assert session.branch()[2].at == 0.0
        with pytest.raises(StoreError, match="meta"):
            assert session.meta
    assert len(Session.list(path)) == 1


def test_a_damaged_entry_still_holds_its_key(path: Path) -> None:
    with opened(path) as session:
        session.append(user("a"), key="k")
        id = session.id
    spoil(path, "UPDATE entries SET body = 'x'")
    with opened(path, id) as session:
        assert session.append(user("a"), key="k").id == 1
        assert len(session.tree()) == 1


@given(st.data())
def test_any_links_make_a_tree(data: st.DataObject) -> None:
    """Whatever pairs a store holds, every entry gets a place, and every path ends."""
    ids = sorted(data.draw(st.sets(st.integers(1, 40))))
    parents = [data.draw(st.none() | st.integers(-3, 45) | st.sampled_from(["x", 1.5, b"y"])) for _ in ids]
    last = data.draw(st.integers(0, 45))
    tree = Tree()
    damage = list(tree.grow(zip(ids, parents, strict=True), 0, last))
    assert list(tree.parents) == ids
    assert tree.newest == max([*ids, last])
    for id, parent in zip(ids, parents, strict=True):
        path = tree.path(id)
        assert path == sorted(path)
        assert path[-1] == id
        fine = parent is None or (parent in ids and parent < id)
        assert (tree.parents[id] == parent) is fine
        assert fine is (not any(d.kind == "parent" and d.entry == id for d in damage))
    missing = set(range(1, max([*ids, last], default=0) + 1)) - set(ids)
    assert {d.entry for d in damage if d.kind == "gap"} == {first for first, _ in runs(sorted(missing))}


@pytest.mark.parametrize(
    "column",
    [
        "title = x'ff00'",
        "created = 'x'",
        "updated = x'00'",
        "entries = 'many'",
        "meta = 7",
        "leaf = 'abc'",
        "lease_owner = 7, lease_expires = 'x'",
        "parent = id, parent_entry = 'q'",
        "parent = 7",
    ],
)
def test_a_session_row_of_anything_can_be_listed_read_and_added_to(path: Path, column: str) -> None:
    id = made(path)
    spoil(path, "PRAGMA foreign_keys=OFF", f"UPDATE sessions SET {column}")
    (row,) = Session.list(path)
    assert row.id == id
    with Session.open(path, id) as session:
        assert texts(session) == ["u0", "a0", "u1", "a1", "u2", "a2"]
        session.append(user("more"))
        with session.fork() as fork:
            assert texts(fork)[-1] == "more"
    with Session.open(path, id, mode="read") as session:
        assert texts(session)[-1] == "more"


def test_an_id_past_the_largest_number_is_refused(path: Path) -> None:
    id = made(path)
    spoil(path, f"UPDATE sessions SET last = {2**63 - 1}")
    with Session.open(path, id) as session, pytest.raises(StoreError, match="too large"):
        session.append(user("more"))
