"""What is particular to PostgreSQL: addresses, migrations, lost connections, other writers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from clew.errors import Interrupted, LeaseLost, SessionBusy, StoreError
from clew.messages import user
from clew.sessions import Session
from clew.storage import ChangeRow, Changes, EntryRow, SessionRow, Store, open_store
from clew.storage.lease import new_owner
from clew.storage.migrate import downgrade, upgrade
from clew.storage.pgvector import Nearby
from clew.storage.schema import REVISIONS
from servers import Postgres


@pytest.fixture
def address(postgres: Postgres) -> str:
    return postgres.address(postgres.database())


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    store = open_store(address)
    yield store
    store.close()


def entry(id: int) -> EntryRow:
    return EntryRow(id, id - 1 or None, "note", 1.0, "", b'{"type":"note","kind":"x"}')


def ask(address: str, statement: str) -> list[Any]:
    """Asks the server beside the store."""
    with psycopg.connect(address, autocommit=True) as db:
        return db.execute(statement.encode()).fetchall()


def cut(address: str) -> int:
    """Ends all other connections to the database, as a failing network or server does."""
    ended = ask(
        address,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return len(ended)


# -- addresses


def test_messages_do_not_show_the_password(postgres: Postgres) -> None:
    where = f"postgresql://owner:geheim@/absent?host={postgres.folder}"
    with pytest.raises(
        StoreError, match=r"postgresql://owner@/absent: .*does not exist; make it first: `createdb"
    ) as e:
        open_store(where)
    assert "geheim" not in str(e.value)


def test_a_server_that_is_not_there_is_given_up_soon_with_figures(tmp_path: Any) -> None:
    with pytest.raises(
        Interrupted, match=r"given up after \d+ tries in [\d.]+ s; nothing was written: check the address"
    ) as e:
        open_store(f"postgresql://owner@/x?host={tmp_path}&patience=0.3")
    assert not e.value.unknown


@pytest.mark.parametrize("where", ["postgresql://h/d?nonsense=1", "postgresql://h/d?patience=long"])
def test_addresses_that_are_none(where: str) -> None:
    with pytest.raises(StoreError, match="an address is postgresql://"):
        open_store(where)


def test_a_store_that_should_be_there(address: str) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        open_store(address, create=False)
    open_store(address).close()
    open_store(address, create=False).close()


def test_the_address_may_set_what_libpq_can(address: str) -> None:
    store = open_store(address + "&options=-c%20lock_timeout%3D7s&application_name=mine")
    with store.reading() as db:
        shown = {name: db.exec_driver_sql(f"SHOW {name}").scalar() for name in ("lock_timeout", "application_name")}
    store.close()
    assert shown == {"lock_timeout": "7s", "application_name": "mine"}


def test_a_commit_is_on_disk_even_if_the_server_is_set_otherwise(postgres: Postgres) -> None:
    name = postgres.database()
    postgres.run(name, f"ALTER DATABASE {name} SET synchronous_commit = off")
    store = open_store(postgres.address(name))
    with store.reading() as db:
        assert db.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    store.close()


def test_what_a_text_cannot_hold_is_an_error_and_nothing_else(store: Store) -> None:
    for id in ("a\0b", "\ud800"):
        with pytest.raises(StoreError):
            store.create(SessionRow("default", id))
        with pytest.raises(StoreError):
            store.session("default", id)
    assert store.sessions("default") == []


# -- the schema

SHAPE = """
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '' FROM pg_constraint
    WHERE contype <> 'n' AND connamespace = 'public'::regnamespace
UNION ALL SELECT tablename, policyname, qual, coalesce(with_check, '') FROM pg_policies
UNION ALL SELECT relname, relrowsecurity::text, relforcerowsecurity::text, '' FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
UNION ALL SELECT version_num, '', '', '' FROM alembic_version
UNION ALL SELECT role, tenant, '', '' FROM tenants
ORDER BY 1, 2, 3
"""


def migrated(address: str, to: str | None = None) -> None:
    from clew.storage.postgres import Address, Server

    server = Server(Address.of(address))
    with server.writing() as db:
        if to is None:
            upgrade(db)
        else:
            downgrade(db, to)
    server.close()


def test_migrations_build_what_a_new_store_gets_and_go_both_ways(postgres: Postgres, address: str) -> None:
    open_store(address).close()
    new = ask(address, SHAPE)
    other = postgres.address(postgres.database())
    migrated(other)
    assert ask(other, SHAPE) == new
    store = open_store(other)
    store.create(SessionRow("default", "s"))
    Nearby(store, "default", "vectors")  # makes tables of its own, which an older Clew does not know
    store.close()
    migrated(other, REVISIONS[0])
    left = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
    assert ask(other, left) == [("alembic_version",), ("entries",), ("sessions",)]
    store = open_store(other)
    assert [row.id for row in store.sessions("default")] == ["s"]
    store.close()
    assert ask(other, SHAPE) == new


def test_many_make_the_tables_at_the_same_time(address: str) -> None:
    def work(n: int) -> None:
        store = open_store(address)
        store.create(SessionRow("default", f"s{n}"))
        store.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    store = open_store(address)
    assert len(store.sessions("default")) == 6
    store.close()


# -- what breaks


def test_a_lost_connection_is_made_again_for_reads_and_writes(store: Store, address: str) -> None:
    me = new_owner()
    store.create(SessionRow("default", "s"))
    for n in range(3):
        assert cut(address) == 1
        store.claim("default", "s", me)
        assert cut(address) == 1
        store.append("default", "s", me, [entry(n + 1)], n + 1)
        assert cut(address) == 1
        assert [row.id for row in store.rows("default", "s", 1)] == list(range(1, n + 2))


def test_a_session_goes_on_over_a_lost_connection(address: str) -> None:
    with Session.open(address) as session:
        for n in range(5):
            session.append(user(f"message {n}"))
            cut(address)
        assert [m.text for m in session.messages()] == [f"message {n}" for n in range(5)]
        assert session.newest == 5


def _after_commit(store: Store, address: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the connection breaks off once, between a commit and the answer to it."""
    from clew.storage.postgres import Server

    server = store.database
    assert isinstance(server, Server)
    with server.reading() as db:
        raw: Any = db.connection.dbapi_connection
    done: list[int] = []
    real = psycopg.Cursor.execute

    def execute(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        result = real(cursor, query, *args, **options)
        if query == "COMMIT" and cursor.connection is raw and not done:
            done.append(raw.info.backend_pid)
            raw.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return result

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)
    return done


def test_an_append_whose_commit_was_not_heard_of_is_there_once(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = new_owner()
    store.create(SessionRow("default", "s"))
    store.claim("default", "s", me)
    broke = _after_commit(store, address, monkeypatch)
    store.append("default", "s", me, [entry(1), entry(2)], 2)
    assert broke
    assert [row.id for row in store.rows("default", "s", 1)] == [1, 2]
    found = store.session("default", "s")
    assert found is not None
    assert (found.entries, found.last, found.leaf) == (2, 2, 2)
    with pytest.raises(LeaseLost):
        store.append("default", "s", me, [entry(2)], 2)


def test_other_writes_whose_commit_was_not_heard_of_are_done_once(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = new_owner()
    for write in (
        lambda: store.create(SessionRow("default", "s")),
        lambda: store.claim("default", "s", me),
        lambda: store.append("default", "s", me, [entry(1)], 1),
        lambda: store.move("default", "s", me, None),
        lambda: store.release("default", "s", me),
    ):
        broke = _after_commit(store, address, monkeypatch)
        write()
        assert broke
        monkeypatch.undo()
    found = store.session("default", "s")
    assert found is not None
    assert (found.entries, found.leaf, found.lease_owner) == (1, None, "")


def test_a_change_whose_commit_was_not_heard_of_is_there_once(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Changes(store, "default")
    broke = _after_commit(store, address, monkeypatch)
    made: list[str] = []

    def decide(fresh: list[ChangeRow]) -> list[ChangeRow]:
        made.append(f"u{len(made)}")
        return [ChangeRow(0, made[-1], 1.0, "note", "", "", "", b"{}")]

    added = changes.append(0, decide)
    assert broke
    assert [(row.position, row.uid) for row in changes.after(0)] == [(1, "u0")] == [(r.position, r.uid) for r in added]


def test_after_all_tries_the_error_says_what_is_known(
    address: str, monkeypatch: pytest.MonkeyPatch, postgres: Postgres
) -> None:
    store = open_store(address + "&patience=0.3")
    store.create(SessionRow("default", "s"))
    postgres.run("postgres", f"ALTER DATABASE {address.split('/')[3].split('?')[0]} ALLOW_CONNECTIONS false")
    _after_commit(store, address, monkeypatch)
    with pytest.raises(StoreError) as unknown:
        store.create(SessionRow("default", "t"))
    assert "not currently accepting connections" in str(unknown.value)
    postgres.run("postgres", f"ALTER DATABASE {address.split('/')[3].split('?')[0]} ALLOW_CONNECTIONS true")
    monkeypatch.undo()
    assert {row.id for row in store.sessions("default")} == {"s", "t"}
    store.close()


def test_a_transaction_that_broke_off_is_undone_and_not_gone_on_with(store: Store, address: str) -> None:
    def work() -> None:
        with store.exclusive("default"):
            store.create(SessionRow("default", "a"))
            cut(address)
            store.create(SessionRow("default", "b"))

    with pytest.raises(Interrupted, match="terminating connection"):
        work()
    assert store.sessions("default") == []


def test_deadlocks_are_settled(address: str) -> None:
    stores = [open_store(address) for _ in range(2)]
    stores[0].create(SessionRow("default", "a"))
    stores[0].create(SessionRow("default", "b"))
    both = threading.Barrier(2)

    def work(n: int) -> int:
        tries = 0

        def change(again: bool) -> None:
            nonlocal tries
            tries += 1
            with stores[n].writing() as db:
                for at, id in enumerate("ab" if n else "ba"):
                    db.exec_driver_sql(f"UPDATE sessions SET title = title || '{n}' WHERE id = '{id}'")
                    if at == 0 and tries == 1:
                        both.wait(10)

        stores[n].patiently(change)
        return tries

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, range(2))) == [1, 2]
    assert sorted("".join(sorted(row.title)) for row in stores[0].sessions("default")) == ["01", "01"]
    for store in stores:
        store.close()


def test_two_claims_at_the_same_time_give_one_lease(address: str) -> None:
    stores = [open_store(address) for _ in range(4)]
    stores[0].create(SessionRow("default", "s"))
    for _ in range(10):
        start = threading.Barrier(4)

        def work(store: Store, start: threading.Barrier = start) -> str:
            me = new_owner()
            start.wait(10)
            try:
                store.claim("default", "s", me)
            except SessionBusy:
                return ""
            return me

        with ThreadPoolExecutor(4) as pool:
            owners = [owner for owner in pool.map(work, stores) if owner]
        assert len(owners) == 1
        stores[0].release("default", "s", owners[0])
    for store in stores:
        store.close()


def test_positions_are_without_gaps_and_become_visible_in_order(address: str) -> None:
    stores = [open_store(address) for _ in range(5)]
    stop = threading.Event()

    def write(n: int) -> None:
        changes = Changes(stores[n], "default")
        for i in range(60):
            changes.append(0, lambda fresh, i=i: [ChangeRow(0, f"{n}/{i}", 1.0, "note", "", "", "", b"{}")])  # type: ignore[misc]

    def follow() -> list[int]:
        changes, seen = Changes(stores[4], "default"), [0]
        while not stop.is_set() or changes.after(seen[-1]):
            seen += [row.position for row in changes.after(seen[-1])]
        return seen

    with ThreadPoolExecutor(5) as pool:
        follower = pool.submit(follow)
        list(pool.map(write, range(4)))
        stop.set()
        assert follower.result() == list(range(241))
    for store in stores:
        store.close()


def test_a_store_is_not_carried_into_a_forked_process(store: Store) -> None:
    child = os.fork()
    if child == 0:
        try:
            store.sessions("default")
        except StoreError as error:
            os._exit(42 if "fork" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert store.sessions("default") == []


def test_the_server_is_restarted_under_a_session() -> None:
    server = Postgres()
    try:
        server.start()
        with Session.open(server.address(server.database())) as session:
            session.append(user("before"))
            server.stop(signal.SIGKILL)
            again = threading.Timer(0.3, server.start)
            again.start()
            session.append(user("after"))
            again.join()
            assert [m.text for m in session.messages()] == ["before", "after"]
    finally:
        server.remove()
