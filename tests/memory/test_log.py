"""The log of a memory: versions, tombstones, times, merges."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import StoreError, UnknownName
from clew.memory import MemoryRecord, Namespace, Recall, RecordLog, Source
from clew.memory.changes import Change, Closed, Pinned
from clew.memory.state import State


class Ticks:
    """A clock that goes one second further at each look."""

    def __init__(self, start: float = 1_000.0) -> None:
        self.time = start

    def __call__(self) -> float:
        self.time += 1.0
        return self.time


def said(text: str, *entries: str, **fields: object) -> MemoryRecord:
    return MemoryRecord("user", text, sources=tuple(Source.of(e, e) for e in entries), **fields)  # type: ignore[arg-type]


def texts(log: RecordLog, at: float | None = None) -> list[str]:
    return [r.text for r in log.records(at=at)]


def test_a_change_closes_the_old_version_and_opens_a_new_one() -> None:
    log = RecordLog(clock=Ticks())
    tea = log.add(said("drinks tea", "e1"))
    assert tea is not None
    green = log.edit(tea.id, "drinks green tea")
    old, new = log.history(tea.id)
    assert isinstance(old, MemoryRecord)
    assert (old.text, old.valid_to) == ("drinks tea", green.valid_from)
    assert (new, green.valid_to, green.created) == (green, None, tea.created)
    assert texts(log) == ["drinks green tea"]
    assert texts(log, at=tea.created) == ["drinks tea"]
    assert texts(log, at=tea.created - 1) == []


def test_a_deletion_leaves_a_tombstone_and_its_past() -> None:
    log = RecordLog(clock=Ticks())
    tea = log.add(said("drinks tea", "e1"))
    assert tea is not None
    log.delete(tea.id, reason="was a joke")
    assert texts(log) == []
    assert texts(log, at=tea.created) == ["drinks tea"]
    tombstone = log.history(tea.id)[-1]
    assert isinstance(tombstone, Closed)
    assert tombstone.reason == "was a joke"
    for never in (lambda: log.edit(tea.id, "x"), lambda: log.delete("nobody"), lambda: log.history("nobody")):
        with pytest.raises(UnknownName):
            never()
    assert log.add(said("drinks tea", "e1")) is None, "told again from the same source"
    assert log.add(said("Drinks tea.", "e2")) is not None, "said anew"


def test_what_is_known_is_stored_once_and_cites_everyone_who_said_it() -> None:
    log = RecordLog()
    ways = ["drinks tea", "Drinks tea", "drinks  tea.", "ｄｒｉｎｋｓ tea", "DRINKS TEA\n"]
    ids = {log.add(said(ways[n % len(ways)], f"e{n}")).id for n in range(20)}  # type: ignore[union-attr]
    (only,) = log.records()
    assert ids == {only.id}
    assert [s.entry for s in only.sources] == [f"e{n}" for n in range(20)]
    before = len(log.export())
    log.add(said("drinks tea", "e3"))
    assert len(log.export()) == before, "nothing new was said"
    assert log.add(said("drinks tea"), again=True) != only
    assert len(log.records()) == 2


@pytest.mark.parametrize("blank", ["", " \n\t", "\u3000", None])
def test_blank_texts_are_not_stored(blank: str | None) -> None:
    log = RecordLog()
    assert log.add(MemoryRecord("user", blank)) is None
    assert log.export() == []
    kept = log.add(said("x"))
    assert kept is not None
    with pytest.raises(UnknownName, match="blank"):
        log.edit(kept.id, "  ")


def test_a_date_in_words_is_no_time() -> None:
    log = RecordLog()
    for asked in (log.records, lambda at: log.get("x", at), lambda at: Recall(log).recall("tea", at=at)):
        with pytest.raises(UnknownName, match="at='2026-03-01' is no time; give seconds since 1970"):
            asked(at="2026-03-01")


def test_a_bare_text_is_no_record() -> None:
    with pytest.raises(StoreError, match="a str is no record; make one: MemoryRecord"):
        RecordLog().add("drinks tea")  # type: ignore[arg-type]


def test_an_idempotency_key_counts_once() -> None:
    log = RecordLog()
    first = log.add(said("one"), key="turn 1")
    assert log.add(said("two"), key="turn 1") == first
    assert log.add(said("one"), key="turn 2") == first
    assert log.add(said("three"), key="turn 2") == first
    assert texts(log) == ["one"]
    assert first is not None
    log.delete(first.id)
    assert log.add(said("one"), key="turn 1") is None


def test_pins_and_uses_are_counted_over_time() -> None:
    log = RecordLog(clock=Ticks())
    tea = log.add(said("tea"))
    assert tea is not None
    log.pin(tea.id)
    log.use(tea.id)
    log.use(tea.id, tea.id)
    log.pin(tea.id, False)
    now = log.get(tea.id)
    assert now is not None
    assert (now.uses, now.pinned) == (3, False)
    then = log.get(tea.id, at=next(c.at for c in log.export() if isinstance(c.body, Pinned)))
    assert then is not None
    assert (then.uses, then.pinned) == (0, True)


def test_a_fact_that_ends_by_itself_is_not_shown_as_current() -> None:
    log = RecordLog(clock=Ticks(1_000))
    log.add(said("on leave", valid_from=900.0, valid_to=1_500.0))
    log.add(said("moves to Rome", valid_from=9_000.0))
    assert texts(log) == ["on leave"]
    assert texts(log, at=1_499.0) == ["on leave"]
    assert texts(log, at=1_500.0) == []
    assert texts(log, at=9_000.0) == ["moves to Rome"]


def test_a_value_told_late_takes_its_place_in_the_past() -> None:
    log = RecordLog(clock=Ticks())
    for value, start in (("Paris", 300.0), ("Rome", 500.0), ("Bern", 400.0)):
        log.add(MemoryRecord("user", value, kind="fact", key="home", value=value, valid_from=start))
    (home,) = log.records("fact")
    assert home.value == "Rome"
    spans = [(r.value, r.valid_from, r.valid_to) for r in log.history(home.id) if isinstance(r, MemoryRecord)]
    assert spans == [("Paris", 300.0, 400.0), ("Bern", 400.0, 500.0), ("Rome", 500.0, None)]


def test_namespaces_are_apart_and_named_without_doubt(tmp_path: Path) -> None:
    spaces = [
        Namespace("u"), Namespace("u", "1"), Namespace("u", "10"), Namespace("u", "", "1"), Namespace("u/1"),
        Namespace("u%2F1"), Namespace("u", "1/"), Namespace("u", "*"), Namespace("u", "王芳"), Namespace(),
        Namespace("u", "\ud800"), Namespace("u", "\\ud800"), Namespace("u", "\0"), Namespace("u", "\ufffd"),
        Namespace(".."),
    ]  # fmt: skip
    assert len({s.path for s in spaces}) == len(spaces)
    assert [Namespace.of(s.path) for s in spaces] == spaces
    for n, space in enumerate(spaces):
        with RecordLog(tmp_path / "agent.db", space) as log:
            assert log.add(said("the same text in each")) is not None
            log.add(said(f"secret {n}"))
    for n, space in enumerate(spaces):
        with RecordLog(tmp_path / "agent.db", space) as log:
            assert texts(log) == ["the same text in each", f"secret {n}"]
            assert {r.namespace for r in log.records()} == {space.path}
    for bad in ("", None, 1):
        with pytest.raises(UnknownName, match="tenant"):
            Namespace(bad)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match=r"make one, such as Namespace\(user='王芳'\)"):
        RecordLog("memory://", "王芳")  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        Namespace("t", None)  # type: ignore[arg-type]


@given(st.lists(st.text(max_size=3), min_size=4, max_size=4), st.lists(st.text(max_size=3), min_size=4, max_size=4))
def test_different_namespaces_have_different_paths(a: list[str], b: list[str]) -> None:
    one, other = Namespace("t" + a[0], *a[1:]), Namespace("t" + b[0], *b[1:])
    assert (one == other) == (one.path == other.path)


def test_the_id_of_a_fact_is_of_its_key_as_it_is_stored(tmp_path: Path) -> None:
    key = "password=hunter2!x"
    with RecordLog(tmp_path / "agent.db") as log:
        made = log.add(MemoryRecord("user", "one", kind="fact", key=key))
        assert made is not None
        assert "hunter2" not in made.key
        again = log.add(MemoryRecord("user", "two", kind="fact", key=made.key))
        assert again is not None
        assert again.id == made.id
        assert texts(log) == ["two"]


def test_any_content_can_be_kept(tmp_path: Path) -> None:
    contents = [
        {"a": [1, None, "猫"]},
        ["x", 1.5],
        "lone \ud800 surrogate",
        "x" * 300_000,
        "日本語\u2028 \x00",
        7,
        True,
    ]
    with RecordLog(tmp_path / "agent.db") as log:
        for content in contents:
            log.add(MemoryRecord("tool", content, metadata={"path": Path("x"), "n": (1, 2), "bad": "\udfff"}))
    with RecordLog(tmp_path / "agent.db") as log:
        records = log.records()
    assert [r.content for r in records] == [*contents[:2], "lone \ufffd surrogate", *contents[3:]]
    assert dict(records[0].metadata) == {"path": "x", "n": [1, 2], "bad": "\ufffd"}


def test_a_damaged_change_is_named(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "agent.db") as log:
        log.add(said("one"))
        log.add(said("two"))
    raw = sqlite3.connect(tmp_path / "agent.db")
    raw.execute("UPDATE changes SET body = '{' WHERE position = 2")
    raw.commit()
    raw.close()
    with RecordLog(tmp_path / "agent.db") as log, pytest.raises(StoreError, match="change 2"):
        log.records()


def test_a_failed_write_leaves_nothing_in_sight(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "agent.db")
    log.add(said("one"))
    raw = sqlite3.connect(tmp_path / "agent.db")
    raw.execute("CREATE TRIGGER full BEFORE INSERT ON changes BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
    raw.commit()
    with pytest.raises(StoreError, match="full"):
        log.add(said("two"))
    assert texts(log) == ["one"]
    raw.execute("DROP TRIGGER full")
    raw.commit()
    raw.close()
    assert log.add(said("two")) is not None
    assert texts(log) == ["one", "two"]
    log.close()


def test_two_logs_on_one_file_see_each_other(tmp_path: Path) -> None:
    one, other = RecordLog(tmp_path / "agent.db"), RecordLog(tmp_path / "agent.db")
    tea = one.add(said("tea", "e1"))
    assert tea is not None
    assert other.get(tea.id) == tea
    assert other.add(said("Tea", "e2")).id == tea.id  # type: ignore[union-attr]
    other.delete(tea.id)
    assert texts(one) == []
    with pytest.raises(UnknownName):
        one.edit(tea.id, "coffee")
    one.close()
    other.close()


WRITER = """
import sys
from clew.memory import MemoryRecord, RecordLog
log = RecordLog(sys.argv[1])
sys.stdin.read(1)
for n in range(60):
    log.add(MemoryRecord("user", f"{sys.argv[2]} {n}"))
    log.add(MemoryRecord("user", f"everyone says {n}"))
    log.add(MemoryRecord("user", f"v{n}", kind="fact", key="k", value=sys.argv[2] + str(n)))
"""


def test_four_processes_write_one_log(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    RecordLog(path).close()
    command = [sys.executable, "-c", WRITER, str(path)]
    workers = [subprocess.Popen([*command, f"w{n}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(4)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b".")
        worker.stdin.flush()
    assert [worker.communicate()[1].decode() for worker in workers] == [""] * 4
    with RecordLog(path) as log:
        plain = [r.text for r in log.records("")]
        expected = {f"w{w} {n}" for w in range(4) for n in range(60)} | {f"everyone says {n}" for n in range(60)}
        assert sorted(plain) == sorted(expected), "every write once, nothing twice"
        (fact,) = log.records("fact")
        assert len(log.history(fact.id)) == 240


def test_an_edit_made_elsewhere_does_not_bring_back_what_was_deleted() -> None:
    clock = Ticks()
    one, other = RecordLog(clock=clock), RecordLog(clock=clock)
    tea = one.add(said("tea"))
    home = one.add(said("home: Rome", key="home", value="Rome", kind="fact"))
    assert tea is not None
    assert home is not None
    other.merge(one.export())
    one.delete(tea.id)
    one.delete(home.id)
    other.edit(tea.id, "green tea")
    other.add(said("home: Bern", key="home", value="Bern", kind="fact"))
    one.merge(other.export())
    other.merge(one.export())
    assert texts(one) == texts(other) == ["home: Bern"], "under a key something new may be told"


# -- properties

KEYS = ("", "", "home", "猫")
WORDS = ("tea", "coffee", "小白", "Rome", "Paris")


@st.composite
def histories(draw: st.DrawFn) -> list[RecordLog]:
    """Three logs that were written and merged with each other in some way."""
    clock = Ticks()
    logs = [RecordLog(clock=lambda: clock.time) for _ in range(3)]
    for word in WORDS[:2]:
        logs[0].add(said(word, "e1"))
    for log in logs[1:]:  # all know these, so that one may delete what another edits
        log.merge(logs[0].export())
    for _ in range(draw(st.integers(1, 14))):
        clock()
        step(draw, draw(st.sampled_from(logs)), logs)
    return logs


def step(draw: st.DrawFn, log: RecordLog, logs: list[RecordLog]) -> None:
    records = log.records()
    what = draw(st.sampled_from(["add", "add", "add", "edit", "shut", "delete", "use", "pin", "merge"]))
    if what == "merge":
        log.merge(draw(st.sampled_from(logs)).export())
    elif what == "add" or not records:
        key, word = draw(st.sampled_from(KEYS)), draw(st.sampled_from(WORDS))
        entries = draw(st.lists(st.sampled_from(["e1", "e2", "e3"]), max_size=2))
        start = draw(st.none() | st.integers(990, 1_030).map(float))
        end = draw(st.none() | st.integers(1_005, 1_040).map(float))
        made = said(word, *entries, kind="fact" if key else "", key=key, value=word if key else "")
        log.add(
            MemoryRecord(**{**_fields(made), "valid_from": start, "valid_to": end}),
            key=draw(st.sampled_from(["", "", "k1", "k2"])),
            again=draw(st.booleans()),
        )
    else:
        id = draw(st.sampled_from(records)).id
        act: dict[str, Callable[[], object]] = {
            "edit": lambda: log.edit(id, draw(st.sampled_from(WORDS))),
            "shut": lambda: log.shut(id),
            "delete": lambda: log.delete(id),
            "use": lambda: log.use(id),
            "pin": lambda: log.pin(id, draw(st.booleans())),
        }
        act[what]()


def _fields(record: MemoryRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@given(histories(), st.randoms(use_true_random=False))
def test_laws_of_the_log(logs: list[RecordLog], chance: random.Random) -> None:
    """One property for all laws: to make the histories is what takes the time."""
    check_what_is_read_anew(logs)
    check_as_of_a_time(logs[0], logs[1])
    check_orders(logs, chance)
    check_nothing_resurrects(logs)


def check_what_is_read_anew(logs: list[RecordLog]) -> None:
    """What was counted change by change is what all changes come to."""
    for log in logs:
        anew, now = State(log.export()), log.now()
        assert anew.lines == log.state.lines
        assert list(anew.records(now)) == log.records(at=now)


def check_as_of_a_time(log: RecordLog, other: RecordLog) -> None:
    """What held at a time is what a replay to that time gives."""
    log.merge(other.export())
    changes = log.export()
    for time in sorted({change.at for change in changes})[-8:]:
        replayed = State(change for change in changes if change.at <= time)
        assert log.records(at=time) == list(replayed.records(time))


def check_orders(logs: list[RecordLog], chance: random.Random) -> None:
    """The order of merges and replays makes no difference."""
    changes = {change.uid: change for log in logs for change in log.export()}
    shuffled = list(changes.values())
    merged = RecordLog(clock=lambda: 2_000.0)
    for log in chance.sample(logs, 3):
        part = log.export()
        chance.shuffle(part)
        for some in (part[: len(part) // 2], part):
            merged.merge(some)
    for _ in range(3):
        chance.shuffle(shuffled)
        assert list(State(shuffled).records(2_000.0)) == merged.records()


def check_nothing_resurrects(logs: list[RecordLog]) -> None:
    """After a tombstone a record is only there again if something was told that begins later, never if it is final."""
    for log in logs:
        for other in logs:
            log.merge(other.export())
    assert logs[0].records(at=2_000.0) == logs[1].records(at=2_000.0) == logs[2].records(at=2_000.0)
    for change in logs[0].export():
        if isinstance(change.body, Closed) and _counts(logs[0], change):
            now = logs[0].get(change.body.id, at=2_000.0)
            assert now is None or (not change.body.final and (now.valid_from or 0) > change.body.start)


def _counts(log: RecordLog, change: Change) -> bool:
    return not change.key or log.state.keys[change.key].uid == change.uid
