"""A log in tables against the pure model: whatever happened, every question has the answer that all changes give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from clew.errors import UnknownName
from clew.memory import MemoryRecord, RecordLog, Source
from clew.memory.changes import Change, Marked, Opened, Purged, Tried, change, concerns
from clew.memory.folded import Folded
from clew.memory.known import Clock, Known
from clew.memory.state import State
from clew.storage.changes import Decide
from clew.storage.rows import ChangeRow
from servers import Postgres

WORDS = ("tea", "coffee", "小白", "Rome", "Tea.")
KINDS = ("", "fact", "message")
ENTRIES = ("e1", "e2", "e3")
SESSIONS = ("", "s", "t")
END = 2_000.0


class Rows:
    """A log of changes in a list."""

    def __init__(self) -> None:
        self.rows: list[ChangeRow] = []

    def after(self, position: int) -> list[ChangeRow]:
        return self.rows[position:]

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        here, start = {row.uid for row in self.rows}, len(self.rows)
        for row in decide(self.after(after)):
            if row.uid not in here:
                self.rows.append(row._replace(position=len(self.rows) + 1))
                here.add(row.uid)
        return self.rows[start:]

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        for row in rows:
            self.rows[row.position - 1] = row


class Setting:
    """Some logs, written and merged in some way. `clock` goes on with each step; logs may write at the same time."""

    def __init__(self, logs: Sequence[RecordLog], choose: Callable[[Sequence[Any]], Any]) -> None:
        self.time = 1_000.0
        self.logs = logs
        self.choose = choose
        for log in logs:
            log.clock = lambda: self.time
        logs[0].add(self.record())
        for log in logs[1:]:
            log.merge(logs[0].export())

    def record(self) -> MemoryRecord:
        """Something to be told."""
        choose = self.choose
        kind = choose(KINDS)
        key = choose(("", "home", "猫")) if kind == "fact" else ""
        word, session = choose(WORDS), choose(SESSIONS)
        return MemoryRecord(
            "user",
            word,
            metadata={"session": session} if choose((True, False)) else {},
            kind=kind,
            key=key,
            value=word if key else "",
            sources=tuple(Source.of(e, e, session) for e in choose(((), ENTRIES[:1], ENTRIES[1:], ENTRIES))),
            valid_from=choose((None, None, 990.0, 1_004.0, 1_030.0)),
            valid_to=choose((None, None, None, 1_008.0, 1_040.0)),
        )

    def step(self) -> None:
        """Something happens in some log."""
        choose = self.choose
        self.time += choose((0.0, 0.5, 1.0))
        log = choose(self.logs)
        ids = sorted({id for c in log.export() if (id := concerns(c.body))})
        act: dict[str, Callable[[str], object]] = {
            "add": lambda id: log.add(self.record(), key=choose(("", "", "k1", "k2")), again=choose((True, False))),
            "many": lambda id: log.add_many([self.record() for _ in range(3)], keys=["", choose(("k1", "k3"))]),
            "edit": lambda id: log.edit(id, choose(WORDS), kind=choose(KINDS)),
            "note": lambda id: log.edit(id, metadata={"note": choose(WORDS)}),
            "shut": lambda id: log.shut(id, reason="r", start=choose((None, None, 1_002.0, 1_020.0))),
            "delete": lambda id: log.delete(id, reason="r"),
            "purge": lambda id: log.purge(id),
            "use": lambda id: log.use(id, choose(ids), id),
            "pin": lambda id: log.pin(id, choose((True, False))),
            "both": lambda id: log.commit(self.both(log, id)),
            "mark": lambda id: log.write(lambda at: Marked(choose(("m", "n")), choose((at, 1_001.0)))),
            "try": lambda id: log.write(lambda at: Tried(id, choose(("t", "u")), choose(("ok", "failed")), "", "raw")),
            "merge": lambda id: log.merge(self.part(choose(self.logs).export())),
        }
        what = choose((*act, "add", "add", "edit", "merge"))
        try:
            act[what](choose(ids))
        except UnknownName:
            assert what in ("edit", "note", "delete", "purge"), "there is no such record"

    def both(self, log: RecordLog, id: str) -> Callable[[Known, Clock], Iterator[Change]]:
        """A use and something told of a record, in one go, with a look at all in between."""

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            told = log.whole(MemoryRecord("user", self.choose(WORDS), id=id))
            yield change(now(), Opened(told), self.choose(("", "k1", "k4")))
            assert isinstance(list(known.records(inf)), list)
            yield change(now(), Opened(replace(told, content="both")))

        return decide

    def part(self, changes: list[Change]) -> list[Change]:
        """All of them, or some, in any order."""
        start = self.choose((0, 0, 0, len(changes) // 2))
        return changes[start:][:: self.choose((1, -1))]


def settle(logs: Sequence[RecordLog], choose: Callable[[Sequence[Any]], Any], steps: int) -> None:
    setting = Setting(logs, choose)
    for _ in range(steps):
        setting.step()


@settings(max_examples=30)
@given(st.data(), st.integers(1, 12))
def test_the_tables_answer_as_the_model(data: st.DataObject, steps: int) -> None:
    logs = [RecordLog() for _ in range(3)]
    settle(logs, lambda some: data.draw(st.sampled_from(some)), steps)
    check(logs[1], logs[1].known)
    check_inside(logs[1])
    check_orders(logs, data.draw(st.randoms(use_true_random=False)))
    for log in logs:
        log.close()


def test_the_same_on_postgresql(postgres: Postgres) -> None:
    for seed in range(6):
        logs = [RecordLog(postgres.address(postgres.database())), RecordLog()]
        settle(logs, random.Random(seed).choice, 25)
        check(logs[0], logs[0].known)
        check_inside(logs[0])
        check_orders(logs, random.Random(seed))
        for log in logs:
            log.close()


def check(log: RecordLog, known: Known) -> None:
    """What is known is what all changes give."""
    changes = log.export()
    model = State(changes)
    ids = {concerns(c.body) for c in changes} | {"nobody"}
    told = [c.body.record for c in changes if isinstance(c.body, Opened)]
    times = sorted({inf, 1_005.0, 1_035.0, *(c.at for c in changes[-4::2])})
    for at in times:
        assert list(known.records(at)) == list(model.records(at))
        assert list(known.records(at, "", "fact")) == list(model.records(at, "", "fact"))
        assert list(known.latest("fact", at)) == list(model.latest("fact", at))
        assert list(known.latest("", at)) == list(model.latest("", at))
        assert [known.record(id, at) for id in sorted(ids)] == [model.record(id, at) for id in sorted(ids)]
        assert [known.same(r, at) for r in told] == [model.same(r, at) for r in told]
    assert [known.line(id) for id in sorted(ids)] == [model.line(id) for id in sorted(ids)]
    assert [known.knows(id) for id in sorted(ids)] == [model.knows(id) for id in sorted(ids)]
    assert [list(known.of_kind(kind)) for kind in KINDS] == [list(model.of_kind(kind)) for kind in KINDS]
    assert [known.keyed(f"k{n}") for n in range(5)] == [model.keyed(f"k{n}") for n in range(5)]
    assert [known.closed_since(r) for r in told] == [model.closed_since(r) for r in told]
    assert [known.has(r) for r in told] == [model.has(r) for r in told]
    assert [known.mark(name) for name in "mno"] == [model.mark(name) for name in "mno"]
    assert [known.tried("t", id) for id in sorted(ids)] == [model.tried("t", id) for id in sorted(ids)]
    assert known.trials("t") == model.trials("t")
    check_followers(log, model, times)


def check_followers(log: RecordLog, model: State, times: Sequence[float]) -> None:
    told = list(log.told())
    assert [t.position for t in told] == sorted(t.position for t in told)
    middle = told[len(told) // 2].position if told else 0
    assert list(log.told(middle)) == [t for t in told if t.position > middle]
    opened = {t.uid: t.record for t in told if t.record is not None}
    for at in times:
        lines = {uid: line for uid, r in opened.items() if (line := model.line(r.id)) is not None}
        shown = {uid: line.record(at) for uid, line in lines.items() if line.shown(at) == uid}
        assert log.held([*opened, "nothing"], at) == shown
    sessions: dict[str, list[str]] = {}
    for uid, record in opened.items():
        sessions.setdefault(record.session, []).append(uid)
    around = {
        uid: [(uids[i], i - n) for i in range(max(n - 2, 0), min(n + 3, len(uids))) if i != n]
        for session, uids in sessions.items()
        for n, uid in enumerate(uids)
        if session and len(uids) > 1
    }
    counted = {uid for uid, r in opened.items() if (line := model.line(r.id)) and uid in {v.uid for v in line.versions}}
    if counted == set(opened):  # what was asked for twice under one key has no neighbours
        assert log.around(list(opened)) == around
    changes = log.export()
    for purge in changes:
        later = [c for c in changes if isinstance(c.body, Opened) and c.body.record.id == concerns(purge.body)]
        if isinstance(purge.body, Purged):
            assert all(not purge.body.final and (c.at, c.uid) > (purge.at, purge.uid) for c in later)


def check_inside(log: RecordLog) -> None:
    """The same inside a transaction, before and after something was decided on."""

    def decide(known: Known, now: Clock) -> Iterator[Change]:
        model, at = State(log.export()), now()
        for id in sorted({concerns(c.body) for c in log.export()}):
            assert (known.knows(id), known.line(id)) == (model.knows(id), model.line(id))
        made = change(at, Opened(log.whole(MemoryRecord("user", "tea", id="new", valid_from=at))))
        yield made
        model.apply(made)
        tea = MemoryRecord("user", "tea", sources=(Source.of("e1", "e1"),))
        later = now()
        assert known.same(tea, later) == model.same(tea, later)
        assert known.closed_since(tea) == model.closed_since(tea)
        assert list(known.records(later)) == list(model.records(later))

    log.commit(decide)


def check_orders(logs: Sequence[RecordLog], chance: random.Random) -> None:
    """Logs that have all of each other's changes hold the same, in whatever order they came; so does a folded one."""
    for log in logs:
        for other in logs:
            log.merge(other.export())
    for log in logs:
        log.merge(logs[-1].export())
    changes = logs[0].export()
    assert all(log.export() == changes for log in logs[1:])
    merged, folded = RecordLog(clock=lambda: END), Folded(Rows())
    for ledger in (merged, folded):
        some = chance.sample(changes, len(changes))
        ledger.merge(some[: len(some) // 3])
        ledger.merge(some)
    assert list(folded.known().records(END)) == merged.records() == logs[0].records(at=END)
    assert sorted(folded.changes(), key=lambda c: (c.at, c.uid)) == merged.export() == changes
    uids = [t.uid for t in merged.told()]
    assert folded.held(uids, END) == merged.held(uids, END)
    check(merged, merged.known)
    assert folded.known().lines == merged.state.lines
    merged.close()


@settings(max_examples=8)
@given(st.randoms(use_true_random=False))
def test_a_folded_log_writes_as_tables_do(chance: random.Random) -> None:
    tables, folded = RecordLog(), RecordLog()
    folded._ledger = Folded(Rows())
    for log in (tables, folded):
        settle([log], random.Random(chance.random()).choice, 20)
        check(log, log.known)


@pytest.mark.parametrize("at", [None, END])
def test_what_does_not_exist_is_no_error(at: float | None) -> None:
    with RecordLog() as log:
        assert (log.get("x", at), log.records(at=at), list(log.latest("x"))) == (None, [], [])
        assert (list(log.told()), log.held(["x"], at), log.around(["x"]), log.mark_of(1)) == ([], {}, {}, "")
