"""What every kind of memory promises, and what each does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadBudget
from clew.memory import (
    BlockMemory,
    EmbeddingError,
    EntityMemory,
    HybridMemory,
    MarkdownFileMemory,
    Memory,
    MemoryRecord,
    RecordLog,
    SummaryMemory,
    VectorMemory,
    WindowMemory,
    customer_service,
)
from clew.memory.window import aligned
from clew.models import Scripted
from plain import Letters


def letters(text: str) -> list[float]:
    return [1.0, *(float(text.count(c)) for c in "abc猫鱼")]


LOGGED: dict[str, Callable[[RecordLog], Memory]] = {
    "window": lambda log: WindowMemory(4, log=log),
    "window by tokens": lambda log: WindowMemory(0, max_tokens=20, counter=Letters(), log=log),
    "window that flushes": lambda log: WindowMemory(0, max_tokens=50, flush=20, counter=Letters(), log=log),
    "summary": lambda log: SummaryMemory(3, log=log),
    "summary by tokens": lambda log: SummaryMemory(2, max_tokens=60, counter=Letters(), log=log),
    "vector": lambda log: VectorMemory(letters, 2, log=log),
    "entity": lambda log: EntityMemory(Scripted('{"facts": []}'), log=log),
    "block": lambda log: BlockMemory(log=log),
    "hybrid": lambda log: HybridMemory(EntityMemory(log=log), SummaryMemory(2, log=log), WindowMemory(3, log=log)),
}
KINDS = [*LOGGED, "markdown"]


def made(kind: str, folder: Path) -> Memory:
    return MarkdownFileMemory(folder / "memory.md") if kind == "markdown" else LOGGED[kind](RecordLog(folder / "m.db"))


def say(memory: Memory, n: int, start: int = 0) -> None:
    for step in range(start, start + n):
        memory.append(MemoryRecord("user" if step % 2 == 0 else "assistant", f"text {step} 猫", step))


QUERIES = [None, {}, {"max_items": 2}, {"roles": ["user"]}, {"roles": "assistant"}, {"step_min": 3, "step_max": 5},
           {"text": "猫"}, {"text": "", "top_k": 0}, {"unknown": object()}]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_reading_changes_nothing(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 9)
    for query in QUERIES:
        first = memory.retrieve(query)
        assert memory.retrieve(query, object(), object()) == first
        assert isinstance(memory.summarize(), str)
    assert memory.summarize(0) == memory.summarize(-3) == ""
    assert len(memory.summarize(2).split("\n")) <= 2 * 3


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_blank_is_stored(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 3)
    before = [memory.retrieve(query) for query in QUERIES]
    for blank in ("", " \n", None):
        memory.append(MemoryRecord("assistant", blank, 9))
    assert [memory.retrieve(query) for query in QUERIES] == before


@pytest.mark.parametrize("kind", KINDS)
def test_evict_counts_what_goes_out_of_sight_and_is_done_then(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 11)
    if isinstance(memory, EntityMemory):
        memory.extract()
    assert memory.evict() >= 0
    after = memory.retrieve()
    assert memory.evict() == 0
    assert memory.retrieve() == after


@pytest.mark.parametrize("kind", ["window", "window by tokens", "summary"])
def test_evict_takes_nothing_that_was_in_sight(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 11)
    seen = memory.retrieve()
    gone = memory.evict()
    left = [r for r in memory.retrieve() if r.kind != "summary"]
    assert gone + len(left) == 11
    assert left == (seen if kind != "summary" else seen[-3:])


@pytest.mark.parametrize("kind", LOGGED)
def test_evict_and_reset_lose_nothing(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 11)
    memory.evict()
    memory.reset()
    with RecordLog(tmp_path / "m.db") as log:
        assert [r.text for r in log.records("message")] == [f"text {n} 猫" for n in range(11)]


@pytest.mark.parametrize("kind", LOGGED)
def test_a_new_run_does_not_show_what_was_said_in_the_last(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 5)
    memory.evict()
    memory.reset("run 2")
    assert memory.retrieve() == []
    say(memory, 2, start=6)
    assert {r.step_id for r in memory.retrieve()} <= {6, 7}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learnt_outlives_the_run_and_the_process(kind: str, tmp_path: Path) -> None:
    memory = made(kind, tmp_path)
    say(memory, 3)
    if kind == "entity":
        assert isinstance(memory, EntityMemory)
        memory.set("猫", "小白")
        memory.reset()
    elif kind == "block":
        assert isinstance(memory, BlockMemory)
        memory.edit("human", lambda old: "has a cat")
        memory.reset()
    elif kind == "markdown":
        memory.reset()
    before = memory.retrieve()
    assert before
    assert made(kind, tmp_path).retrieve() == before


@given(
    st.integers(0, 6), st.lists(st.sampled_from(["user", "assistant", "tool", "state", "evict", "reset"]), max_size=25)
)
def test_a_window_is_always_the_end_of_what_was_said(size: int, steps: list[str]) -> None:
    memory = WindowMemory(size)
    said: list[str] = []
    for n, step in enumerate(steps):
        if step == "evict":
            memory.evict()
        elif step == "reset":
            memory.reset()
            said = []
        else:
            memory.append(MemoryRecord(step, f"{n}"))
            said.append(f"{n}")
        shown = [r.text for r in memory.retrieve()]
        assert shown == said[len(said) - len(shown) :]
        assert bool(shown) == bool(said)
        assert size == 0 or len(shown) <= size


@given(st.integers(1, 40), st.lists(st.text(min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=8))
def test_a_window_by_tokens_fits_and_shows_the_newest(limit: int, texts: list[str]) -> None:
    memory = WindowMemory(0, max_tokens=limit, counter=Letters())
    for text in texts:
        memory.append(MemoryRecord("user", text))
    shown = memory.retrieve()
    newest = shown[-1].text
    whole = list(memory._stream.records())
    assert newest == whole[-1].text or len(shown) == 1
    if len(whole[-1].text) <= limit:
        assert sum(len(r.text) for r in shown) <= limit
        more = whole[-len(shown) - 1 :]
        assert len(more) == len(shown) or sum(len(r.text) for r in more) > limit


def test_a_record_larger_than_the_window_is_shown_in_part() -> None:
    memory = WindowMemory(max_tokens=100, counter=Letters())
    memory.append(MemoryRecord("user", "开头" + "x" * 5_000 + "结尾"))
    (shown,) = memory.retrieve()
    assert len(shown.text) <= 100
    assert shown.text.startswith("开头")
    assert shown.text.endswith("结尾")
    assert "characters left out" in shown.text


def test_a_window_of_answers_only_is_shown_as_it_is() -> None:
    answers = [MemoryRecord("tool", "1"), MemoryRecord("assistant", "2")]
    assert aligned(answers) == answers


def test_a_summary_stands_for_what_it_cites() -> None:
    model = Scripted(["李雷，医生", "李雷，医生，养猫"])
    log = RecordLog()
    memory = SummaryMemory(2, llm=model, log=log)
    say(memory, 6)
    assert memory.evict() == 4
    summary = memory.retrieve()[0]
    assert [log.get(s.entry).text for s in summary.sources] == [f"text {n} 猫" for n in range(4)]  # type: ignore[union-attr]
    assert [m.text for m in model.calls[0].source] == [f"text {n} 猫" for n in range(4)]
    say(memory, 2, start=6)
    assert asyncio.run(memory.aevict()) == 2
    assert [r.step_id for r in memory.retrieve()[1:]] == [6, 7]
    assert memory.retrieve({"max_items": 1})[0].text == "李雷，医生，养猫"


def test_a_summary_by_tokens_waits_and_then_takes_three_quarters() -> None:
    model = Scripted(["S1", "S2"])
    memory = SummaryMemory(2, max_tokens=100, counter=Letters(), llm=model)
    for n in range(10):
        memory.append(MemoryRecord("user" if n % 2 == 0 else "assistant", "0123456789", n))
    assert memory.evict() == 0
    assert model.calls == []
    memory.append(MemoryRecord("user", "the question", 10))
    assert memory.evict() == 8, "what passes the share of 84 begins a turn and stays"
    assert [r.step_id for r in memory.retrieve()[1:]] == [8, 9, 10]
    for n in range(11, 18):
        memory.append(MemoryRecord("assistant" if n % 2 else "user", "0123456789", n))
    assert memory.evict() == 6
    assert model.calls[1].previous == "S1"
    assert len(model.calls[1].source) == 6
    assert memory.evict() == 0


@pytest.mark.parametrize("roles", ["uatataua", "uaaaaaaa", "uattttttat", "attttttt", "uauauaua"])
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_evict_parts_no_results_from_their_call(roles: str, keep: int) -> None:
    memory = SummaryMemory(keep, llm=Scripted("S"))
    names = {"u": "user", "a": "assistant", "t": "tool"}
    for n, role in enumerate(roles):
        memory.append(MemoryRecord(names[role], f"text {n}", n))
    gone = memory.evict()
    left = [r for r in memory.retrieve() if r.kind != "summary"]
    assert len(left) == len(roles) - gone >= keep
    assert gone == 0 or left[0].role != "tool"
    assert memory.evict() == 0


def test_a_window_that_flushes_moves_seldom() -> None:
    memory = WindowMemory(0, max_tokens=100, flush=50, counter=Letters())
    firsts = []
    for n in range(60):
        memory.append(MemoryRecord("user" if n % 2 == 0 else "assistant", f"{n:010}", n))
        memory.evict()
        shown = memory.retrieve()
        assert sum(len(r.text) for r in shown) <= 100
        firsts.append(shown[0].step_id)
    assert len(set(firsts)) <= 11
    with pytest.raises(BadBudget, match="max_tokens"):
        WindowMemory(flush=5)


def test_two_that_summarise_at_once_do_not_lose_what_the_other_had(tmp_path: Path) -> None:
    other = SummaryMemory(2, llm=Scripted("the other was faster"), log=RecordLog(tmp_path / "m.db"))

    def slow(_: object) -> str:
        other.evict()
        return "too late"

    memory = SummaryMemory(2, llm=Scripted(slow), log=RecordLog(tmp_path / "m.db"))
    say(memory, 6)
    assert memory.evict() == 0
    assert memory.summaries == ["the other was faster"]
    assert [r.step_id for r in memory.retrieve()[1:]] == [4, 5]


def test_a_vector_memory_without_an_embedder_is_refused_and_a_broken_one_loses_nothing() -> None:
    with pytest.raises(EmbeddingError, match="need an embedder"):
        VectorMemory()

    class Broken:
        name, dim = "broken", 2

        def __init__(self, gives: list[list[float]]) -> None:
            self.gives = gives

        def embed(self, texts: object) -> list[list[float]]:
            return self.gives

        def query(self, text: str) -> list[float]:
            return [1.0, 0.0]

    for gives in ([[1.0, 0.0]] * 2, [[1.0]], [[float("nan"), 1.0]], [["a", "b"]], []):
        memory = VectorMemory(Broken(gives))
        memory.append(MemoryRecord("user", "kept"))
        with pytest.raises(EmbeddingError, match="broken gave"):
            memory.retrieve({"text": "x"})
        assert [r.text for r in memory.retrieve()] == ["kept"]


def test_texts_are_embedded_once_and_in_batches() -> None:
    class Counting:
        name, dim = "counting", 6

        def __init__(self) -> None:
            self.batches: list[int] = []

        def embed(self, texts: list[str]) -> list[list[float]]:
            self.batches.append(len(texts))
            return [letters(t) for t in texts]

        def query(self, text: str) -> list[float]:
            return letters(text)

    embedder = Counting()
    memory = VectorMemory(embedder, 2)
    for n in range(100):
        memory.append(MemoryRecord("user", f"a{n} b"))
    memory.append(MemoryRecord("user", "鱼 鱼 鱼"))
    assert embedder.batches == []
    assert memory.retrieve({"text": "鱼"})[0].text == "鱼 鱼 鱼"
    assert embedder.batches == [1, 64, 37], "the probe, then what was said"
    memory.retrieve({"text": "鱼"})
    assert embedder.batches == [1, 64, 37]


def test_memories_that_share_a_log_store_what_is_said_once() -> None:
    log = RecordLog()
    memory = customer_service(Scripted('{"facts": []}'), log=log)
    say(memory, 4)
    assert len(log.records("message")) == 4
    assert [r.step_id for r in memory.retrieve()] == [0, 1, 2, 3]
    memory.extract()
    asyncio.run(memory.aextract())


def test_conflicts_are_listed_and_replacements_are_none() -> None:
    memory = EntityMemory()
    memory.set("home", "Paris")
    memory.set("home", "Rome")
    memory.replace("home", "Bern")
    memory.set("home", "Bern")
    memory.delete("home")
    memory.set("home", "Oslo")
    assert [(c.key, c.before.value, c.after.value) for c in memory.conflicts] == [("home", "Paris", "Rome")]
    assert memory.entities == {"home": "Oslo"}


def test_a_claim_can_be_accepted() -> None:
    memory = EntityMemory(Scripted(['{"job": "doctor"}', '{"job": null, "pet": null}']))
    memory.append(MemoryRecord("user", "I work at the hospital"))
    memory.extract()
    (claim,) = memory.claims
    memory.accept(claim.id)
    assert (memory.entities, memory.claims) == ({"job": "doctor"}, [])
    memory.append(MemoryRecord("user", "I have been retired since May"))
    memory.extract()
    over, unknown = memory.claims
    assert (over.metadata["doubt"], unknown.metadata["doubt"]) == (
        "nothing the user said is about it",
        "nothing is known under this key",
    )
    memory.accept(over.id)
    assert memory.entities == {}


def test_the_question_stays_small_however_much_is_known() -> None:
    model = Scripted('{"facts": []}')
    memory = EntityMemory(model)
    memory.log.add_many(
        [MemoryRecord("system", f"k{n}: v", kind="entity", key=f"k{n}", value="v") for n in range(2_000)]
    )
    memory.set("用户的猫", "小白")
    memory.log.add_many([MemoryRecord("system", f"q{n}: v", kind="entity", key=f"q{n}", value="v") for n in range(500)])
    memory.append(MemoryRecord("user", "我没有猫了"))
    memory.extract()
    asked = model.calls[0].messages[1].text
    assert "小白" in asked
    assert len(asked) < 2_000
