"""The files of an index: kill -9, several processes, damage, other versions. It never finds wrong things."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.index import FullText, files, fulltext
from clew.text import parse
from index.follower import opened
from index.sources import Rows

KILLS = 8
WRITERS, ROWS = 3, 60
PROGRAM = [sys.executable, str(Path(__file__).with_name("follower.py"))]


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def found(index: FullText, query: str, k: int = 1_000) -> set[str]:
    return {hit.id for hit in index.search(parse(query), k)}


def test_killed_while_it_indexes(tmp_path: Path) -> None:
    random.seed(KILLS)
    said: set[str] = set()
    for n in range(KILLS):
        with start("write", tmp_path, f"life{n}", 10**6) as writer:
            assert writer.stdout is not None
            last = int(writer.stdout.readline())
            time.sleep(random.uniform(0.0, 0.5))
            writer.kill()
            last = max([last, *(int(line) for line in writer.stdout.read().splitlines())])
        said |= {f"life{n}-{i}" for i in range(last + 1)}
        _, index = opened(tmp_path)
        assert found(index, f"life{n}") >= {f"life{n}-{i}" for i in range(last + 1)}
        assert found(index, "record", len(said) + KILLS) >= said
        assert index.catch_up(wait=0.0), "a dead process holds the lock"
        assert found(index, "record", len(said) + KILLS) >= said


def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    opened(tmp_path)
    names = [f"writer{n}" for n in range(WRITERS)]
    running = [start("write", tmp_path, name, ROWS) for name in names]
    running += [start("search", tmp_path, ROWS, *names) for _ in range(2)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    _, index = opened(tmp_path)
    assert index.catch_up()
    assert all(len(found(index, name)) == ROWS for name in names)


def test_one_writes_and_the_other_searches_without_waiting(tmp_path: Path) -> None:
    log = Rows()
    log.say("one", "a whale")
    index = FullText(tmp_path, log, {"text": 1.0})
    index.catch_up()
    (place,) = tmp_path.iterdir()
    with files.writing(place, 0.0) as mine:
        assert mine
        assert not index.catch_up(wait=0.0)
        for n in range(fulltext.BEHIND + 1):
            log.say(f"r{n}", f"a whale, number{n}")
        assert found(index, "number3 OR number500") == {"r3", "r500"}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Rows]:
    log = Rows()
    for n in range(200):
        log.say(f"r{n}", f"record number{n} of {'odd' if n % 2 else 'even'} 数据库")
    index = FullText(tmp_path / "index", log, {"text": 1.0})
    index.catch_up()
    log.say("r7", "another")
    index.catch_up()
    return tmp_path / "index", log


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size and path.name != "lock")


def _flipped(path: Path, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 0x55
    path.write_bytes(data)


def _truncated(path: Path, at: float) -> None:
    path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


def _deleted(path: Path, at: float) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "places"), [(_flipped, (0.0, 0.5, 1.0)), (_truncated, (0.0, 0.7)), (_deleted, (0.0,))]
)
def test_damage_is_seen_and_mended(
    made: tuple[Path, Rows], tmp_path: Path, damage: Callable[[Path, float], None], places: tuple[float, ...]
) -> None:
    """Each file in turn, at some places of it."""
    folder, log = made
    copy = tmp_path / "copy"
    for path in files_of(folder):
        for at in places:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            damage(copy / path.relative_to(folder), at)
            index = FullText(copy, log, {"text": 1.0})
            for _ in range(2):
                assert found(index, "odd") == {f"r{n}" for n in range(200) if n % 2 and n != 7}, path.name
                assert found(index, "number7 another 数据库") == {f"r{n}" for n in range(200)}
                index.catch_up()


def test_an_index_of_another_make_is_made_again(made: tuple[Path, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = made
    before = FullText(folder, log, {"text": 1.0})
    monkeypatch.setattr(fulltext, "VERSION", fulltext.VERSION + 1)
    newer = FullText(folder, log, {"text": 1.0})
    with_more = FullText(folder, log, {"text": 1.0, "context": 0.5})
    for index in (newer, with_more, before):
        assert found(index, "odd") == {f"r{n}" for n in range(200) if n % 2 and n != 7}
        index.catch_up()
        assert found(index, "odd") == {f"r{n}" for n in range(200) if n % 2 and n != 7}


def test_an_index_of_another_log_is_made_again(made: tuple[Path, Rows]) -> None:
    """The store was deleted and begun anew, or put back to an earlier state, and the index was left."""
    folder, _ = made
    for rows in (3, 300):
        log = Rows()
        for n in range(rows):
            log.say(f"r{n}", f"something new, number{n}")
        index = FullText(folder, log, {"text": 1.0})
        for _ in range(2):
            assert found(index, "record OR odd OR another") == set()
            assert found(index, "number2 something") == {f"r{n}" for n in range(rows)}
            index.catch_up()


def test_an_open_index_that_is_deleted(made: tuple[Path, Rows]) -> None:
    folder, log = made
    index = FullText(folder, log, {"text": 1.0})
    assert len(found(index, "record")) == 199
    shutil.rmtree(folder)
    assert len(found(index, "record")) == 199
