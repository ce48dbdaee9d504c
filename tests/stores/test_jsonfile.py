"""What is particular to a JSON file: it is read by people, edited by them, and never emptied unawares."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import ClewError, StoreError
from clew.memory import MarkdownFileMemory, MemoryRecord, RecordLog, load, save
from clew.memory.jsonfile import FileChanges
from clew.memory.saved import BadFile


def test_the_file_is_private_whole_and_has_a_copy_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "memory.json"
    with RecordLog(f"json:{path}") as log:
        assert not path.exists(), "nothing is made before something is said"
        log.add(MemoryRecord("user", "喝茶"))
        log.add(MemoryRecord("user", "喝绿茶"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "喝绿茶" in path.read_text()
    copy = path.with_name("memory.json.bak")
    assert "喝绿茶" not in copy.read_text()
    assert "喝茶" in copy.read_text()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_it_is_the_file_that_save_writes_and_load_reads(tmp_path: Path) -> None:
    with RecordLog() as log, RecordLog() as other, RecordLog(f"json:{tmp_path}/b.json") as third:
        log.add(MemoryRecord("user", "tea"))
        save(log, tmp_path / "a.json")
        with RecordLog(f"json:{tmp_path}/a.json") as opened:
            assert opened.export() == log.export()
        third.add(MemoryRecord("user", "cake"))
        load(tmp_path / "b.json", other)
        assert other.export() == third.export()


def test_edits_by_a_person_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    with RecordLog(f"json:{path}") as log:
        log.add(MemoryRecord("user", "drinks tea"))
        log.add(MemoryRecord("user", "has a cat"))
        path.write_text(path.read_text().replace("drinks tea", "drinks coffee"))
        assert [r.text for r in log.records()] == ["drinks coffee", "has a cat"]
        log.add(MemoryRecord("user", "has a dog"))
    found = json.loads(path.read_text())
    assert [c["body"]["record"]["content"] for c in found["changes"]] == ["drinks coffee", "has a cat", "has a dog"]


@pytest.mark.parametrize("left", [0, 1])
def test_a_file_that_was_emptied_is_not_written_over(tmp_path: Path, left: int) -> None:
    path = tmp_path / "memory.json"
    with RecordLog(f"json:{path}") as log:
        for n in range(3):
            log.add(MemoryRecord("user", f"text {n}"))
        found = json.loads(path.read_text())
        path.write_text(json.dumps({**found, "changes": found["changes"][:left]}))
        before = path.read_bytes()
        assert len(log.records()) == left
        with pytest.raises(BadFile, match=rf"held 3 changes and now holds {left}.*memory.json.bak, or open the memory"):
            log.add(MemoryRecord("user", "more"))
        assert path.read_bytes() == before
    with RecordLog(f"json:{path}") as log:
        log.add(MemoryRecord("user", "more"))
        assert len(log.records()) == left + 1


def test_a_file_that_is_gone_is_not_begun_anew_unawares(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    with RecordLog(f"json:{path}") as log:
        log.add(MemoryRecord("user", "text"))
        path.unlink()
        with pytest.raises(BadFile, match="held 1 changes and now holds 0"):
            log.add(MemoryRecord("user", "more"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"namespace": "default"}', '{"a": 1}', "# notes\n"])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(BadFile, match="left as it is"):
        RecordLog(f"json:{path}")
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["notes.json"]


def test_what_is_purged_is_not_in_the_copy_either(tmp_path: Path) -> None:
    with RecordLog(f"json:{tmp_path}/m.json") as log:
        secret = log.add(MemoryRecord("user", "my number is 4711"))
        assert secret is not None
        log.purge(secret.id)
    for name in os.listdir(tmp_path):
        assert "4711" not in (tmp_path / name).read_text()


WRITER = """
import sys
from clew.memory import MemoryRecord, RecordLog
log = RecordLog("json:" + sys.argv[1])
sys.stdin.read(1)
for n in range(25):
    log.add(MemoryRecord("user", f"{sys.argv[2]} {n}"))
"""


def test_several_processes_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE) for name in "ab"
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b".")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    with RecordLog(f"json:{path}") as log:
        assert sorted(r.text for r in log.records()) == sorted(f"{name} {n}" for name in "ab" for n in range(25))


def test_a_link_and_its_file_are_one_memory(tmp_path: Path) -> None:
    path, link = tmp_path / "real" / "m.json", tmp_path / "link.json"
    link.symlink_to(path)
    with RecordLog(f"json:{link}") as one, RecordLog(f"json:{path}") as two:
        one.add(MemoryRecord("user", "a"))
        two.add(MemoryRecord("user", "b"))
        assert [r.text for r in one.records()] == ["a", "b"]
    assert link.is_symlink()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(tmp_path)) == ["link.json", "real"]


def test_what_is_no_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    (tmp_path / "deep.json").write_text('{"namespace":"default","changes":[{"uid":' + "[" * 100_000)
    for where in (tmp_path, tmp_path / "text" / "m.json", tmp_path / "deep.json", "a\0b", "x" * 300, "/dev/null/m"):
        with pytest.raises(ClewError), RecordLog(f"json:{where}") as log:
            log.add(MemoryRecord("user", "x"))


def test_a_write_that_fails_leaves_the_file_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    with RecordLog(f"json:{path}") as log:
        log.add(MemoryRecord("user", "a"))
        before = path.read_bytes()

        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match="No space left on device; nothing was written"):
                log.add(MemoryRecord("user", "b"))
        assert path.read_bytes() == before
        assert [r.text for r in log.records()] == ["a"]
        log.add(MemoryRecord("user", "c"))
        assert [r.text for r in log.records()] == ["a", "c"]
    assert sorted(os.listdir(tmp_path)) == [".m.json.lock", "m.json", "m.json.bak"]


def test_a_kill_between_a_purge_and_its_erasing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RecordLog(f"json:{tmp_path}/m.json") as log:
        secret = log.add(MemoryRecord("user", "my number is 4711"))
        assert secret is not None

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(FileChanges, "rewrite", killed)
        with pytest.raises(KeyboardInterrupt):
            log.purge(secret.id)
    assert not [name for name in os.listdir(tmp_path) if "4711" in (tmp_path / name).read_text()]


def test_a_link_is_written_through_by_what_saves_and_by_markdown(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name in ("m.json", "m.md"):
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    with RecordLog() as log:
        log.add(MemoryRecord("user", "a"))
        for _ in range(2):
            save(log, tmp_path / "m.json")
    memory = MarkdownFileMemory(tmp_path / "m.md")
    memory.append(MemoryRecord("user", "a"))
    memory.edit(memory.retrieve()[0].id, "b")
    for name in ("m.json", "m.md"):
        assert (tmp_path / name).is_symlink()
    assert [r.text for r in MarkdownFileMemory(tmp_path / "real" / "m.md").retrieve()] == ["b"]
