"""What a store of sessions promises, on every database."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from clew.errors import LeaseLost, SessionBusy, StoreError, UnknownName
from clew.messages import assistant, tool, user
from clew.sessions import Session
from clew.storage import EntryRow, SessionRow, open_store
from clew.storage.lease import new_owner
from clew.storage.store import Repeated
from plain import Echo, Older, opened, texts
from sessions.test_stateful import Conversations
from stores.places import New


def entry(id: int, key: str = "") -> EntryRow:
    return EntryRow(id, id - 1 or None, "note", 1.5, key, b'{"type":"note","kind":"x"}')


def test_random_use_is_as_the_model_says(new_sql: New) -> None:
    address = new_sql()

    class Here(Conversations):
        def __init__(self) -> None:
            super().__init__()
            self.store.close()
            self.store = open_store(address)

    run_state_machine_as_test(Here, settings=settings(max_examples=12, stateful_step_count=25, deadline=None))


def test_rows_come_back_as_they_were(new_sql: New) -> None:
    store = open_store(new_sql())
    big = 2**63 - 1
    row = SessionRow("acme/团队", "s", "标题 'x' %s", 1.25, 2.5, None, 0, 0, None, None, "", 0.0, b'{"a":"\\u0000"}')
    store.create(row)
    assert store.session("acme/团队", "s") == row
    me = new_owner()
    store.claim("acme/团队", "s", me)
    rows = [EntryRow(1, None, "note", 0.1 + 0.2, "键", b"\x00\xff"), EntryRow(big, 1, "note", 1e-300, "", b"")]
    store.append("acme/团队", "s", me, rows, big)
    assert list(store.rows("acme/团队", "s", 0)) == rows
    assert store.links("acme/团队", "s", 0) == [(1, None), (big, 1)]
    assert [r.body for r in store.heads("acme/团队", "s", 0)] == [b"", b""]
    assert store.held("acme/团队", "s", ["键", "", "absent"]) == {"键": 1}
    with pytest.raises(StoreError):
        store.append("acme/团队", "s", me, [entry(2**63)], 1)
    store.close()


def test_a_key_is_written_once(new_sql: New) -> None:
    store = open_store(new_sql())
    me = new_owner()
    store.create(SessionRow("default", "s"))
    store.claim("default", "s", me)
    store.append("default", "s", me, [entry(1, "k")], 1)
    with pytest.raises(Repeated):
        store.append("default", "s", me, [entry(2), entry(3, "k")], 3)
    assert [r.id for r in store.rows("default", "s", 1)] == [1]
    store.append("default", "s", me, [entry(2), entry(3, "l")], 3)
    found = store.session("default", "s")
    assert found is not None
    assert (found.entries, found.last, found.leaf) == (3, 3, 3)
    with pytest.raises(StoreError):
        store.create(SessionRow("default", "s"))
    with pytest.raises(StoreError):
        store.create(SessionRow("default", "t", parent="absent"))
    store.close()


def test_leases(new_sql: New, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(new_sql())
    me, you = new_owner(), new_owner()
    store.create(SessionRow("default", "s"))
    store.claim("default", "s", me)
    with pytest.raises(SessionBusy):
        store.claim("default", "s", you)
    store.append("default", "s", me, [entry(1)], 1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 31)
    store.claim("default", "s", you)
    for late in (
        lambda: store.append("default", "s", me, [entry(2)], 2),
        lambda: store.move("default", "s", me, None),
    ):
        with pytest.raises(LeaseLost):
            late()
    store.release("default", "s", me)
    store.append("default", "s", you, [entry(2)], 2)
    with pytest.raises(UnknownName):
        store.claim("other", "s", you)
    store.close()


def test_exclusive_is_one_transaction(new_sql: New) -> None:
    store = open_store(new_sql())

    def broken_off() -> None:
        with store.exclusive("default"):
            store.create(SessionRow("default", "a"))
            assert store.session("default", "a") is not None
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert store.sessions("default") == []
    with store.exclusive("default"):
        store.create(SessionRow("default", "b"))
        store.create(SessionRow("default", "c"))
    assert {row.id for row in store.sessions("default")} == {"b", "c"}
    store.close()


def test_finders_that_make_what_they_do_not_find_make_one(new_sql: New) -> None:
    """As imports do: look for a session, and make it if there is none, in one `exclusive` block."""
    address = new_sql()
    first = open_store(address)

    def work(n: int) -> None:
        store = first.share() if address == "memory://" else open_store(address)
        with store.exclusive("default"):
            if not store.sessions("default"):
                time.sleep(0.02)
                store.create(SessionRow("default", f"s{n}"))
        store.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert len(first.sessions("default")) == 1
    first.close()


def test_a_conversation_with_compactions_forks_and_rewinds(new_sql: New) -> None:
    store = open_store(new_sql())
    with opened(store, policy=Older(limit=120, keep=2), model=Echo("sum")) as session:
        for n in range(30):
            session.append(user(f"问题 {n} 修复解析器"), key=f"q{n}")
            session.append(assistant(f"answer {n}"))
            session.append(tool(f"c{n}", "result"))
            session.messages()
        session.append(user("again"), key="q0")
        shown, branch, id = texts(session), session.branch(), session.id
        with session.fork() as fork:
            fork.append(user("elsewhere"))
            assert [e.id for e in fork.lineage()[0:0]] == []
            assert fork.lineage()[0].session == id
    with opened(store, id, policy=Older(limit=120, keep=2)) as again:
        assert texts(again) == shown
        assert again.branch() == branch
        assert again.damage == ()
        again.rewind()
        assert len(again.branch()) < len(branch)
    assert len(Session.list(store)) == 2
    store.close()


def test_threads_with_a_session_each(new_sql: New) -> None:
    store = open_store(new_sql())

    def work(name: int) -> list[str]:
        with opened(store) as session:
            for n in range(20):
                session.append(user(f"{name} {n}"))
            return texts(session)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[f"{name} {n}" for n in range(20)] for name in range(4)]
    store.close()
