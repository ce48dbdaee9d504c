"""The Markdown memory: people, other processes and crashes write the file too."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from clew.errors import UnknownName
from clew.memory import MarkdownFileMemory, MemoryRecord, Source, WouldLose
from clew.memory.markdown_text import read, write
from clew.messages import sanitized


def texts(memory: MarkdownFileMemory) -> list[str]:
    return [r.text for r in memory.records]


@pytest.fixture
def memory(tmp_path: Path) -> MarkdownFileMemory:
    memory = MarkdownFileMemory(tmp_path / "memory.md", clock=lambda: 1_767_323_045.678901)
    memory.append(MemoryRecord("user", "我的猫叫小白", 1, {"source": "engine", "猫": [1, None]}))
    memory.append(MemoryRecord("tool", {"rows": [1, "二"]}, 2))
    memory.append(MemoryRecord("assistant", "```python\nprint(1)\n```\nafter\n\n## Step 9 · user\n- id: fake", 3))
    return memory


def test_it_is_read_again_as_it_was(memory: MarkdownFileMemory) -> None:
    again = MarkdownFileMemory(memory.path)
    assert again.records == memory.records
    assert [r.content for r in again.records][1] == {"rows": [1, "二"]}
    assert again.retrieve()[0].metadata == {"source": "engine", "猫": [1, None]}
    assert again.retrieve({"roles": ["tool"]}) == again.retrieve({"roles": "tool"}) == memory.records[1:2]
    assert again.retrieve({"step_min": 2, "max_items": 1}) == memory.records[2:]
    assert (
        MarkdownFileMemory(memory.path, 2).summarize().startswith("[2] tool: {'rows': [1, '二']}\n[3] assistant: ```")
    )
    assert stat.S_IMODE(memory.path.stat().st_mode) == 0o600


SIMPLE = st.text(max_size=8) | st.sampled_from(
    ["```", "````text\n", "\r\n", "\ud800", "## a", "- id: x", "<!-- forgotten: x -->"]
)
TEXTS = st.lists(SIMPLE, min_size=1, max_size=3).map("\n".join)
JSON = (
    TEXTS
    | st.lists(TEXTS | st.none() | st.integers(-9, 9), max_size=3)
    | st.dictionaries(TEXTS, st.booleans(), max_size=2)
)
RECORDS = st.builds(
    MemoryRecord,
    TEXTS,
    JSON,
    st.integers(-5, 1_000),
    st.dictionaries(TEXTS, JSON, max_size=2),
    id=st.uuids().map(str),
    kind=st.sampled_from(["", "fact"]),
    key=TEXTS,
    speaker=TEXTS,
    sources=st.lists(st.builds(Source, TEXTS, TEXTS), max_size=2).map(tuple),
    valid_to=st.none() | st.integers(0, 9).map(float),
    pinned=st.booleans(),
)


@given(st.lists(RECORDS.filter(lambda r: r.text.strip()), max_size=4, unique_by=lambda r: r.id), st.booleans())
def test_any_records_survive_the_file(records: list[MemoryRecord], windows: bool) -> None:
    text = "# Notes of mine\n\n" + "".join(map(write, records))
    found = read(text.replace("\n", "\r\n") if windows and "\r" not in text else text).records
    for record, back in zip(records, found, strict=True):
        assert sanitized(replace(record, sources=tuple(record.sources)))[0] == back


@given(st.lists(RECORDS | st.text(max_size=20) | st.sampled_from(["\n## By hand\n\ntext", "`" * 3]), max_size=5))
def test_what_is_added_need_not_be_read_again(steps: list[MemoryRecord | str]) -> None:
    """Texts are what others put at the end of the file meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        memory = MarkdownFileMemory(Path(folder) / "m.md", clock=lambda: 1.0)
        for step in steps:
            if isinstance(step, str):
                with memory.path.open("a", encoding="utf-8", errors="replace", newline="") as file:
                    file.write(step)
            else:
                memory.append(step)
            assert memory.records == MarkdownFileMemory(memory.path).records


@given(st.text() | st.lists(SIMPLE | st.sampled_from(["## Step 1 · user", "- time_utc: x", "```text"])).map("\n".join))
def test_any_text_can_be_read(text: str) -> None:
    document = read(text)
    assert all(document.text[s.start : s.end].startswith("## ") for s in document.sections)
    assert len({r.id for r in document.records}) == len(document.records)


UPSTREAM = """# QitOS Memory Log

This file is append-only runtime memory for one or more agent runs.
## Step 0 · task
- time_utc: 2026-01-02T03:04:05.678901+00:00

```text
{'objective': '做报告', 'task_id': None}
```
## Step 3 · observation
- time_utc: 2026-01-02T03:04:05.678901+00:00
- metadata: {'source': 'engine', 'n': 2}

```text
```python
print(1)
```
after
```
## Step 4 · next_state
- time_utc: 2026-01-02T03:04:05.678901+00:00
- metadata: {'x': <object object at 0x7f>}

```text
## Step 5 · not a section
```
"""


def test_a_file_of_qitos_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "memory.md"
    path.write_text(UPSTREAM, "utf-8")
    memory = MarkdownFileMemory(path)
    assert [(r.step_id, r.role, r.content) for r in memory.records] == [
        (0, "task", "{'objective': '做报告', 'task_id': None}"),
        (3, "observation", "```python\nprint(1)\n```\nafter"),
        (4, "next_state", "## Step 5 · not a section"),
    ]
    assert memory.records[1].metadata == {"source": "engine", "n": 2}
    assert memory.records[2].metadata == {"unread": "{'x': <object object at 0x7f>}"}
    assert memory.records[0].created == 1_767_323_045.678901
    memory.append(MemoryRecord("user", "and now", 5))
    assert path.read_text("utf-8").startswith(UPSTREAM), "what was there is left as it was"
    assert [r.text for r in MarkdownFileMemory(path).records][-1] == "and now"


def test_what_qitos_writes_is_read(tmp_path: Path) -> None:
    faithful = MarkdownFileMemory(tmp_path / "memory.md", faithful=True)
    for n, text in enumerate(["one", "```\ntwo\n```", "三"]):
        faithful.append(MemoryRecord("user", text, n, {"n": n}))
    ours = MarkdownFileMemory(tmp_path / "memory.md")
    assert [(r.step_id, r.content, r.metadata) for r in ours.records] == [
        (0, "one", {"n": 0}),
        (1, "```\ntwo\n```", {"n": 1}),
        (2, "三", {"n": 2}),
    ]


def test_what_a_person_edits_counts_at_once_and_stays(memory: MarkdownFileMemory) -> None:
    text = memory.path.read_text("utf-8")
    text = text.replace("小白", "小黑").replace("# Memory\n", "# My notes\n")
    first, rest = text.split("## Step 2")
    memory.path.write_text(first + "## Allergies\n\nNo nuts.\n\n## Step 2" + rest, "utf-8")
    assert texts(memory)[:2] == ["我的猫叫小黑", "No nuts."]
    note = memory.records[1]
    assert (note.kind, note.metadata["heading"]) == ("note", "Allergies")
    memory.append(MemoryRecord("user", "more", 4))
    memory.edit(memory.records[2].id, "no rows")
    memory.forget(memory.records[3].id)
    assert texts(memory) == ["我的猫叫小黑", "No nuts.", "no rows", "more"]
    left = memory.path.read_text("utf-8")
    assert left.startswith("# My notes\n")
    assert "## Allergies\n\nNo nuts.\n" in left


def test_a_section_a_person_takes_out_is_gone_and_a_copied_one_is_another(memory: MarkdownFileMemory) -> None:
    one = read(memory.path.read_text("utf-8")).sections[0]
    section = memory.path.read_text("utf-8")[one.start : one.end]
    memory.path.write_text(section + section.replace("小白", "小黑") + "\n", "utf-8")
    assert texts(memory) == ["我的猫叫小白", "我的猫叫小黑"]
    assert len({r.id for r in memory.records}) == 2
    memory.path.unlink()
    assert texts(memory) == []
    memory.append(MemoryRecord("user", "starts again", 0))
    assert texts(memory) == ["starts again"]


def test_a_forgotten_record_is_not_added_again(memory: MarkdownFileMemory) -> None:
    cat = memory.records[0]
    memory.forget(cat.id)
    memory.append(cat)
    MarkdownFileMemory(memory.path).append(cat)
    assert cat.text not in texts(memory)
    assert "小白" in memory.path.with_name("memory.md.bak").read_text("utf-8")
    for act in (lambda: memory.forget(cat.id), lambda: memory.edit("nobody", "x")):
        with pytest.raises(UnknownName):
            act()


def test_a_fuller_file_is_not_replaced_by_an_emptier_one(memory: MarkdownFileMemory) -> None:
    before = memory.path.read_bytes()
    with pytest.raises(WouldLose, match="holds 3 records and would be left with 1"):
        memory.save(memory.records[:1])
    assert memory.path.read_bytes() == before
    memory.save(memory.records[:1], force=True)
    assert texts(memory) == ["我的猫叫小白"]
    assert memory.path.with_name("memory.md.bak").read_bytes() == before


def test_blank_texts_and_the_same_record_twice_are_not_stored(memory: MarkdownFileMemory) -> None:
    before = memory.path.read_bytes()
    for record in (MemoryRecord("user", " \n"), MemoryRecord("user", None), memory.records[0]):
        memory.append(record)
    assert memory.path.read_bytes() == before


@pytest.mark.parametrize("end", ["", "half a wor", "\n", "- id: abc\n", "\n```text\n"])
def test_an_end_that_is_torn_off_loses_nothing_else(memory: MarkdownFileMemory, end: str) -> None:
    whole = memory.path.read_text("utf-8")
    for cut in range(len(whole) - 40, len(whole), 3):
        memory.path.write_text(whole[:cut] + end, "utf-8")
        before = [r.text for r in memory.records]
        assert before[:2] == ["我的猫叫小白", '{"rows":[1,"二"]}']
        memory.append(MemoryRecord("user", "goes on", 9))
        assert texts(memory)[:2] == before[:2]
        assert texts(memory)[-1] == "goes on"


WRITER = """
import sys
from clew.memory import MarkdownFileMemory, MemoryRecord
memory = MarkdownFileMemory(sys.argv[1])
if sys.argv[3] == "wait":
    sys.stdin.read(1)
for n in range(int(sys.argv[4])):
    memory.append(MemoryRecord("user", f"{sys.argv[2]} {n} ```", n))
    if n % 10 == 5:
        memory.edit(memory.records[0].id, f"first, edited by {sys.argv[2]} {n}")
    print(n, flush=True)
"""


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.md"
    MarkdownFileMemory(path).append(MemoryRecord("user", "first", 0))
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    workers = [subprocess.Popen([*command, name, "wait", "60"], **pipes) for name in ("a", "猫")]  # type: ignore[call-overload]
    for worker in workers:
        worker.stdin.write(b".")
        worker.stdin.flush()
    assert [worker.communicate()[1].decode() for worker in workers] == ["", ""]
    first, *rest = texts(MarkdownFileMemory(path))
    assert first.startswith("first, edited by")
    assert sorted(rest) == sorted(f"{name} {n} ```" for name in ("a", "猫") for n in range(60))


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    random.seed(7)
    path = tmp_path / "memory.md"
    MarkdownFileMemory(path).append(MemoryRecord("user", "first", 0))
    acknowledged: list[str] = []
    for n in range(6):
        worker = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), f"run{n}", "go", "100000"], stdout=subprocess.PIPE
        )
        assert worker.stdout is not None
        said = [worker.stdout.readline() for _ in range(random.randint(1, 30))]
        time.sleep(random.uniform(0.0, 0.02))
        os.kill(worker.pid, signal.SIGKILL)
        said += worker.stdout.readlines()
        worker.stdout.close()
        worker.wait()
        acknowledged += [f"run{n} {int(line)} ```" for line in said if line.endswith(b"\n")]
        memory = MarkdownFileMemory(path)
        assert set(acknowledged) <= set(texts(memory))
        memory.append(MemoryRecord("user", f"goes on {n}", 0))
        acknowledged.append(f"goes on {n}")
    assert texts(MarkdownFileMemory(path))[0].startswith("first")
