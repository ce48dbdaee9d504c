"""Copies from any place to any other: all of it, once, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.memory import MemoryRecord, Namespace, RecordLog
from clew.memory.copy import copy
from clew.messages import assistant, user
from clew.sessions import Session
from clew.storage import SessionRow, Store, open_store
from clew.storage.vectors import StoredVectors
from servers import Postgres, Redis
from stores.places import PLACES, SQL, New, maker


def filled(address: str, *, sessions: bool = True) -> None:
    """Two sessions and a fork of one, a memory with a past, and vectors."""
    with RecordLog(address) as log:
        tea = log.add(MemoryRecord("user", "喝茶", kind="fact"))
        gone = log.add(MemoryRecord("user", "secret", kind="fact"))
        assert tea is not None
        assert gone is not None
        log.edit(tea.id, "喝绿茶")
        log.delete(gone.id)
        log.purge(gone.id)
        for n in range(30):
            log.add(MemoryRecord("user", f"message {n}", kind="message"), key=f"k{n}", again=True)
        if sessions:
            StoredVectors(log.store, log.path, "m").keep({f"d{n}": bytes([n, 255]) for n in range(5)})
    if sessions:
        for space in ("default", "acme/support"):
            with Session.open(address, namespace=space, title="第一", meta={"a": [1]}) as session:
                for n in range(40):
                    session.append(user(f"问题 {n}"), key=f"q{n}")
                    session.append(assistant(f"answer {n}"))
                session.rewind(3)
                with session.fork(title="fork") as fork:
                    fork.append(user("elsewhere"))


def everything(store: Store, space: str) -> list[object]:
    rows = sorted(store.sessions(space), key=lambda row: row.id)
    plain = [
        (r.id, r.title, r.created, r.updated, r.leaf, r.last, r.entries, r.parent, r.parent_entry, r.meta) for r in rows
    ]
    return [plain, [list(store.rows(space, row.id, 0)) for row in rows]]


@pytest.mark.parametrize("to", ["file", "postgresql"])
@pytest.mark.parametrize("source", ["file", "postgresql"])
def test_all_of_a_store_is_copied_once_and_equal(
    source: str, to: str, tmp_path: Path, postgres: Postgres, redis_server: Redis
) -> None:
    a = maker(source, tmp_path / "a", postgres, redis_server)()
    b = maker(to, tmp_path / "b", postgres, redis_server)()
    filled(a)
    heard: list[object] = []
    report = copy(a, b, progress=heard.append)
    assert not report.faults
    assert heard == list(report.parts)
    assert report.count("session") == (4, 2 * 81)
    assert report.count("memory")[0] == 1
    assert report.count("vectors") == (1, 5)
    one, two = open_store(a), open_store(b)
    for space in ("default", "acme/support"):
        assert everything(one, space) == everything(two, space)
    with RecordLog(one) as before, RecordLog(two) as after:
        assert after.export() == before.export()
        assert after.records() == before.records()
        assert "secret" not in str(after.export())
    assert StoredVectors(two, "default", "m").held(["d1", "d4"]) == {"d1": b"\x01\xff", "d4": b"\x04\xff"}
    one.close()
    two.close()
    again = copy(a, b)
    assert not again.faults
    assert [part.new for part in again.parts] == [0] * len(again.parts)


@pytest.mark.parametrize("to", PLACES)
@pytest.mark.parametrize("source", PLACES)
def test_a_memory_is_copied_from_any_place_to_any_other(
    source: str, to: str, tmp_path: Path, postgres: Postgres, redis_server: Redis
) -> None:
    a = maker(source, tmp_path / "a", postgres, redis_server)() if source != "memory" else open_store("memory://")
    b = maker(to, tmp_path / "b", postgres, redis_server)() if to != "memory" else open_store("memory://")
    filled(a, sessions=False)  # type: ignore[arg-type]
    assert not copy(a, b).faults
    with RecordLog(a) as before, RecordLog(b) as after:
        assert after.export() == before.export()
        assert after.records() == before.records()
    for one in (a, b):
        if isinstance(one, Store):
            one.close()


def test_a_copy_that_was_broken_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    filled(a)
    monkeypatch.setattr("clew.storage.copy.BATCH", 7)
    real, calls = Store.append, []

    def append(store: Store, *args: object) -> None:
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        real(store, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "append", append)
    with pytest.raises(KeyboardInterrupt):
        copy(a, b)
    report = copy(a, b)
    assert not report.faults
    assert sum(part.new for part in report.parts if part.kind == "session") == 2 * 81 - 4 * 7


def test_what_is_not_equal_is_reported(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    with Session.open(a) as session:
        session.append(user("one"))
    copy(a, b)
    with Session.open(a, session.id) as one, Session.open(b, session.id) as two:
        one.append(user("here"))
        two.append(user("there"))
    report = copy(a, b)
    assert report.faults == (f"session {session.id}: the source has 2 entries and the target others (2)",)


def test_a_session_that_is_being_written_is_named_and_the_others_are_copied(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    filled(a)
    copy(a, b, namespaces=["default"])
    store = open_store(a)
    [row] = [row for row in store.sessions("default") if row.parent is None]
    store.close()
    with Session.open(a, row.id) as session, Session.open(b, row.id) as busy:
        session.append(user("more"))
        busy.claim()
        report = copy(a, b)
    assert [fault.split(":")[0] for fault in report.faults] == [f"session {row.id}"]
    assert sum(part.new for part in report.parts if part.namespace == "acme/support") == 81


def test_only_some_namespaces(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    filled(a)
    with RecordLog(a, Namespace("acme")) as log:
        log.add(MemoryRecord("user", "x"))
    report = copy(a, b, namespaces=["acme", "acme/support"])
    assert {part.namespace for part in report.parts} == {"acme", "acme/support"}


def test_what_a_place_cannot_hold_is_said_before_anything_is_copied(tmp_path: Path, redis_server: Redis) -> None:
    a = str(tmp_path / "a.db")
    filled(a)
    for target in (redis_server.address(), f"json:{tmp_path}/m.json"):
        with pytest.raises(StoreError, match="cannot hold"):
            copy(a, target)
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("kind", SQL)
def test_an_empty_store(kind: str, tmp_path: Path, postgres: Postgres, redis_server: Redis) -> None:
    assert copy(maker(kind, tmp_path, postgres, redis_server)(), "memory://").parts == ()


def test_a_session_whose_parent_is_missing_is_named(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.db")
    with store.writing() as db:
        db.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
    store.create(SessionRow("default", "s"))
    with store.reading() as db:
        db.exec_driver_sql("PRAGMA foreign_keys=OFF")
        db.exec_driver_sql("UPDATE sessions SET parent = 'absent'")
    store.create(SessionRow("default", "t"))
    report = copy(store, str(tmp_path / "b.db"))
    assert [fault.split(":")[0] for fault in report.faults] == ["session s"]
    store.close()


def test_where_a_session_stands_is_copied_too(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    with Session.open(a) as session:
        for n in range(4):
            session.append(user(f"{n}"))
        copy(a, b)
        session.rewind(1)
    assert not copy(a, b).faults
    with Session.open(a, session.id, mode="read") as one, Session.open(b, session.id, mode="read") as two:
        assert two.leaf == one.leaf != one.newest
    with Session.open(b, session.id) as two:
        two.rewind(1)
        assert two.leaf != session.leaf
    [fault] = copy(a, b).faults
    assert "which was written later" in fault


def test_a_copy_killed_after_the_last_entry_stands_where_the_source_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    with Session.open(a) as session:
        for n in range(4):
            session.append(user(f"{n}"))
        session.rewind(1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "patiently", lambda store, work: killed() if work.__name__ == "settle" else work(False))
        with pytest.raises(KeyboardInterrupt):
            copy(a, b)
    assert not copy(a, b).faults
    with Session.open(b, session.id, mode="read") as two:
        assert two.leaf == session.leaf


def test_what_the_target_has_purged_is_not_brought_back_and_no_fault(new: New) -> None:
    with RecordLog() as source:
        secret = source.add(MemoryRecord("user", "4711", kind="fact"))
        assert secret is not None
        with RecordLog(new()) as target:
            target.merge(source.export())
            target.purge(secret.id)
            report = copy(source.store, target._place)
            assert not report.faults
            assert "4711" not in str(target.export())
