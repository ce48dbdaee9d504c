"""Who may write: taking, keeping, losing, and taking over from the dead."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from clew.errors import LeaseLost, SessionBusy, UnknownName
from clew.storage import EntryRow, SessionRow, Store, open_store
from clew.storage.lease import LEASE_SECONDS, gone, new_owner
from servers import Postgres


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Store]:
    store = open_store("memory://" if request.param == "memory" else postgres.address(postgres.database()))
    store.create(SessionRow("default", "s"))
    yield store
    store.close()


def row(id: int) -> EntryRow:
    return EntryRow(id, id - 1 or None, "note", 1.0, "", b'{"type":"note","kind":"x"}')


def test_one_owner_at_a_time(store: Store) -> None:
    me, you = new_owner(), new_owner()
    store.claim("default", "s", me)
    with pytest.raises(SessionBusy) as busy:
        store.claim("default", "s", you)
    assert busy.value.owner == me
    assert 0 < busy.value.expires_in <= LEASE_SECONDS
    store.release("default", "s", you)
    with pytest.raises(SessionBusy):
        store.claim("default", "s", you)
    store.release("default", "s", me)
    assert store.claim("default", "s", you).lease_owner == ""


def test_an_expired_lease_is_taken_over_and_its_owner_cannot_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, you = new_owner(), new_owner()
    store.claim("default", "s", me)
    store.append("default", "s", me, [row(1)], 1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 31)
    store.claim("default", "s", you)
    with pytest.raises(LeaseLost):
        store.append("default", "s", me, [row(2)], 2)
    with pytest.raises(LeaseLost):
        store.move("default", "s", me, None)
    store.append("default", "s", you, [row(2)], 2)
    assert [r.id for r in store.rows("default", "s", 1)] == [1, 2]


def test_every_write_renews_the_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    me, you = new_owner(), new_owner()
    store.claim("default", "s", me)
    now = time.time()
    for step, write in enumerate(
        (lambda: store.append("default", "s", me, [row(1)], 1), lambda: store.move("default", "s", me, 1))
    ):
        monkeypatch.setattr(time, "time", lambda step=step: now + 20 * (step + 1))
        write()
    monkeypatch.setattr(time, "time", lambda: now + 69)
    with pytest.raises(SessionBusy):
        store.claim("default", "s", you)


def test_an_id_is_never_written_twice(store: Store) -> None:
    me = new_owner()
    store.claim("default", "s", me)
    store.append("default", "s", me, [row(1), row(2)], 2)
    with pytest.raises(LeaseLost):
        store.append("default", "s", me, [row(2)], 2)
    assert [r.id for r in store.rows("default", "s", 1)] == [1, 2]


def test_a_session_that_is_not_there(store: Store) -> None:
    with pytest.raises(UnknownName):
        store.claim("default", "t", new_owner())
    with pytest.raises(UnknownName):
        store.claim("other", "s", new_owner())


def test_a_dead_owner_is_known_at_once() -> None:
    code = "from clew.storage.lease import new_owner; print(new_owner())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert gone(dead)
    assert not gone(new_owner())


def test_a_pid_used_again_is_another_owner() -> None:
    host, pid, start, random = new_owner().split(":")
    assert start.isdigit()
    assert gone(f"{host}:{pid}:{int(start) - 1}:{random}")


@pytest.mark.parametrize(
    "owner", ["elsewhere:1:2:ab", "", "x", "a:b:c:d", f"{new_owner().split(':')[0]}:not-a-pid:1:2"]
)
def test_who_cannot_be_judged_is_taken_for_alive(owner: str) -> None:
    assert not gone(owner)


def test_names_are_found_by_their_beginning_and_near_ones_are_listed(store: Store) -> None:
    for id, title in (("abc123", "Fix the parser"), ("abd456", ""), ("ffff00", "修复解析器")):
        store.create(SessionRow("default", id, title))
    assert store.find("default", "abc").id == "abc123"
    with pytest.raises(UnknownName, match=r"2 sessions begin with 'ab'.*abc123 \(Fix the parser\), abd456"):
        store.find("default", "ab")
    with pytest.raises(UnknownName, match="nearest: abc123"):
        store.find("default", "abc132")
    with pytest.raises(UnknownName, match="nearest: abc123"):
        store.find("default", "Fix the paser")
    with pytest.raises(UnknownName, match="ffff00"):
        store.find("default", "zz")
    with pytest.raises(UnknownName, match="has no session in namespace 'other'"):
        store.find("other", "abc123")
    with pytest.raises(UnknownName):
        store.find("default", "")


def test_prefixes_are_not_patterns(store: Store) -> None:
    for id in ("%", "_", "s%"):
        with pytest.raises(UnknownName):
            store.find("default", id)
