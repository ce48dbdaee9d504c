"""`VectorMemory` over a log: each text is embedded once, in whichever process; what does not hold is not shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clew.memory import MemoryRecord, RecordLog, VectorMemory
from clew.memory.embedded import PROBE
from clew.memory.embedders import Multilingual
from index.letters import Letters


def asked(model: Letters) -> list[str]:
    return [text for batch in model.asked for text in batch if text != PROBE]


def shown(memory: VectorMemory, text: str, **query: object) -> list[str]:
    return [record.text for record in memory.retrieve({"text": text, **query})]


def test_vectors_are_kept_with_the_records(tmp_path: Path) -> None:
    path, model = tmp_path / "agent.db", Letters()
    with RecordLog(path) as log:
        memory = VectorMemory(model, 2, log=log)
        for text in ("aab", "bbc", "cca"):
            memory.append(MemoryRecord("user", text))
        memory.catch_up()
    for _ in range(2):
        with RecordLog(path) as log:
            memory = VectorMemory(model, 2, log=log)
            assert shown(memory, "b") == ["bbc", "aab"]
        shutil.rmtree(f"{path}.index", ignore_errors=True)
    assert sorted(asked(model)) == ["aab", "bbc", "cca"]


def test_what_was_edited_deleted_or_purged_is_not_shown(tmp_path: Path) -> None:
    model = Letters()
    with RecordLog(tmp_path / "agent.db") as log:
        memory = VectorMemory(model, log=log)
        for n, text in enumerate(("aab", "bbc", "cca", "dda")):
            memory.append(MemoryRecord("user", text, id=f"r{n}"))
        assert shown(memory, "a") == ["aab", "dda", "cca", "bbc"]
        log.edit("r0", "ddd")
        log.delete("r2")
        log.purge("r3")
        assert shown(memory, "a") == ["ddd", "bbc"]
        (vector,) = memory._vectors.of(["dda"])
        assert asked(model).count("dda") == 2, "what was purged is in no table"
        memory._vectors.forget([memory._vectors.key("dda")])
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(vector in path.read_bytes() for path in files if ".index" in str(path))


def test_a_new_run_sees_nothing_of_the_last_though_it_is_nearer() -> None:
    memory = VectorMemory(Letters(), 3)
    for n in range(100):
        memory.append(MemoryRecord("user", "a" * (n + 1)))
    memory.reset()
    assert shown(memory, "a") == []
    memory.append(MemoryRecord("user", "bbbba"))
    memory.append(MemoryRecord("assistant", "bba"))
    assert shown(memory, "a") == ["bba", "bbbba"]
    assert shown(memory, "a", roles="user") == ["bbbba"]
    assert shown(memory, "a", top_k=1) == ["bba"]
    assert shown(memory, "a", top_k=0) == []


def test_the_part_of_a_long_record_that_speaks_of_it_counts() -> None:
    memory = VectorMemory(Letters(), 1)
    memory.append(MemoryRecord("user", "a " * 2_000 + "b " * 300))
    memory.append(MemoryRecord("user", "ab" * 20))
    (record,) = memory.retrieve({"text": "b"})
    assert record.text.startswith("a a")
    assert record.metadata["score"] > 0.95


def test_a_threshold_is_of_the_cosine() -> None:
    memory = VectorMemory(Letters(), threshold=0.7)
    for text in ("a", "ab", "abb", "b"):
        memory.append(MemoryRecord("user", text))
    assert shown(memory, "a " * 3) == ["a", "ab"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("宠物吃什么？", "我的猫最爱吃金枪鱼罐头"),
        ("ペットは何を食べますか", "うちの犬は毎朝パンを食べる"),
        ("어디로 여행을 갔나요?", "작년 여름에 제주도에 다녀왔어요"),
        ("What do I do for exercise?", "I swim and run three times a week"),
    ],
)
def test_the_default_embedder_finds_what_is_meant(question: str, answer: str) -> None:
    memory = VectorMemory(_MULTILINGUAL, 1)
    for text in (
        "我的猫最爱吃金枪鱼罐头",
        "うちの犬は毎朝パンを食べる",
        "작년 여름에 제주도에 다녀왔어요",
        "I swim and run three times a week",
        "The invoice is due on Friday",
        "数据库迁移安排在周三凌晨",
        "会議室の予約を取り消しました",
        "비밀번호를 바꿔야 합니다",
    ):
        memory.append(MemoryRecord("user", text))
    if question.isascii() or ("宠" not in question and "ペ" not in question):
        assert shown(memory, question) == [answer]
    else:
        assert answer in shown(memory, question, top_k=2), "the other pet eats as well"


_MULTILINGUAL = Multilingual()
