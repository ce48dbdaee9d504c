"""Blocks the model edits itself, and the stores it pages through."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from clew.errors import UnknownName
from clew.memory import Block, BlockMemory, MemoryRecord, RecordLog
from clew.memory.block_tools import TOOLS, Answer, call, schemas
from clew.memory.blocks import BlockFull
from clew.memory.recall import Recall


@pytest.fixture
def memory() -> BlockMemory:
    blocks = (
        Block("persona", "A kind helper."),
        Block("human", limit=100),
        Block("rules", "Be brief.", read_only=True),
    )
    return BlockMemory(blocks)


def test_blocks_are_in_sight_and_keep_their_past(memory: BlockMemory) -> None:
    assert [r.key for r in memory.retrieve()] == ["persona", "rules"]
    assert call(memory, "core_memory_append", {"name": "human", "content": "叫李雷"}).is_error is False
    assert call(memory, "core_memory_append", '{"name": "human", "content": "likes tea"}').is_error is False
    assert memory.value("human") == "叫李雷\nlikes tea"
    call(memory, "core_memory_replace", {"name": "human", "old_content": "tea", "new_content": "green tea"})
    call(memory, "core_memory_replace", {"name": "human", "old_content": "叫李雷\n", "new_content": ""})
    assert memory.value("human") == "likes green tea"
    assert [r.text for r in memory.retrieve()][1] == "human:\nlikes green tea"
    human = memory.retrieve()[1]
    assert len(memory.log.history(human.id)) == 4


def test_a_block_over_its_limit_is_an_answer_and_no_change(memory: BlockMemory) -> None:
    call(memory, "core_memory_append", {"name": "human", "content": "x" * 90})
    answer = call(memory, "core_memory_append", {"name": "human", "content": "y" * 10})
    assert answer.is_error
    assert "101 characters, but its limit is 100" in answer.text
    assert memory.value("human") == "x" * 90
    assert call(memory, "core_memory_append", {"name": "human", "content": "y" * 9}).is_error is False
    with pytest.raises(BlockFull):
        BlockMemory([Block("a", "x" * 2_001)])
    with pytest.raises(UnknownName, match="persona, human, rules"):
        memory.value("none")


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("core_memory_append", {"name": "nobody", "content": "x"}, "no block"),
        ("core_memory_append", {"name": "rules", "content": "x"}, "read-only"),
        ("core_memory_replace", {"name": "rules", "old_content": "Be", "new_content": "x"}, "read-only"),
        ("core_memory_replace", {"name": "persona", "old_content": "absent", "new_content": "x"}, "to the letter"),
        ("core_memory_replace", {"name": "persona", "old_content": "", "new_content": "x"}, "to the letter"),
        ("core_memory_append", {"name": "persona"}, "missing"),
        ("core_memory_append", {"name": "persona", "content": 1}, "Expected `str`"),
        ("core_memory_append", {"name": "persona", "content": "x", "extra": 1}, "unknown field"),
        ("core_memory_append", "{broken", "malformed"),
        ("core_memory_append", "[]", "Expected `object`"),
        ("archival_memory_insert", {"content": "  "}, "blank"),
        ("conversation_search_date", {"start_date": "yesterday", "end_date": "2026-01-01"}, "YYYY-MM-DD"),
        ("erase_everything", {}, "no tool"),
    ],
)
def test_what_is_wrong_with_a_call_is_answered(memory: BlockMemory, name: str, arguments: object, why: str) -> None:
    before = memory.log.export()
    answer = call(memory, name, arguments)  # type: ignore[arg-type]
    assert answer.is_error
    assert why in answer.text
    assert memory.log.export() == before


def test_schemas_describe_what_the_tools_take(memory: BlockMemory) -> None:
    made = {s["function"]["name"]: s["function"]["parameters"] for s in schemas(memory)}
    assert list(made) == list(TOOLS)
    for name, parameters in made.items():
        assert set(parameters["properties"]) == set(TOOLS[name].arguments.__struct_fields__)
        assert set(parameters["required"]) == set(parameters["properties"]) - {"page"}
        given = {
            key: (0 if key == "page" else "human" if key == "name" else "2026-01-01")
            for key in parameters["properties"]
        }
        answer = call(memory, name, json.dumps(given))
        assert not answer.is_error or "to the letter" in answer.text
    assert made["core_memory_append"]["properties"]["name"]["enum"] == ["persona", "human"]
    json.dumps(schemas(memory))


def test_everything_said_is_searched_page_by_page(tmp_path: Path) -> None:
    ticks = iter(range(86_400, 10**9, 3_600))
    memory = BlockMemory(log=RecordLog(tmp_path / "m.db", clock=lambda: float(next(ticks))))
    for n in range(12):
        memory.append(MemoryRecord("user", f"我的猫叫小白 {n}"))
    memory.append(MemoryRecord("assistant", "A Dog"))
    first = call(memory, "conversation_search", {"query": "猫叫小白"})
    assert first.text.startswith("Showing 5 of 12 results (page 1 of 3):\n")
    assert [json.loads(line)["text"][-2:] for line in first.text.split("\n")[1:]] == ["11", "10", " 9", " 8", " 7"]
    assert call(memory, "conversation_search", {"query": "猫", "page": 2}).text.startswith(
        "Showing 2 of 12 results (page 3"
    )
    assert call(memory, "conversation_search", {"query": "猫", "page": 3}) == Answer(
        "No results on page 3; there are 3 pages."
    )
    assert call(memory, "conversation_search", {"query": "猫叫小白", "page": -7}) == first
    assert "A Dog" in call(memory, "conversation_search", {"query": "ａ dog"}).text
    assert call(memory, "conversation_search", {"query": " "}).text == "No results."
    days = {"start_date": "1970-01-02", "end_date": "1970-01-02"}
    assert (
        "小白 0"
        in call(memory, "conversation_search_date", {**days, "page": 1}).text
        + call(memory, "conversation_search_date", {**days, "page": 2}).text
    )
    assert (
        call(memory, "conversation_search_date", {"start_date": "1999-01-01", "end_date": "1999-01-02"}).text
        == "No results."
    )


def test_the_archive_holds_a_text_once_and_finds_words(memory: BlockMemory) -> None:
    for text in (
        "The deadline is 31 March.",
        "王芳负责星辰计划",
        "the deadline is 31 march",
        "MySQL was replaced by PostgreSQL",
    ):
        assert call(memory, "archival_memory_insert", {"content": text}) == Answer("Stored.")
    found = call(memory, "archival_memory_search", {"query": "when is the deadline in March?"}).text
    assert found.startswith("Showing 1 of 1 results")
    assert "王芳" in call(memory, "archival_memory_search", {"query": "谁负责这个计划"}).text
    assert [r.kind for r in memory.retrieve({"text": "postgresql"})][-1] == "passage"
    assert call(memory, "archival_memory_search", {"query": "zebra"}).text == "No results."


def test_the_archive_is_searched_by_indexes_as_well(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "m.db")
    memory = BlockMemory(log=log, recall=Recall(log))
    for text in ("The deadline is 31 March.", "王芳负责星辰计划", "PostgreSQL took the place of MySQL"):
        memory.insert(text)
    memory.append(MemoryRecord("user", "when is the deadline?"))
    assert [r.text for r in memory.search_archive("deadlines").records] == ["The deadline is 31 March."]
    assert memory.search_archive("谁负责这个计划").records[0].text == "王芳负责星辰计划"
    assert memory.search_archive("zebra").total == 0
    assert memory.retrieve({"text": "mysql"})[0].text.startswith("PostgreSQL")


def test_a_page_never_fills_the_window(memory: BlockMemory) -> None:
    for n in range(9):
        call(memory, "archival_memory_insert", {"content": f"whale {n} " + "x" * 100_000})
    found = call(memory, "archival_memory_search", {"query": "whale"}).text
    assert found.startswith("Showing 5 of 9 results")
    assert len(found) < 5 * 2_200


def test_pressure_is_told_once_until_it_is_relieved(memory: BlockMemory) -> None:
    told = [memory.pressure(tokens, 1_000) for tokens in (100, 750, 751, 800, 990, 400, 900)]
    assert [bool(t) for t in told] == [False, False, True, False, False, False, True]
    assert "751 of 1,000 tokens" in str(told[2])


def test_edits_at_the_same_time_all_count(tmp_path: Path) -> None:
    memories = [BlockMemory(log=RecordLog(tmp_path / "m.db")) for _ in range(3)]

    def lines(n: int) -> None:
        for i in range(15):
            call(memories[n], "core_memory_append", {"name": "human", "content": f"{n}-{i}"})

    threads = [threading.Thread(target=lines, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(memories[0].value("human").split("\n")) == sorted(f"{n}-{i}" for n in range(3) for i in range(15))


def test_a_block_keeps_its_text_when_the_memory_is_opened_again(tmp_path: Path) -> None:
    blocks = (Block("persona", "first"),)
    memory = BlockMemory(blocks, log=RecordLog(tmp_path / "m.db"))
    memory.edit("persona", lambda old: "")
    assert BlockMemory(blocks, log=RecordLog(tmp_path / "m.db")).value("persona") == ""
    memory.edit("persona", lambda old: "second")
    assert BlockMemory(blocks, log=RecordLog(tmp_path / "m.db")).value("persona") == "second"
