"""Recall: what is found, what is not, and why."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import EmbeddingError, StoreError
from clew.memory import HybridMemory, MemoryRecord, Namespace, Recall, Recalled, RecallMemory, RecordLog, WindowMemory
from clew.memory.embedded import Vectors
from clew.memory.embedding import Embedder
from clew.memory.rerank import Lexical

DAY = 86_400.0
START = 1_700_000_000.0


class Clock:
    """A clock that moves on by itself, a minute with each look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 60
        return self.now


def log_of(store: str | Path = "memory://", **options: Namespace) -> RecordLog:
    return RecordLog(store, options.get("namespace"), clock=Clock())


def said(log: RecordLog, text: str, speaker: str = "Ann", session: str = "one", **fields: object) -> str:
    made = MemoryRecord("user", text, kind="message", speaker=speaker, metadata={"session": session})
    for name, value in fields.items():
        made = made.__class__(**{**{f: getattr(made, f) for f in made.__struct_fields__}, name: value})
    found = log.add(made, again=True)
    assert found is not None
    return found.id


def told(log: RecordLog, key: str, value: str) -> MemoryRecord:
    found = log.add(MemoryRecord("user", f"{key} is {value}", kind="fact", key=key, value=value))
    assert found is not None
    return found


def texts(hits: Sequence[Recalled]) -> list[str]:
    return [hit.record.text for hit in hits]


@pytest.fixture
def log() -> RecordLog:
    log = log_of()
    said(log, "I signed up for a pottery class yesterday")
    said(log, "How much was it?", "Ben")
    said(log, "Forty dollars for six weeks")
    said(log, "昨天买了一只猫", "李明", "two")
    said(log, "用FastAPI写的服务跑起来了", "李明", "two")
    said(log, "The garden needs water in summer", "Ben", "three")
    return log


# -- what is found


def test_an_answer_without_the_questions_words_comes_with_the_question(log: RecordLog) -> None:
    first, second, *_ = Recall(log).recall("how much did Ann pay for the pottery class?")
    assert first.record.text.startswith("I signed up")
    assert second.record.text == "Forty dollars for six weeks"
    assert second.why.neighbours > 0
    assert second.why.speaker > 0
    assert "what was said around it" in str(second.why)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("服务", "用FastAPI写的服务跑起来了"),
        ("FastAPI", "用FastAPI写的服务跑起来了"),
        ("fastapi 服务", "用FastAPI写的服务跑起来了"),
        ("买了", "昨天买了一只猫"),
        ("一只", "昨天买了一只猫"),
    ],
)
def test_chinese_words_and_latin_glued_to_them(log: RecordLog, query: str, wanted: str) -> None:
    assert texts(Recall(log).recall(query, 1)) == [wanted]


def test_a_query_of_operators_gives_only_what_it_matches(log: RecordLog) -> None:
    recall = Recall(log)
    assert texts(recall.recall('"pottery class"')) == ["I signed up for a pottery class yesterday"]
    assert texts(recall.recall("pott*")) == ["I signed up for a pottery class yesterday"]
    assert texts(recall.recall("garden AND water")) == ["The garden needs water in summer"]
    assert texts(recall.recall("garden AND pottery")) == []
    assert set(texts(recall.recall("speaker:Ben"))) == {"How much was it?", "The garden needs water in summer"}
    assert texts(recall.recall("speaker:Ben -garden")) == ["How much was it?"]
    assert texts(recall.recall("session:three AND water")) == ["The garden needs water in summer"]


@pytest.mark.parametrize("query", ["", "  ", "???", "\ud800", '"', "()", "-", "NOT"])
def test_a_query_without_a_word_asks_for_nothing(log: RecordLog, query: str) -> None:
    assert Recall(log).recall(query) == []


@given(st.text(max_size=40) | st.text('"()-*: ANDORNOTspeaker kind昨天ab', max_size=30))
@settings(max_examples=60)
def test_any_text_is_a_query(query: str) -> None:
    log = log_of()
    said(log, "a b 昨天 speaker")
    hits = Recall(log).recall(query)
    assert all(hit.score == hit.why.total > 0 and str(hit.why) for hit in hits)


def test_a_record_is_findable_when_add_returns() -> None:
    log = log_of()
    recall = Recall(log)
    for n in range(30):
        said(log, f"word{n} and nothing else", session=f"s{n % 3}")
        assert texts(recall.recall(f"word{n}", 1)) == [f"word{n} and nothing else"]


def test_the_same_words_are_given_once() -> None:
    log = log_of()
    for session in ("one", "two", "three"):
        said(log, "Tea, please", session=session)
    said(log, "Tea, please", "Ben", "three")
    assert texts(Recall(log).recall("tea")) == ["Tea, please"] * 2


# -- what holds


def test_a_superseded_fact_is_shown_only_as_of_its_time() -> None:
    log = log_of()
    told(log, "city", "Rome")
    then = log.now()
    told(log, "city", "Paris")
    recall = Recall(log)
    assert texts(recall.recall("city")) == ["city is Paris"]
    assert recall.recall("Rome") == []
    assert texts(recall.recall("city", at=then)) == ["city is Rome"]
    assert recall.recall("city", at=START) == []


def test_what_is_deleted_or_purged_is_not_recalled(log: RecordLog) -> None:
    recall = Recall(log)
    id = said(log, "the zebra sings", "Ben", "three")
    assert recall.recall("zebra")
    log.delete(id)
    assert "the zebra sings" not in texts(recall.recall("zebra"))
    log.purge(id)
    assert recall.recall("zebra") == []


def held(log: RecordLog, model: Embedder, *given: str) -> list[bytes]:
    vectors = Vectors(model, log.store, log.path)
    return list(vectors.held([vectors.key(text) for text in given]).values())


@pytest.mark.parametrize("reading", ["recall", "catch up", "another process"])
@pytest.mark.parametrize("before", ["recall", "catch up"])
def test_what_is_purged_leaves_the_indexes_and_the_context_of_its_neighbours(
    tmp_path: Path, before: str, reading: str
) -> None:
    """Words and vectors, in memory and on the disk, whoever reads of it first."""
    log, model = log_of(tmp_path / "m.db"), Letters()
    recall = Recall(log, model)
    id = said(log, "the secret cat is xyzzy")
    said(log, "I will not tell of the sea", "Ben")
    if before == "catch up":
        recall.catch_up()
    assert len(recall.recall("xyzzy")) == 2
    whole, context = "Ann: the secret cat is xyzzy", "Ann: the secret cat is xyzzy\nBen: I will not tell of the sea"
    vectors = held(log, model, whole, context)
    assert len(vectors) == 2
    log.purge(id)
    if reading == "catch up":
        recall.catch_up()
    elif reading == "another process":  # it is killed when it has read of it
        list(recall._source.rows(log.path, 1))
        recall = Recall(log, model)
        assert recall._source.stale
    assert [hit.why.words for hit in recall.recall("xyzzy")] in ([], [0.0])
    assert held(log, model, whole, context) == []
    assert len(held(log, model, "Ben: I will not tell of the sea")) == 1
    assert Recall(log, folder=tmp_path / "again").recall("xyzzy") == []
    for path in tmp_path.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not any(part in data for part in (b"xyzzy", *vectors)), path
    assert not Recall(log)._source.stale


def test_an_index_that_cannot_be_deleted_says_so(tmp_path: Path) -> None:
    log = log_of(tmp_path / "m.db")
    recall = Recall(log)
    id = said(log, "the secret is xyzzy")
    recall.catch_up()
    (index,) = tmp_path.rglob("index")
    shutil.rmtree(index)
    index.write_text("a file where the folder should be")
    log.purge(id)
    with pytest.raises(StoreError, match="cannot be deleted"):
        recall.clear()
    index.unlink()
    recall.clear()
    assert recall.recall("xyzzy") == []


def test_many_superseded_versions_do_not_hide_the_one_that_holds() -> None:
    log = log_of()
    for n in range(150):
        told(log, "mood", f"number {n}")
    assert texts(Recall(log).recall("mood")) == ["mood is number 149"]


def test_kinds_and_namespaces(tmp_path: Path) -> None:
    mine, other = (log_of(tmp_path / "m.db", namespace=Namespace(user=user)) for user in ("a", "b"))
    said(mine, "Rome is warm")
    told(mine, "city", "Rome")
    said(other, "Rome is cold")
    recall = Recall(mine)
    assert texts(recall.recall("Rome", kinds=["fact"])) == ["city is Rome"]
    assert set(texts(recall.recall("Rome"))) == {"city is Rome", "Rome is warm"}
    assert recall.recall("Rome", kinds=["nothing"]) == []
    assert recall.recall("Rome", kinds="fact") == recall.recall("Rome", kinds=["fact"])


WORDS = st.sampled_from(["tea", "rome", "cat", "blue", "猫", "写代码", "sings"])
RECORDS = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), st.sampled_from("ab"), st.sampled_from("xy")),
    max_size=12,
)


@given(RECORDS, st.lists(WORDS, min_size=1, max_size=3).map(" ".join), st.integers(0, 13), st.integers(1, 5))
@settings(max_examples=40)
def test_hits_hold_are_distinct_and_the_same_each_time(
    records: list[tuple[str, str, str]], query: str, when: int, k: int
) -> None:
    log = log_of()
    moments = [log.now()]
    for n, (text, speaker, session) in enumerate(records):
        id = said(log, text, speaker, session)
        if n % 4 == 3:
            log.delete(id)
        moments.append(log.now())
    at = moments[min(when, len(moments) - 1)]
    recall = Recall(log)
    hits = recall.recall(query, k, at=at)
    assert len(hits) <= k
    for hit in hits:
        assert log.get(hit.record.id, at) == hit.record
    assert len({(hit.record.text, hit.record.speaker) for hit in hits}) == len(hits)
    assert hits == recall.recall(query, k, at=at) == Recall(log).recall(query, k, at=at)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@given(RECORDS)
@settings(max_examples=30)
def test_what_is_unrelated_does_not_take_away_what_matches_alone(records: list[tuple[str, str, str]]) -> None:
    log = log_of()
    id = said(log, "the only zebra", "Ann", "zoo")
    for text, speaker, session in records:
        said(log, text, speaker, session)
    assert Recall(log).recall("zebra", 1)[0].record.id == id


# -- what speaks for a record


def test_a_time_that_is_named_gains() -> None:
    log = log_of()
    for month in (3, 5, 7):
        said(log, f"We went camping, trip {month}", session=str(month), valid_from=START - (12 - month) * 30 * DAY)
    plain = Recall(log, dates="ignore").recall("camping in June 2023")
    assert [hit.why.time for hit in plain] == [0, 0, 0]
    first, *rest = Recall(log).recall("camping in June 2023")
    assert first.why.time > 0
    assert all(hit.why.time == 0 for hit in rest)
    only = Recall(log, dates="only").recall("camping in June 2023")
    assert [hit.record.id for hit in only] == [first.record.id]


def test_age_and_confidence_are_factors() -> None:
    log = log_of()
    old = said(log, "tea in the old town", session="", valid_from=START - 60 * DAY)
    new = said(log, "tea in the new town", session="")
    unsure = said(log, "tea in the far town", session="", confidence=0.5)
    hits = {hit.record.id: hit.why for hit in Recall(log, half_life=30).recall("tea")}
    assert hits[old].age == pytest.approx(0.25, rel=0.01)
    assert hits[new].age == pytest.approx(1, rel=0.01)
    assert hits[unsure].confidence == 0.75
    assert "× 0.75 confidence" in str(hits[unsure])
    assert list(hits) == [new, unsure, old]


def test_unlike_records_first_when_asked_for() -> None:
    log = log_of()
    for text in ("tea tea green tea", "tea tea green tea leaves", "tea with a cat"):
        said(log, text, session="")
    assert texts(Recall(log).recall("green tea", 2)) == ["tea tea green tea", "tea tea green tea leaves"]
    assert texts(Recall(log, balance=0.3).recall("green tea", 2)) == ["tea tea green tea", "tea with a cat"]


def test_a_reranker_decides_the_order(log: RecordLog) -> None:
    def shortest(question: str, given: Sequence[str]) -> list[float]:
        return [-float(len(text)) for text in given]

    hits = Recall(log, rerank=shortest).recall("pottery class")
    assert [len(hit.record.text) for hit in hits] == sorted(len(hit.record.text) for hit in hits)
    assert "reranked" in str(hits[0].why)
    near = Lexical()("blue tea", ["tea that is blue", "tea and cake and rain and wind and a blue sky", "nothing"])
    assert near[0] > near[1] > near[2] == 0


class Letters:
    """An embedder of ours: how often a few words of like meaning occur."""

    name, dim = "likeness-1", 2

    def embed(self, given: Sequence[str]) -> list[list[float]]:
        return [[float(text.count("cat") + text.count("kitten")), 0.1 + text.count("sea")] for text in given]

    def query(self, text: str) -> list[float]:
        return self.embed([text])[0]


class Broken(Letters):
    name = "broken-1"

    def query(self, text: str) -> list[float]:
        raise EmbeddingError("no network")


def test_meaning_finds_what_words_do_not() -> None:
    log = log_of()
    said(log, "my kitten sleeps", session="")
    said(log, "the sea is calm", session="")
    assert texts(Recall(log).recall("cat")) == []
    recall = Recall(log, Letters())
    (first, *_) = recall.recall("cat")
    assert first.record.text == "my kitten sleeps"
    assert first.why.vector > 0
    assert "meaning" in str(first.why)
    assert texts(recall.recall("cat AND dog")) == []


def test_words_alone_when_the_embedder_fails() -> None:
    log = log_of()
    said(log, "my kitten sleeps")
    recall = Recall(log, Broken())
    assert texts(recall.recall("kitten")) == ["my kitten sleeps"]
    assert str(recall.failure) == "no network"


# -- indexes


def test_an_index_that_is_deleted_or_damaged_is_made_again(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "m.db")
    for n in range(700):
        said(log, f"word{n} of tea", session=str(n // 10))
    recall = Recall(log, Letters())
    recall.catch_up()
    before = recall.recall("word42 tea")
    index = tmp_path / "m.db.index"
    for path in index.rglob("*.store"):
        path.write_bytes(b"damaged")
    assert Recall(log, Letters()).recall("word42 tea") == before
    shutil.rmtree(index)
    assert recall.recall("word42 tea") == before
    assert Recall(log, Letters()).recall("word42 tea") == before


def test_scores_do_not_depend_on_how_far_the_index_has_read(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "m.db")
    recall = Recall(log)
    for n in range(40):
        said(log, f"tea number {n} with {'milk' if n % 3 else 'lemon'}?", session=str(n // 7))
        if n % 9 == 0:
            recall.catch_up()
    whole = Recall(log, folder=tmp_path / "other")
    whole.catch_up()
    assert recall.recall("lemon tea") == whole.recall("lemon tea")


ASK = """
import sys
from clew.memory import Recall, RecordLog
for _ in sys.stdin:
    with RecordLog(sys.argv[1]) as log:
        print([hit.record.text for hit in Recall(log).recall("zebra")], flush=True)
"""


def test_another_process_finds_it_at_once(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "m.db")
    recall = Recall(log)
    command = [sys.executable, "-c", ASK, str(tmp_path / "m.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        found = []
        for n in range(3):
            said(log, f"zebra {n}", session="")
            recall.catch_up()
            other.stdin.write("\n")
            found.append(other.stdout.readline().strip())
        other.stdin.close()
    assert found == [str([f"zebra {n}" for n in range(last, -1, -1)]) for last in range(3)]


# -- as a memory of an agent


def test_an_engine_gets_what_is_recalled() -> None:
    log = log_of()
    memory = HybridMemory(RecallMemory(log, top_k=2), WindowMemory(2, log=log))
    for n, text in enumerate(["my cat is Tom", "I like tea", "it rains", "how is my cat?"]):
        memory.append(MemoryRecord("user", text, n))
    shown = memory.retrieve({"text": "how is my cat?"})
    assert [r.text for r in shown[-2:]] == ["it rains", "how is my cat?"]
    assert shown[0].text == "my cat is Tom"
    assert shown[0].metadata["score"] > 0
    assert "cat" in shown[0].metadata["why"]


def test_a_new_run_still_recalls_what_was_said_before() -> None:
    log = log_of()
    memory = RecallMemory(log)
    memory.append(MemoryRecord("user", "my cat is Tom", 1))
    memory.append(MemoryRecord("assistant", "a cat, nice", 2))
    assert [r.role for r in memory.retrieve({"text": "cat", "roles": ["user"]})] == ["user"]
    memory.reset()
    assert memory.retrieve() == [] == memory.retrieve({"text": "cat", "top_k": 0})
    assert [r.text for r in memory.retrieve({"text": "Tom"})] == ["my cat is Tom"]
    assert memory.evict() == 0
