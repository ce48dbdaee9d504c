"""The index of vectors: what it finds is what comparing all of them finds, wherever the border between index and
unread rows is, and whichever process reads."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import EmbeddingError, StoreError
from clew.index import vector_writer, vectors
from clew.index.arrays import exact, unpacked
from clew.index.vectors import FRESH, Near, VectorIndex
from clew.memory.embedded import BATCH, PROBE, Vectors
from clew.storage import open_store
from index.letters import LETTERS, Letters
from index.sources import Rows


class Setting:
    """A log, a store and a model, and indexes of theirs in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Rows()
        self.model = Letters()
        self.store = open_store("memory://")
        self.vectors = Vectors(self.model, self.store)

    def index(self) -> VectorIndex:
        return VectorIndex(self.folder, self.log, self.vectors)

    def find(self, index: VectorIndex, text: str, k: int = 10, uids: list[str] | None = None) -> list[str]:
        return [near.id for near in index.search(self.vectors.query(text), k, uids, fresh=None)]

    def compared(self, text: str, k: int, uids: list[str] | None = None) -> list[Near]:
        """What comparing all of them finds."""
        last = {row.id: row for row in self.log.all.get("default", [])}
        some = [
            ((-row.position, row.id, n), piece["text"])
            for row in last.values()
            for n, piece in enumerate(row.pieces)
            if piece["text"].strip() and (uids is None or row.id in uids)
        ]
        if not some:
            return []
        vectors = unpacked(self.vectors.of([piece for _, piece in some]))
        scores = exact(vectors, self.vectors.query(text))
        found = [
            (-score, *place)
            for score, (place, _), there in zip(scores, some, vectors.any(axis=1), strict=True)
            if there
        ]
        return [Near(id, n, min(-minus, 1.0)) for minus, _, id, n in sorted(found)[:k]]


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path / "index")


texts = st.text(f"{LETTERS} ", max_size=6)
ids = st.sampled_from("xyzuvw")
actions = st.one_of(
    st.tuples(st.just("say"), ids, st.lists(texts, max_size=3)),
    st.tuples(st.just("catch up"), st.integers(0, 1)),
    st.tuples(st.just("clear"), st.integers(0, 1)),
    st.tuples(st.just("find"), st.integers(0, 1), texts, st.integers(1, 8), st.none() | st.lists(ids, max_size=3)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=25))
def test_it_finds_what_comparing_all_finds(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(Path(folder))
        both = setting.index(), setting.index()
        for act, *with_what in [*steps, ("find", 0, "abc", 8, None), ("find", 1, "abc", 8, None)]:
            match act, with_what:
                case "say", [str(id), list(some)]:
                    setting.log.say(id, *some)
                case "catch up", [int(n)]:
                    assert both[n].catch_up()
                case "clear", [int(n)]:
                    both[n].clear()
                case "find", [int(n), str(text), int(k), uids]:
                    query = setting.vectors.query(text)
                    assert both[n].search(query, k, uids, fresh=None) == setting.compared(text, k, uids)
                    assert both[n].waiting == 0


def test_more_than_are_compared_one_by_one(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a graph: it grows, entries go, and it never finds what is gone."""
    monkeypatch.setattr(vector_writer, "EXACT", 100)
    monkeypatch.setattr(vector_writer, "BATCH", 50)
    index, other = setting.index(), setting.index()
    for n in range(700):
        setting.log.say(f"r{n}", "".join(letter * (n // 3**i % 3 + 1) for i, letter in enumerate("abcdefg")))
        if n % 150 == 149:
            assert index.catch_up()
    assert len(list(setting.folder.rglob("graph-*"))) == 1
    asked = ["aab", "gfe", "abcdefg", "ccd"]
    before = [setting.compared(text, 10) for text in asked]
    for one in (index, other):
        found = [one.search(setting.vectors.query(text), 10) for text in asked]
        assert found == before
    gone = {near.id for near in before[0]}
    for id in gone:
        setting.log.say(id)
    for catch_up in (False, True):
        if catch_up:
            assert other.catch_up()
        for one in (index, other):
            found = [one.search(setting.vectors.query(text), 10) for text in asked]
            assert found == [setting.compared(text, 10) for text in asked]
            assert not gone.intersection(setting.find(one, "aab", 300))
    assert setting.find(index, "aab", 5, ["r1", "r2", next(iter(gone))]) == [
        near.id for near in setting.compared("aab", 5, ["r1", "r2"])
    ]


@pytest.mark.parametrize("above", [1_000, 10], ids=["compared", "in a graph"])
def test_any_number_may_be_asked_for(setting: Setting, monkeypatch: pytest.MonkeyPatch, above: int) -> None:
    monkeypatch.setattr(vector_writer, "EXACT", above)
    for n in range(40):
        setting.log.say(f"r{n}", "a" * n + "b")
    setting.log.say("zero", "z" * 20)
    index = setting.index()
    index.catch_up()
    for k in (-1, 0, 5, 10**9, 10**18, 10**30):
        assert len(index.search(setting.vectors.query("b"), k)) == max(0, min(k, 40))


def test_the_same_log_gives_the_same_graph(setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_writer, "EXACT", 50)
    for n in range(200):
        setting.log.say(f"r{n}", "".join(letter * (n // 3**i % 3 + 1) for i, letter in enumerate("abcdefg")))
    made = []
    for name in ("one", "two"):
        VectorIndex(tmp_path / name, setting.log, setting.vectors).catch_up()
        (path,) = (tmp_path / name).rglob("graph-*")
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_what_was_forgotten_is_nowhere(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the store, not in the index's files, neither before nor after it went into a graph."""
    secret = "aaabbbbcccccddddddeeeeeee"
    (vector,) = setting.vectors.of([secret])
    for exact_up_to, kept in ((1_000, "pieces.db"), (100, "graph-*")):
        monkeypatch.setattr(vector_writer, "EXACT", exact_up_to)
        setting.vectors.of([secret])
        for n in range(150):
            setting.log.say(f"r{n}", "abc" * (n % 7 + 1) + "d" * n)
        setting.log.say("secret", secret)
        index = setting.index()
        index.catch_up()
        index.search(setting.vectors.query("a"))
        needle = vector
        if graph := index._kept._nearby:
            needle = bytes(round(float(x) * graph.scale) % 256 for x in unpacked([vector])[0])
        assert list(setting.folder.rglob(kept))
        assert any(needle in path.read_bytes() for path in setting.folder.rglob("*") if path.is_file())
        setting.log.say("secret")
        index.catch_up()
        del index
        assert not any(needle in path.read_bytes() for path in setting.folder.rglob("*") if path.is_file())
        assert setting.vectors.held([setting.vectors.key(secret)]) == {}


def test_each_text_is_embedded_once(setting: Setting) -> None:
    for n in range(200):
        setting.log.say(f"r{n}", "a" * (n % 100 + 1))
    setting.index().catch_up()
    setting.find(setting.index(), "a")
    shutil.rmtree(setting.folder)
    told: list[int] = []
    setting.index().catch_up(told.append)
    assert setting.model.asked == [[PROBE], ["a" * n for n in range(1, BATCH + 1)], ["a" * n for n in range(65, 101)]]
    assert told == []


def test_a_search_embeds_what_a_turn_brought_and_says_what_waits(setting: Setting) -> None:
    for n in range(200):
        setting.log.say(f"r{n}", "a" * (n + 1))
    setting.log.say("newest", "bbb")
    index = setting.index()
    query = setting.vectors.query("b")
    assert index.search(query, 1)[0].id == "newest"
    assert index.waiting == 201 - FRESH
    assert index.search(query, 1, fresh=0)[0].id == "newest"
    assert index.waiting == 201 - FRESH
    told: list[int] = []
    assert index.catch_up(told.append)
    assert sum(told) == 201 - FRESH
    assert index.search(query, 300, fresh=0)[-1].score == 0
    assert index.waiting == 0


def test_a_long_text_is_embedded_in_parts_by_searches(setting: Setting) -> None:
    setting.log.say("short", "bbb")
    setting.log.say("long", *("a" * (n + 1) for n in range(100)))
    index, query = setting.index(), setting.vectors.query("a")
    for waiting in (101 - FRESH, 101 - 2 * FRESH, 101 - 3 * FRESH, 0):
        assert {near.id for near in index.search(query, 3)} == {"long"}
        assert index.waiting == waiting
    assert len(index.search(query, 200)) == 101
    assert len([text for batch in setting.model.asked for text in batch if text != PROBE]) == 101


def test_a_search_far_behind_writes_what_has_vectors(setting: Setting) -> None:
    for n in range(vectors.STEP + vectors.BEHIND):
        setting.log.say(f"r{n}", "a" * (n % 9 + 1))
    setting.vectors.of(["a" * n for n in range(1, 10)])
    index = setting.index()
    assert len(index.search(setting.vectors.query("a"), 2_000, fresh=0)) == vectors.STEP + vectors.BEHIND
    assert index.waiting == 0
    assert len(index._unread) <= vectors.BEHIND


def test_an_embedder_that_raises_loses_nothing(setting: Setting) -> None:
    class Broken(Letters):
        def embed(self, texts: object) -> list[list[float]]:
            if len(self.asked) == 3:
                raise ConnectionError("the provider is away")
            return super().embed(list(texts))  # type: ignore[call-overload]

    model = Broken()
    setting.vectors = Vectors(model, setting.store)
    for n in range(300):
        setting.log.say(f"r{n}", "a" * (n + 1))
    index = setting.index()
    with pytest.raises(ConnectionError):
        index.catch_up()
    with pytest.raises(ConnectionError):
        setting.find(index, "a")
    assert index.failure is None
    model.asked = [["mended"]] * 4
    assert index.catch_up()
    embedded = [text for batch in model.asked[4:] for text in batch]
    assert len(embedded) == 300 - 2 * BATCH, "what was embedded before is not embedded again"
    assert len(setting.find(index, "a", 400)) == 300


def test_a_folder_that_cannot_be_written(setting: Setting) -> None:
    setting.folder.parent.mkdir(exist_ok=True)
    setting.folder.write_text("a file where the folder should be")
    for n in range(vectors.BEHIND + 10):
        setting.log.say(f"r{n}", "a" * (n % 9 + 1) + "b" * n)
    index = setting.index()
    assert len(setting.find(index, "a", 1_000)) == vectors.BEHIND + 10
    assert isinstance(index.failure, StoreError)
    with pytest.raises(StoreError, match="cannot be written"):
        index.catch_up()


def test_a_vector_of_another_dimension_is_refused(setting: Setting) -> None:
    setting.log.say("one", "abc")
    for _ in range(2):
        with pytest.raises(EmbeddingError, match="search with the model that made them"):
            setting.index().search([1.0, 0.0], fresh=None)
        setting.index().catch_up()


def test_an_index_of_vectors_that_are_not_kept_is_not_kept_either(setting: Setting) -> None:
    setting.log.say("one", "abc")
    for letters in ("abc", "cba"):
        setting.vectors = Vectors(Letters("", letters), setting.store)
        index = setting.index()
        index.catch_up()
        assert index.search(setting.vectors.query("a"))[0].score == pytest.approx(3**-0.5, abs=1e-3)
    assert not setting.folder.exists()


def test_a_store_that_has_lost_its_vectors(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was put back from a copy that had none: they are made again."""
    monkeypatch.setattr(vector_writer, "EXACT", 50)
    for n in range(120):
        setting.log.say(f"r{n}", "a" * (n + 1) + "b")
    index = setting.index()
    index.catch_up()
    before = index.search(setting.vectors.query("b"))
    setting.vectors = Vectors(setting.model, open_store("memory://"))
    other = setting.index()
    assert other.search(setting.vectors.query("b"), fresh=None) == before
    other.catch_up()
    assert setting.index().search(setting.vectors.query("b"), fresh=0) == before
