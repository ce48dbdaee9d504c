"""Forgetting for good: what was purged is nowhere, and nothing brings it back. Questions do not read the whole log."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection

from clew.errors import UnknownName
from clew.memory import MemoryRecord, RecordLog, Source
from clew.memory.changes import Erased, Opened, Tried
from clew.storage import changes, versions
from clew.storage.prepared import Prepared

SAID = "has a rash on the left knee"


def said(entry: str = "e1", **more: object) -> MemoryRecord:
    return MemoryRecord("user", SAID, sources=(Source.of(entry, SAID),), **more)  # type: ignore[arg-type]


def test_what_was_purged_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "agent.db") as log:
        told = log.add(said(metadata={"note": SAID}))
        assert told is not None
        log.edit(told.id, SAID + ", still")
        log.shut(told.id, reason=SAID)
        log.write(lambda at: Tried(told.id, "extract", "failed", SAID, SAID))
        kept = log.add(MemoryRecord("user", "drinks tea"))
        assert any(SAID.encode() in file.read_bytes() for file in tmp_path.iterdir())
        log.purge(told.id)
        for file in tmp_path.iterdir():
            assert SAID.encode() not in file.read_bytes(), file.name
        assert log.records() == [kept]
        assert log.get(told.id, at=told.created) is None, "not in the past either"
        for never in (lambda: log.history(told.id), lambda: log.purge(told.id), lambda: log.purge("nobody")):
            with pytest.raises(UnknownName):
                never()
        assert SAID not in str(log.export())
        assert log.tried("extract", told.id) == (Tried(told.id, "extract", "failed"),)


def test_an_index_is_told_what_to_forget() -> None:
    with RecordLog() as log:
        told = log.add(said())
        assert told is not None
        log.edit(told.id, "another text")
        uids = [t.uid for t in log.told()]
        log.purge(told.id)
        (first, second) = log.told()
        assert [(t.uid, t.record) for t in (first, second)] == [(uid, None) for uid in uids]
        assert log.mark_of(first.position) != ""
        assert (log.held(uids), log.around(uids)) == ({}, {})


def test_nothing_brings_it_back() -> None:
    one, other = RecordLog(), RecordLog()
    told = one.add(said(), key="turn 1")
    assert told is not None
    other.merge(one.export())
    before = other.export()
    one.purge(told.id)
    other.edit(told.id, "an edit made elsewhere")
    assert one.merge(before) == 0
    assert one.merge(other.export()) == 1
    assert (one.records(), one.add(said()), one.add(said(), key="turn 1")) == ([], None, None)
    assert other.merge(one.export()) == 1
    assert other.records() == []
    for log in (one, other):
        assert all(not isinstance(c.body, Opened) for c in log.export())
        assert sum(isinstance(c.body, Erased) for c in log.export()) == 2
        assert "elsewhere" not in str(log.export())
    assert one.add(said("e9")) is not None, "said anew, it is stored"


def test_under_a_key_something_new_may_be_told() -> None:
    with RecordLog() as log:
        home = log.add(MemoryRecord("user", "lives in Rome", kind="fact", key="home", value="Rome"))
        assert home is not None
        log.purge(home.id)
        again = log.add(MemoryRecord("user", "lives in Bern", kind="fact", key="home", value="Bern"))
        assert again is not None
        assert (again.id, [r.text for r in log.records()]) == (home.id, ["lives in Bern"])
        assert len(log.history(home.id)) == 1


def plan(db: Connection, statement: Prepared, names: dict[str, int]) -> list[str]:
    made = statement._for(db.dialect, names)
    found = db.exec_driver_sql("EXPLAIN QUERY PLAN " + made.sql, tuple(1 for _ in made._order))
    return [str(row[3]) for row in found]


@pytest.mark.parametrize("size", [4, 200])
def test_what_is_asked_of_changes_has_an_index(size: int) -> None:
    listing = {"_RECORDS", "_RECORDS_OF"}
    with RecordLog() as log, log.store.reading() as db:
        for module in (changes, versions):
            for name, statement in vars(module).items():
                if not isinstance(statement, Prepared) or "INSERT" in str(statement._statement) or name in listing:
                    continue
                lists = {n: size for n in ("some", "kinds") if n in statement._statement.compile().params}  # type: ignore[attr-defined]
                steps = plan(db, statement, lists)
                assert steps
                for step in steps:
                    assert "SCAN" not in step, (name, steps)
                    assert step.endswith("heads USING PRIMARY KEY (namespace=?)") or "(namespace=?)" not in step, name


def test_a_purge_that_is_merged_in_leaves_nothing_on_the_disk_either(tmp_path: Path) -> None:
    with RecordLog() as other, RecordLog(tmp_path / "agent.db") as log:
        secret = other.add(MemoryRecord("user", "SECRETWORD"))
        assert secret is not None
        log.merge(other.export())
        other.purge(secret.id)
        log.merge(other.export())
        assert not [path for path in tmp_path.iterdir() if b"SECRETWORD" in path.read_bytes()]
