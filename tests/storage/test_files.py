"""The file: its modes, what is refused, and how it comes up."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from clew.errors import StoreError
from clew.storage import Changes, SessionRow, open_store
from clew.storage.migrate import downgrade, upgrade
from clew.storage.schema import REVISIONS


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_file_and_companions_are_private_and_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "agent.db"
    before = os.umask(0)
    try:
        store = open_store(path)
        store.create(SessionRow("default", "s"))
        files = sorted(path.parent.iterdir())
        assert [f.name for f in files] == ["agent.db", "agent.db-shm", "agent.db-wal"]
        assert {mode(f) for f in files} == {0o600}
        assert mode(path.parent) == mode(path.parent.parent) == 0o700
    finally:
        os.umask(before)
    store.close()


def test_settings_are_durable_ones(tmp_path: Path) -> None:
    store = open_store(tmp_path / "agent.db")
    with store.reading() as db:
        found = {p: db.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("journal_mode", "synchronous", "foreign_keys")}
    store.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


@pytest.mark.parametrize("content", [b"x", b"notes of mine\n" * 50, b"SQLite format 3\0", b"\0" * 4096])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"notes\.txt is not a Clew store"):
        open_store(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"PRAGMA journal_mode={journal}")
    other.execute("CREATE TABLE sessions (id)")
    other.execute("INSERT INTO sessions VALUES (1)")
    before = {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path)) if "shm" not in name}
    with pytest.raises(StoreError, match="database of another program"):
        open_store(path)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    other.close()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    path.touch()
    open_store(path, create=False).close()
    assert path.read_bytes()[68:72] == b"Clew"


def test_a_missing_file_is_not_made_when_it_should_be_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        open_store(tmp_path / "absent" / "agent.db", create=False)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("where", ["mysql://host/db", "postgresql://h/d?x=1", "sqlite://", ""])
def test_addresses_that_are_none(where: str) -> None:
    with pytest.raises(StoreError):
        open_store(where)


def test_a_folder_and_a_path_through_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        open_store(tmp_path / "file" / "agent.db")


def test_urls_and_paths_name_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ("agent.db", "sqlite:///agent.db", f"sqlite:///{tmp_path}/agent.db", Path("agent.db")):
        store = open_store(where)
        store.create(SessionRow("default", f"s{len(store.sessions('default'))}"))
        store.close()
    assert os.listdir(tmp_path) == ["agent.db"]
    store = open_store("agent.db")
    assert len(store.sessions("default")) == 4
    store.close()


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    open_store(path).close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"version 9999.*newer Clew.*update Clew"):
        open_store(path)
    assert path.read_bytes() == before


def test_migrations_build_what_a_new_store_gets(tmp_path: Path) -> None:
    def schema(path: Path) -> list[tuple[str, ...]]:
        raw = sqlite3.connect(path)
        rows = []
        for name, kind in raw.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'index')"):
            pragma = "table_xinfo" if kind == "table" else "index_xinfo"
            rows += [(name, *map(str, row)) for row in raw.execute(f"PRAGMA {pragma}('{name}')")]
            if kind == "table":
                rows += [(name, "fk", *map(str, row)) for row in raw.execute(f"PRAGMA foreign_key_list('{name}')")]
        rows += [tuple(map(str, row)) for row in raw.execute("SELECT version_num FROM alembic_version")]
        partial = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_key'").fetchone()
        raw.close()
        return [*sorted(rows), partial]

    open_store(tmp_path / "new.db").close()
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    assert schema(tmp_path / "new.db") == schema(tmp_path / "migrated.db")


def test_a_store_goes_back_to_an_older_schema_and_forth_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = open_store(path)
    store.create(SessionRow("default", "s"))
    store.close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        downgrade(connection, REVISIONS[0])
        tables = {name for (name,) in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type='table'")}
        assert tables == {"sessions", "entries", "alembic_version"}
    engine.dispose()
    store = open_store(path)
    assert [row.id for row in store.sessions("default")] == ["s"]
    assert Changes(store, "default").after(0) == []
    store.close()


def test_an_older_schema_is_migrated_on_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    open_store(path).close()
    migrated = []
    monkeypatch.setattr("clew.storage.migrate.REVISIONS", (*REVISIONS, "later"))
    monkeypatch.setattr("clew.storage.sqlite.REVISIONS", (*REVISIONS, "later"))
    monkeypatch.setattr("clew.storage.migrate.upgrade", migrated.append)
    open_store(path).close()
    assert len(migrated) == 1


def test_alembic_is_not_loaded_to_open_a_store(tmp_path: Path) -> None:
    code = (
        "import sys; from clew.storage import open_store\n"
        f"for _ in range(2): open_store({str(tmp_path / 'agent.db')!r}).close()\n"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_processes_make_one_file_at_the_same_time(tmp_path: Path) -> None:
    code = (
        "import sys; from clew.storage import open_store, SessionRow\n"
        "sys.stdin.read(1)\n"
        f"store = open_store({str(tmp_path / 'agent.db')!r}); store.create(SessionRow('default', sys.argv[1]))"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, f"s{n}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(4)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b".")
        worker.stdin.flush()
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert errors == [""] * 4
    store = open_store(tmp_path / "agent.db")
    assert {row.id for row in store.sessions("default")} == {"s0", "s1", "s2", "s3"}
    store.close()


def test_a_second_store_on_the_file_in_one_process_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Reading an open database outside SQLite and closing it would drop this process's locks on it."""
    path = tmp_path / "agent.db"
    first = open_store(path)
    first.create(SessionRow("default", "s"))
    locks = _locks(path)
    second = open_store(path)
    assert locks
    assert locks <= _locks(path)
    second.close()
    assert locks <= _locks(path)
    first.close()


def _locks(path: Path) -> set[str]:
    """The locks this process holds on the file, from Linux's table of locks."""
    inode = f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return {line.split(":", 1)[1] for line in lines if inode in line and f" {os.getpid()} " in line}


def test_errors_of_the_database_are_store_errors(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = open_store(path)
    store.create(SessionRow("default", "s"))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.create(SessionRow("default", "s"))
    store.create(SessionRow("default", "t"))
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.sessions("default")
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="damaged"):
        open_store(path)


def test_a_store_is_not_carried_into_a_forked_process(tmp_path: Path) -> None:
    store = open_store(tmp_path / "agent.db")
    child = os.fork()
    if child == 0:
        try:
            store.sessions("default")
        except StoreError as error:
            os._exit(42 if "fork" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    store.close()


def test_names_that_no_database_can_hold(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="null"):
        open_store(tmp_path / "a\0b.db")
    store = open_store(tmp_path / "agent.db")
    for lookup in (lambda: store.find("default", "\udcff"), lambda: store.sessions("\ud800")):
        with pytest.raises(StoreError, match="no such value can be stored or found"):
            lookup()
    store.close()
