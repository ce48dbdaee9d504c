"""What is particular to Redis: windows that are read from the end, expiry, the store behind, lost servers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from clew.errors import Interrupted, StoreError
from clew.memory import MemoryRecord, Namespace, RecordLog, WindowMemory
from clew.memory.hot import Hot
from clew.memory.redis import Redis
from clew.sessions import Session
from clew.storage.changes import Restarted
from clew.storage.redis import RedisChanges
from servers import Redis as Server


def message(text: str) -> MemoryRecord:
    return MemoryRecord("user", text, kind="message")


def texts(log: RecordLog) -> list[str]:
    return [r.text for r in log.records()]


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    """A client of the database that the next address will name."""
    client = redis.Redis.from_url(redis_server.address())
    yield client
    client.close()


def address_of(client: redis.Redis, server: Server) -> str:
    return f"unix://{server.folder}/socket?db={client.connection_pool.connection_kwargs['db']}"


def test_a_window_reads_only_the_end(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    address = redis_server.address()
    with RecordLog(address) as log:
        log.add_many([message(f"{n}") for n in range(3_000)], again=True)
        WindowMemory(log=log).reset()
        log.add_many([message(f"new {n}") for n in range(30)], again=True)
    whole: list[int] = []
    monkeypatch.setattr(RedisChanges, "after", lambda self, position: whole.append(position))
    with RecordLog(address) as log:
        shown = WindowMemory(5, log=log).retrieve()
        assert [r.text for r in shown] == [f"new {n}" for n in range(25, 30)]
        assert len(WindowMemory(0, log=log).retrieve()) == 30
    assert whole == []


@pytest.mark.parametrize("case", ["closed", "edited", "merged"])
def test_the_end_by_itself_shows_what_the_whole_does(case: str, redis_server: Server) -> None:
    address = redis_server.address()
    with RecordLog(address) as log:
        made = log.add_many([message(f"{n}") for n in range(400)], again=True)
        old, new = made[3], made[390]
        assert old is not None
        assert new is not None
        if case == "closed":
            log.delete(old.id)
            log.delete(new.id)
        elif case == "edited":
            log.edit(old.id, "an old one")
            log.edit(new.id, "a new one")
        else:
            with RecordLog(clock=lambda: 5.0) as other:
                other.add(message("from long ago"))
                log.merge(other.export())
        expected = [r.text for r in log.latest("message")]
    with RecordLog(address) as log:
        assert isinstance(log._ledger, Hot)
        assert [r.text for r in log.latest("message")] == expected
        assert case == "merged" or not log._ledger.read or len(expected) < 100


def test_a_memory_expires_and_begins_anew(redis_server: Server) -> None:
    address = redis_server.address()
    with RecordLog(f"{address}&ttl=1") as log, RecordLog(address) as other:
        log.add_many([message(f"{n}") for n in range(5)], again=True)
        assert len(other.records()) == 5
        time.sleep(1.2)
        assert log.records() == []
        assert other.records() == []
        log.add_many([message(f"again {n}") for n in range(7)], again=True)
        assert texts(other) == texts(log) == [f"again {n}" for n in range(7)]


def test_what_is_longer_than_what_was_read_is_not_taken_for_its_end(redis_server: Server, client: redis.Redis) -> None:
    address = address_of(client, redis_server)
    with RecordLog(address) as log:
        log.add(message("old"))
        client.flushdb()
        with RecordLog(address) as other:
            other.add_many([message("a"), message("b")])
        assert texts(log) == ["a", "b"]
        client.flushdb()
        log.add(message("c"))
        assert texts(log) == ["c"]


def test_the_store_behind_gets_everything_and_gives_it_back(
    redis_server: Server, client: redis.Redis, tmp_path: Path
) -> None:
    address = address_of(client, redis_server)
    kept = tmp_path / "kept.db"
    acme = Namespace("acme")
    with Redis(address, write_behind=kept) as hot:
        log = RecordLog(hot, acme)
        tea = log.add(message("tea"))
        assert tea is not None
        log.edit(tea.id, "green tea")
        hot.flush()
        with RecordLog(kept, acme) as behind:
            assert behind.export() == log.export()
        client.flushdb()
        assert texts(log) == ["green tea"], "what Redis has lost is taken from the store"
        log.add(message("more"))
        log.purge(tea.id)
        assert hot.namespaces() == ["acme"]
    with RecordLog(kept, acme) as behind:
        assert texts(behind) == ["more"]
        assert "green tea" not in str(behind.export())


def test_only_what_was_written_behind_expires(redis_server: Server, client: redis.Redis, tmp_path: Path) -> None:
    address = address_of(client, redis_server)
    with RecordLog(f"{address}&write_behind={tmp_path / 'a.db'}&ttl=100") as log:
        log.add(message("x"))
        until = time.monotonic() + 20
        while client.ttl("clew:{default}:changes") < 0 and time.monotonic() < until:
            time.sleep(0.01)
        assert 0 < client.ttl("clew:{default}:changes") <= 100  # type: ignore[operator]
    client.hset("clew:{default}:facts", "flushed", 0)
    changes = RedisChanges(client, "default", "here", ttl=100, source=list)
    changes.append(1, lambda fresh: [_row("u1")])
    assert client.ttl("clew:{default}:changes") == -1


def _row(uid: str) -> Any:
    from clew.memory.changes import Change, Marked, to_row

    return to_row(Change(uid, 1.0, Marked("m", 1.0)))


WRITER = """
import sys, time
from clew.memory import MemoryRecord, RecordLog
import clew.memory.redis as redis
redis.Stored.merge = lambda *_: time.sleep(1_000) if len(sys.argv) > 3 else None  # the store behind hangs
log = RecordLog(redis.Redis(sys.argv[1], write_behind=sys.argv[2]))
for n in range(1_000):
    log.add(MemoryRecord("user", f"text {n}"))
    print(n, flush=True)
"""


def test_what_redis_acknowledged_reaches_the_store_after_a_kill(redis_server: Server, tmp_path: Path) -> None:
    address, kept = redis_server.address(), tmp_path / "kept.db"
    command = [sys.executable, "-c", WRITER, address, str(kept), "hang"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    said = [worker.stdout.readline() for _ in range(30)]
    worker.kill()
    said += worker.stdout.readlines()
    worker.stdout.close()
    worker.wait()
    with RecordLog(kept) as behind:
        assert behind.records() == []
    with Redis(address, write_behind=kept) as hot:
        hot.ledger("default")
        hot.flush()
    with RecordLog(kept) as behind:
        found = texts(behind)
    assert found == [f"text {n}" for n in range(len(found))]
    assert len(found) >= sum(line.endswith(b"\n") for line in said)


def test_a_store_behind_that_fails_is_tried_again_and_flush_says_so(
    redis_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.memory.stored import Stored

    monkeypatch.setattr("clew.memory.redis.PAUSE", 0.01)
    real, failing = Stored.merge, threading.Event()
    failing.set()

    def merge(stored: Stored, changes: Any) -> int:
        if failing.is_set():
            raise StoreError("the disk is full")
        return real(stored, changes)

    monkeypatch.setattr(Stored, "merge", merge)
    with Redis(redis_server.address(), write_behind=tmp_path / "kept.db", queue=3) as hot:
        log = RecordLog(hot)
        for n in range(3):
            log.add(message(f"{n}"))
        with pytest.raises(StoreError, match="disk is full"):
            hot.flush()
        with pytest.raises(StoreError, match="disk is full"):
            log.add(message("one too many waits"))
        failing.clear()
        hot.flush()
        with RecordLog(tmp_path / "kept.db") as behind:
            assert texts(behind) == ["0", "1", "2", "one too many waits"]


def test_a_server_that_is_restarted_and_a_reply_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    try:
        server.start()
        with RecordLog(server.address()) as log:
            log.add(message("before"))
            server.stop(signal.SIGKILL)
            again = threading.Timer(0.3, server.start)
            again.start()
            log.add(message("after"))
            again.join()
            assert texts(log) == ["before", "after"]
            real, lost = RedisChanges._add, []

            def add(changes: RedisChanges, *args: Any) -> Any:
                added = real(changes, *args)
                if not lost:
                    lost.append(1)
                    raise redis.ConnectionError("the connection was lost")
                return added

            monkeypatch.setattr(RedisChanges, "_add", add)
            log.add(message("once"))
            assert lost
            assert texts(log) == ["before", "after", "once"]
            assert len(log.export()) == 3
    finally:
        server.remove()


def test_errors_are_typed_and_show_no_password(tmp_path: Path, redis_server: Server) -> None:
    with pytest.raises(Interrupted, match=r"unix:///.*given up after \d+ tries"):
        RecordLog(f"unix://{tmp_path}/absent?patience=0.2").records()
    with pytest.raises(StoreError, match="an address is redis://") as error:
        RecordLog("redis://user:geheim@host/0?ttl=soon")
    assert "geheim" not in str(error.value)
    with pytest.raises(Interrupted) as lost:
        RecordLog("redis://user:geheim@127.0.0.1:1/0?patience=0.1").records()
    assert "geheim" not in str(lost.value)
    with pytest.raises(StoreError, match="Redis and JSON files keep memories only"):
        Session.open(redis_server.address())


def test_each_reader_knows_which_log_it_has_read(
    redis_server: Server, client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.memory.stored import Stored

    real, failing = Stored.merge, threading.Event()
    failing.set()

    def merge(stored: Stored, changes: Any) -> int:
        if failing.is_set():
            raise StoreError("the disk is full")
        return real(stored, changes)

    monkeypatch.setattr(Stored, "merge", merge)
    with Redis(address_of(client, redis_server), write_behind=tmp_path / "kept.db") as hot:
        one, other = RecordLog(hot), RecordLog(hot)
        one.add(message("lost"))
        assert texts(other) == ["lost"]
        client.flushdb()
        one.add(message("a"))
        one.add(message("b"))
        assert texts(one) == texts(other) == ["a", "b"]
        failing.clear()


def test_a_purge_is_done_in_the_store_behind_too(redis_server: Server, client: redis.Redis, tmp_path: Path) -> None:
    with Redis(address_of(client, redis_server), write_behind=tmp_path / "kept.db") as hot:
        log = RecordLog(hot)
        secret = log.add(message("SECRETWORD"))
        assert secret is not None
        hot.flush()
        log.purge(secret.id)
        client.flushdb()
        assert texts(log) == []
        assert not [path for path in tmp_path.iterdir() if b"SECRETWORD" in path.read_bytes()]


def test_nothing_is_put_in_the_place_of_what_another_log_has(redis_server: Server, client: redis.Redis) -> None:
    changes = RedisChanges(client, "default", "here")
    changes.append(0, lambda fresh: [_row("old")])
    client.flushdb()
    other = RedisChanges(client, "default", "here")
    other.append(0, lambda fresh: [_row("new")])
    with pytest.raises(Restarted):
        changes.rewrite([_row("old")._replace(position=1)])
    assert [row.uid for row in other.after(0)] == ["new"]


def test_a_merge_that_has_to_try_again_counts_what_it_read_once(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = redis_server.address()
    with RecordLog() as source:
        source.add(message("merged"))
        changes = source.export()
    with RecordLog(address) as log, RecordLog(address) as other:
        real = RedisChanges._add

        def add(self: RedisChanges, *args: Any) -> Any:
            monkeypatch.undo()
            other.add(MemoryRecord("user", "between", metadata={"session": "s"}))
            return real(self, *args)

        other.add(MemoryRecord("user", "first", metadata={"session": "s"}))
        monkeypatch.setattr(RedisChanges, "_add", add)
        assert log.merge(changes) == 1
        uids = [told.uid for told in log.told()]
        assert log.around(uids) == other.around(uids)
        assert sorted(texts(log)) == ["between", "first", "merged"]
