"""What a log of records promises, in every place it can be kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from clew.errors import StoreError, UnknownName
from clew.memory import MemoryRecord, Namespace, RecordLog, Source
from clew.memory.changes import Change, Closed, Opened
from clew.memory.saved import BadFile
from clew.memory.state import State
from stores.places import New


class Clock:
    """A clock that goes on by a second with each look."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def fact(text: str, **more: object) -> MemoryRecord:
    return MemoryRecord("user", text, kind="fact", **more)  # type: ignore[arg-type]


def test_the_life_of_a_record(new: New) -> None:
    with RecordLog(new(), clock=Clock()) as log:
        tea = log.add(fact("喝茶", sources=(Source("1", "s"),)))
        assert tea is not None
        then = log.now()
        assert log.add(fact("喝茶。")) == tea, "what is held is not stored twice"
        assert log.add(fact("   ")) is None
        log.edit(tea.id, "喝绿茶")
        log.pin(tea.id)
        log.use(tea.id, tea.id)
        now = log.get(tea.id)
        assert now is not None
        assert (now.text, now.pinned, now.uses) == ("喝绿茶", True, 2)
        assert [r.text for r in log.records(at=then)] == ["喝茶"]
        assert [r.text for r in log.history(tea.id)] == ["喝茶", "喝绿茶"]  # type: ignore[union-attr]
        log.delete(tea.id)
        assert log.get(tea.id) is None
        assert log.add(fact("喝茶", sources=(Source("1", "s"),))) is None, "what was deleted does not come back"
        with pytest.raises(UnknownName):
            log.edit(tea.id, "x")


def test_a_key_is_used_once_and_a_fact_is_superseded(new: New) -> None:
    with RecordLog(new(), clock=Clock()) as log:
        first = log.add(MemoryRecord("user", "one"), key="k")
        assert log.add(MemoryRecord("user", "two"), key="k") == first
        log.add(fact("has a cat", key="pet", value="cat"))
        log.add(fact("has a dog", key="pet", value="dog"))
        assert [r.value for r in log.records("fact")] == ["dog"]


def test_what_is_purged_is_nowhere(new: New) -> None:
    address = new()
    with RecordLog(address, clock=Clock()) as log:
        secret = log.add(fact("my number is 4711"))
        kept = log.add(fact("drinks tea"))
        assert secret is not None
        log.edit(secret.id, "my number is 0815")
        log.purge(secret.id)
        assert log.records() == [kept]
        assert not {"4711", "0815"} & set(str(log.export()).split("'"))
        assert "4711" not in str(log.export())
        assert "4711" not in str(list(log.told()))


def test_all_or_nothing(new: New) -> None:
    with RecordLog(new(), clock=Clock()) as log:
        log.add(fact("before"))

        def decide(known: object, now: object):  # type: ignore[no-untyped-def]
            from clew.memory.changes import Marked, change

            yield change(now(), Marked("m", 5.0))  # type: ignore[operator]
            raise KeyError("broken off")

        with pytest.raises(KeyError):
            log.commit(decide)
        assert log.mark("m") == 0.0
        assert len(log.export()) == 1
        assert log.add(fact("after")) is not None
        assert [r.text for r in log.records()] == ["before", "after"]


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


UNREADABLE: dict[str, Callable[[RecordLog, str], object]] = {
    "a field of another kind": lambda log, id: log.add(fact("x", confidence="high")),
    "no number": lambda log, id: log.add(fact("x", confidence=math.nan)),
    "no text": lambda log, id: log.add(fact("x", value=5)),
    "no role": lambda log, id: log.add(MemoryRecord(None, "x")),  # type: ignore[arg-type]
    "no time": lambda log, id: log.add(fact("x", valid_from=math.inf)),
    "an end that is none": lambda log, id: log.shut(id, start=math.nan),
    "an edit": lambda log, id: log.edit(id, confidence="high"),
    "too deep": lambda log, id: log.add(MemoryRecord("user", nested(3_000))),
    "a merge": lambda log, id: log.merge([Change("u", math.inf, Closed(id, 1.0))]),
    "a merged name": lambda log, id: log.merge([Change("u", 1.0, Opened(fact("x", id="a\0b")))]),
    "a merged key": lambda log, id: log.merge([Change("u", 1.0, Closed(id, 1.0), key="\ud800")]),
}


def test_what_could_not_be_read_again_is_refused_and_damages_nothing(new: New) -> None:
    with RecordLog(new()) as log:
        held = log.add(fact("before"))
        assert held is not None
        for what, write in UNREADABLE.items():
            with pytest.raises(StoreError, match=r"can(not)? be stored"):
                write(log, held.id)
            assert [r.text for r in log.records()] == ["before"], what
        assert len(log.export()) == 1


@pytest.mark.parametrize("odd", ["a\0b", "a\ud800b"])
def test_a_name_that_not_every_store_can_hold_is_the_same_name_in_all(odd: str, new: New) -> None:
    with RecordLog(new()) as log:
        made = log.add(MemoryRecord("user", odd, id=odd, kind=odd, metadata={"session": odd}), key=odd)
        assert made is not None
        assert made.id == made.kind == made.session == "a\ufffdb"
        log.use(odd)
        log.pin(odd)
        edited = log.edit(odd, "changed")
        assert log.get(odd) == edited
        assert (edited.uses, edited.pinned) == (1, True)
        assert log.add(fact("other"), key=odd) == edited
        log.purge(odd)
        assert log.get(odd) is None
        assert log.records() == []


def test_followers_see_each_change_once_in_order(new: New) -> None:
    with RecordLog(new(), clock=Clock()) as log:
        one = log.add(MemoryRecord("user", "a", metadata={"session": "s"}))
        assert one is not None
        log.edit(one.id, "b")
        two = log.add(MemoryRecord("user", "c", metadata={"session": "s"}))
        assert two is not None
        told = list(log.told())
        assert [t.record.text for t in told if t.record] == ["a", "b", "c"]
        assert [t.position for t in told] == sorted({t.position for t in told})
        assert [t.uid for t in log.told(told[0].position)] == [t.uid for t in told[1:]]
        assert log.mark_of(told[0].position) == told[0].uid
        assert log.mark_of(99) == ""
        assert [r.text for r in log.held([t.uid for t in told]).values()] == ["b", "c"]
        assert (told[0].uid, -2) in log.around([told[2].uid])[told[2].uid]


def test_merges_in_any_order_come_to_the_same(new: New) -> None:
    with RecordLog(clock=Clock()) as other:
        tea = other.add(fact("drinks tea"))
        assert tea is not None
        other.edit(tea.id, "drinks green tea")
        other.delete(tea.id)
        other.add(fact("has a cat"))
        changes = other.export()
    with RecordLog(new(), clock=Clock(5_000.0)) as log:
        log.add(fact("was here"))
        assert log.merge(changes[2:]) == len(changes) - 2
        assert log.merge(changes) == 2
        assert log.merge(changes) == 0
        assert {r.text for r in log.records()} == {"was here", "has a cat"}
        assert log.state.lines.keys() == State(log.export()).lines.keys()


def test_the_latest_come_first_and_marks_are_kept(new: New) -> None:
    address = new()
    with RecordLog(address, clock=Clock()) as log:
        made = log.add_many([MemoryRecord("user", f"{n}", kind="message") for n in range(250)], again=True)
        edited = made[7]
        assert edited is not None
        log.edit(edited.id, "seven")
        where = log.store if address == "memory://" else address
        with RecordLog(where, clock=Clock(2_000.0)) as again:
            latest = [r.text for r in again.latest("message")]
        assert latest[:3] == ["249", "248", "247"]
        assert len(latest) == 250
        assert latest[-8] == "seven"


def test_namespaces_are_apart(new: New) -> None:
    address = new()
    with RecordLog(address, Namespace("acme", "u1")) as one:
        one.add(fact("secret"))
        where = one.store if address == "memory://" else address
        for namespace in (Namespace("acme", "u10"), Namespace("acme"), Namespace("acme", "u")):
            if address.startswith("json:"):
                with pytest.raises(BadFile, match=r"holds the memory of acme/u1, not of"):
                    RecordLog(where, namespace)
                continue
            with RecordLog(where, namespace) as two:
                assert two.records() == []
                assert list(two.told()) == []


def test_many_writers_lose_and_double_nothing(new: New) -> None:
    address = new()
    with RecordLog(address) as log:
        where = log.store if address == "memory://" else address

        def write(n: int) -> None:
            with RecordLog(where) as mine:
                for i in range(15):
                    mine.add(fact(f"{n}/{i}"))
                    mine.add(fact("the same"), key="once")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        texts = [r.text for r in log.records()]
        assert sorted(texts) == sorted([*(f"{n}/{i}" for n in range(4) for i in range(15)), "the same"])
        assert len(log.export()) == len({change.uid for change in log.export()})
