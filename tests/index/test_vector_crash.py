"""The files of an index of vectors: kill -9, several processes, damage, other models. It never finds wrong things."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import EmbeddingError
from clew.index import files, vector_writer, vectors
from clew.index.vectors import VectorIndex
from clew.memory.embedded import BATCH, PROBE, Vectors
from clew.storage import open_store
from clew.storage.vectors import StoredVectors
from index.letters import Letters
from index.sources import Rows
from index.vector_follower import opened

KILLS = 6
ROWS = 40
PROGRAM = [sys.executable, str(Path(__file__).with_name("vector_follower.py"))]


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def found(index: VectorIndex, vectors: Vectors, query: str, k: int = 1_000) -> set[str]:
    return {near.id for near in index.search(vectors.query(query), k, fresh=None)}


def test_killed_while_it_embeds_and_indexes(tmp_path: Path) -> None:
    random.seed(KILLS)
    said: set[str] = set()
    for n in range(KILLS):
        name = f"life{n}{'abcd'[n % 4]}"
        with start("write", tmp_path, name, 10**6) as writer:
            assert writer.stdout is not None
            last = int(writer.stdout.readline())
            time.sleep(random.uniform(0.0, 0.4))
            writer.kill()
            last = max([last, *(int(line) for line in writer.stdout.read().splitlines())])
        said |= {f"{name}-{i}" for i in range(last + 1)}
        _, kept, index = opened(tmp_path)
        assert found(index, kept, name[-1], 3 * len(said)) >= said
        assert index.catch_up(wait=0.0), "a dead process holds the lock"
        assert found(index, kept, name[-1], 3 * len(said)) >= said
    embedded = Counter((tmp_path / "embedded").read_text().splitlines())
    del embedded[PROBE]
    again = sum(times - 1 for times in embedded.values())
    assert again <= KILLS * BATCH, "only what a killed process had not stored is embedded again"


def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    opened(tmp_path)
    names = [f"writer{letter}" for letter in "ab"]
    running = [start("write", tmp_path, name, ROWS) for name in names]
    running += [start("search", tmp_path, ROWS, *names) for _ in range(2)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    _, kept, index = opened(tmp_path)
    assert index.catch_up()
    for name in names:
        near = index.search(kept.query(name[-1]), ROWS, fresh=0)
        assert {one.id for one in near} == {f"{name}-{n}" for n in range(ROWS)}
    embedded = Counter((tmp_path / "embedded").read_text().splitlines())
    assert len(embedded) == 2 * ROWS + 1


def test_one_writes_and_the_other_searches_without_waiting(tmp_path: Path) -> None:
    log, kept = Rows(), Vectors(Letters(), open_store("memory://"))
    log.say("one", "abc")
    index = VectorIndex(tmp_path, log, kept)
    index.catch_up()
    (place,) = tmp_path.iterdir()
    with files.writing(place, 0.0) as mine:
        assert mine
        assert not index.catch_up(wait=0.0)
        for n in range(vectors.BEHIND + 1):
            log.say(f"r{n}", "a" * (n + 1) + "b")
        assert len(found(index, kept, "a")) == vectors.BEHIND + 2


Made = tuple[Path, Rows, Vectors]


@pytest.fixture(params=["compared one by one", "in a graph"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    if request.param == "in a graph":
        monkeypatch.setattr(vector_writer, "EXACT", 100)
    log, kept = Rows(), Vectors(Letters(), open_store("memory://"))
    for n in range(180):
        log.say(f"r{n}", "".join(letter * (n // 3**i % 3 + 1) for i, letter in enumerate("abcdefg")))
    index = VectorIndex(tmp_path / "index", log, kept)
    index.catch_up()
    log.say("r7", "cc")
    index.catch_up()
    return tmp_path / "index", log, kept


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


EIGHTHS = tuple(n / 8 for n in range(9))


@pytest.mark.parametrize(
    ("damage", "places"), [(_flipped, (0.001, *EIGHTHS)), (_truncated, (0.0, 0.3, 0.7)), (_deleted, (0.0,))]
)
def test_damage_is_seen_and_mended(
    made: Made, tmp_path: Path, damage: Callable[[Path, float], None], places: tuple[float, ...]
) -> None:
    """Each file in turn, at some places of it."""
    folder, log, kept = made
    right = VectorIndex(folder, log, kept)
    wanted = [right.search(kept.query(text), 8) for text in ("aab", "gfe", "cc")]
    del right
    copy = tmp_path / "copy"
    for path in files_of(folder):
        for at in places:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            damage(copy / path.relative_to(folder), at)
            index = VectorIndex(copy, log, kept)
            for _ in range(2):
                assert [index.search(kept.query(text), 8) for text in ("aab", "gfe", "cc")] == wanted, (path.name, at)
                index.catch_up()


def test_an_index_of_another_make_is_made_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log, kept = made
    before = VectorIndex(folder, log, kept)
    wanted = before.search(kept.query("aab"))
    monkeypatch.setattr(vectors, "VERSION", vectors.VERSION + 1)
    newer = VectorIndex(folder, log, kept)
    for index in (newer, before):
        assert index.search(kept.query("aab")) == wanted
        index.catch_up()
        assert index.search(kept.query("aab")) == wanted


def test_an_index_of_another_log_is_made_again(made: Made) -> None:
    """The store was deleted and begun anew, or put back to an earlier state, and the index was left."""
    folder, _, kept = made
    for rows in (3, 300):
        log = Rows()
        for n in range(rows):
            log.say(f"new{n}", "".join(letter * (n // 3**i % 3 + 1) for i, letter in enumerate("cdefghi")))
        index = VectorIndex(folder, log, kept)
        for _ in range(2):
            some = found(index, kept, "ccd", 8)
            assert some <= {f"new{n}" for n in range(rows)}
            assert len(some) == min(rows, 8)
            index.catch_up()


def test_an_open_index_that_is_deleted(made: Made) -> None:
    folder, log, kept = made
    index = VectorIndex(folder, log, kept)
    wanted = index.search(kept.query("aab"))
    shutil.rmtree(folder)
    assert index.search(kept.query("aab")) == wanted


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    """Both are used at once, and their vectors never meet; the change can be interrupted, and the old be dropped."""
    log, store = Rows(), open_store(tmp_path / "store.db")
    for n in range(300):
        log.say(f"r{n}", "a" * (n + 1) + "bc")
    old = Vectors(Letters("old", "abc"), store)
    VectorIndex(tmp_path / "index", log, old).catch_up()

    class Interrupted(Letters):
        def embed(self, texts: object) -> list[list[float]]:
            if len(self.asked) == 3:
                raise KeyboardInterrupt
            return super().embed(list(texts))  # type: ignore[call-overload]

    model = Interrupted("new", "xcba")
    new = Vectors(model, store)
    with pytest.raises(KeyboardInterrupt):
        VectorIndex(tmp_path / "index", log, new).catch_up()
    assert StoredVectors(store, "default", "").models() == {"new": 2 * BATCH + 1, "old": 301}
    again = Letters("new", "xcba")
    new = Vectors(again, store)
    index = VectorIndex(tmp_path / "index", log, new)
    index.catch_up()
    assert sum(map(len, again.asked)) == 300 - 2 * BATCH + 1
    assert index.search(new.query("bc"), fresh=0) == VectorIndex(tmp_path / "index", log, old).search(old.query("bc"))
    StoredVectors(store, "default", "old").drop()
    assert StoredVectors(store, "default", "").models() == {"new": 301}
    store.close()


@pytest.mark.parametrize(("letters", "how"), [("cab", "a cosine of 0"), ("abcd", "4 numbers")])
def test_another_model_under_the_same_name_is_refused(letters: str, how: str) -> None:
    store = open_store("memory://")
    Vectors(Letters("same", "abc"), store).of(["aab"])
    for act in (lambda v: v.of(["cc"]), lambda v: v.query("c")):
        changed = Vectors(Letters("same", letters), store)
        with pytest.raises(EmbeddingError, match=how):
            act(changed)
        assert StoredVectors(store, "default", "").models() == {"same": 2}
    assert Vectors(Letters("same", "abc"), store).of(["cc"])
