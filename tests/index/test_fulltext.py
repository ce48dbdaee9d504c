"""The full-text index: what it finds is what the log holds, wherever the border between index and tail is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import StoreError
from clew.index import FullText, Hit, Row, fulltext
from clew.index.writer import BATCH
from clew.text import parse
from index.sources import Rows

FIELDS = {"text": 1.0, "context": 0.2}


@pytest.fixture
def log() -> Rows:
    return Rows()


@pytest.fixture
def index(tmp_path: Path, log: Rows) -> FullText:
    return FullText(tmp_path / "index", log, FIELDS, ("role",))


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def find(index: FullText, query: str, k: int = 10, **options: Any) -> list[str]:
    return ids(index.search(parse(query, ("text", "context", "role")), k, **options))


@pytest.fixture(params=["unread", "read"])
def filled(request: pytest.FixtureRequest, index: FullText, log: Rows) -> FullText:
    log.say("en", "How do we rotate the database password?", role="user")
    log.say("cpp", "mail alice@example.com about C++ and node.js", role="assistant")
    log.say("code", "getUserName failed in src/main.py, user_id was None", role="tool")
    log.say("zh", "大别山项目的数据库连接池已经调好，用FastAPI写的", role="user")
    log.say("ja", "接続プールの設定を確認してください", role="user")
    log.say("ko", "서울 출장 일정을 정리해 주세요", role="user")
    log.say("long", "first piece about whales", "second piece about tides", role="assistant")
    if request.param == "read":
        assert index.catch_up()
    return index


FOUND = [
    ("password", ["en"]),
    ("rotating passwords", ["en"]),
    ("C++", ["cpp"]),
    ("alice@example.com", ["cpp"]),
    ("userid", ["code"]),
    ('"user name"', []),
    ("user AND name", ["code"]),
    ("carp*", []),
    ("getus*", ["code"]),
    ("数据库", ["zh"]),
    ("山", ["zh"]),
    ("写", ["zh"]),
    ("用", ["zh"]),
    ("fastapi", ["zh"]),
    ('"用FastAPI"', ["zh"]),
    ('"山 项目"', ["zh"]),
    ("设定", []),
    ("設定", ["ja"]),
    ("서울", ["ko"]),
    ("role:user AND 設定", ["ja"]),
    ("role:tool", ["code"]),
    ("role:tool OR 設定", ["ja", "code"]),
    ("(role:tool OR role:assistant) AND node.js", ["cpp"]),
    ("role:user -password -数据 -서울", ["ja"]),
    ("database -password", []),
    ("context:password", []),
    ("text:password", ["en"]),
    ("whales tides", ["long", "long"]),
    ("the", ["en"]),
    ("", []),
    ("*", []),
]


@pytest.mark.parametrize(("query", "found"), FOUND)
def test_finds(filled: FullText, query: str, found: list[str]) -> None:
    assert find(filled, query) == found


def test_a_hit_says_why(filled: FullText) -> None:
    (hit,) = filled.search(parse("database password"))
    assert hit.score == pytest.approx(sum(gain.score for gain in hit.gains))
    assert {gain.term: dict(gain.counts) for gain in hit.gains} == {"databas": {"text": 1}, "password": {"text": 1}}
    assert [(hit.id, hit.piece) for hit in filled.search(parse("tides"))] == [("long", 1)]


@pytest.mark.parametrize("k", [-1, 0, 1, 10**9, 10**18, 10**30])
def test_any_number_may_be_asked_for(filled: FullText, k: int) -> None:
    assert len(find(filled, "password project whales tides", k)) == max(0, min(k, 3))


def test_filters(filled: FullText) -> None:
    everywhere = "password 数据库 whales"
    assert set(find(filled, everywhere)) == {"en", "zh", "long"}
    assert set(find(filled, everywhere, filters={"role": ["User"]})) == {"en", "zh"}
    assert set(find(filled, everywhere, filters={"role": ["user", "assistant"]})) == {"en", "zh", "long"}
    assert find(filled, everywhere, filters={"role": []}) == []
    assert find(filled, everywhere, filters={"other": ["user"]}) == []


def test_the_last_row_of_an_id_counts(filled: FullText, log: Rows) -> None:
    log.say("en", "a new wording")
    log.say("long", "only whales now")
    log.say("cpp")
    for _ in range(2):
        assert find(filled, "password OR alice OR tides") == []
        assert set(find(filled, "wording whales")) == {"en", "long"}
        filled.catch_up()


def test_namespaces_do_not_see_each_other(index: FullText, log: Rows) -> None:
    log.say("mine", "the secret plan")
    log.say("theirs", "the secret plan and secret word", namespace="other")
    for _ in range(2):
        assert find(index, "secret") == ["mine"]
        assert find(index, "secret", namespace="other") == ["theirs"]
        assert find(index, "secret", namespace="\ud800 none") == []
        index.catch_up()
        index.catch_up("other")
    alone = index.search(parse("secret"))
    log.say("more", "secret " * 9, namespace="other")
    assert index.search(parse("secret")) == alone


def test_a_beginning_after_any_character_is_no_syntax_error(index: FullText, log: Rows) -> None:
    for n, before in enumerate(["👍", "สวัสดี", "数", "a.b-", "x|y", "e\u0301"]):
        log.say(str(n), f"{before}whales")
    index.catch_up()
    assert [find(index, f'"{before}"wha*')[:1] for before in ("👍", "数")] == [["0"], ["2"]]
    for n, before in enumerate(["👍", "สวัสดี", "数", "a.b-", "x|y", "e\u0301"]):
        assert str(n) in find(index, f"{before}wha*")


def test_a_short_question_meets_a_text_in_single_characters(filled: FullText, log: Rows) -> None:
    log.say("cat", "我的猫只吃金枪鱼", role="user")
    log.say("dog", "狗什么都吃", role="user")
    assert find(filled, "猫吃什么？") == ["cat"]
    assert find(filled, "猫呢？") == ["cat"]
    assert find(filled, "猫吃什么？", filters={"role": ["tool"]}) == []
    assert find(filled, "吃饭") == [], "all characters that say something are asked for"
    assert find(filled, "猫狗") == []


def test_what_is_forgotten_leaves_the_disk(index: FullText, log: Rows, tmp_path: Path) -> None:
    log.say("secret", "hunter2 is the password")
    log.say("plain", "whales sing")
    index.catch_up()
    log.say("secret")
    index.catch_up()
    index.clear()
    assert find(index, "whales") == ["plain"]
    assert find(index, "password") == []
    index.catch_up()
    assert find(index, "whales") == ["plain"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_context_counts_less_than_text(index: FullText, log: Rows) -> None:
    log.all["default"] = [
        Row(1, "context", ({"text": "nothing here", "context": "a whale"},)),
        Row(2, "text", ({"text": "a whale here", "context": "nothing"},)),
    ]
    assert find(index, "whale") == ["text", "context"]


def test_of_equals_the_newer_comes_first(filled: FullText, log: Rows) -> None:
    for name in ("first", "second", "third"):
        log.say(name, "one and the same")
    assert find(filled, "same", 2) == ["third", "second"]


def test_of_many_equals_too(index: FullText, log: Rows) -> None:
    """More than are taken from the engine, which would give the oldest."""
    log.say("best", "same same")
    for n in range(300):
        log.say(f"r{n}", f"one and the same{n} same")
    newest = ["best", "r299", "r298"]
    assert find(index, "same", 3) == newest
    assert index.catch_up()
    assert find(index, "same", 3) == newest
    assert len(find(index, "same", 200)) == 200


PLAIN = "whale whales tide user_id userId the 数据库 数据 库 C++ c 写FastAPI fast"
ODD = "v2.1.3 1,000 👍 สวัสดี 葛\ufe00城 [x]|y.* \ud800"
WORDS = st.sampled_from([*PLAIN.split(), *ODD.split()])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5), st.lists(st.tuples(TEXTS, TEXTS), max_size=2)),
        st.just("catch up"),
    ),
    max_size=12,
)
QUERIES = st.lists(
    st.one_of(WORDS, st.sampled_from([" AND ", " OR ", " -", '"', "*", "text:", "role:r1 ", " "])), max_size=6
).map("".join)


@settings(max_examples=40)
@given(STEPS, st.lists(QUERIES, min_size=1, max_size=4))
def test_what_is_found_does_not_depend_on_how_far_the_index_is(steps: list[Any], queries: list[str]) -> None:
    """Hits, scores and explanations of an index that caught up at any times, of a new one, and of none."""
    log = Rows()
    rows = log.all.setdefault("default", [])
    with tempfile.TemporaryDirectory() as folder:
        eager, unread, late = (FullText(Path(folder) / name, log, FIELDS, ("role",)) for name in "abc")
        for step in steps:
            if step == "catch up":
                eager.catch_up()
                continue
            id, pieces = step
            texts = tuple({"text": text, "context": context} for text, context in pieces)
            rows.append(Row(len(rows) + 1, str(id), texts, {"role": f"R{id % 2}"}))
        late.catch_up()
        for typed in queries:
            query = parse(typed, ("text", "role"))
            expected = unread.search(query, 50)
            assert _rounded(eager.search(query, 50)) == _rounded(expected)
            assert _rounded(late.search(query, 50)) == _rounded(expected)


def _rounded(hits: list[Hit]) -> list[Any]:
    return [
        (h.id, h.piece, h.position, round(h.score, 9), [(g.term, round(g.score, 9), dict(g.counts)) for g in h.gains])
        for h in hits
    ]


class Watched(Rows):
    """Notes from where it is read."""

    def __init__(self, log: Rows) -> None:
        self.all = log.all
        self.read: list[int] = []

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        self.read.append(after)
        return super().rows(namespace, after)


def test_a_search_has_the_index_catch_up(index: FullText, log: Rows, tmp_path: Path) -> None:
    for n in range(fulltext.BEHIND + 1):
        log.say(f"r{n}", f"record number{n} of many")
    assert find(index, "number7") == ["r7"]
    watched = Watched(log)
    assert find(FullText(tmp_path / "index", watched, FIELDS), "number7") == ["r7"]
    assert min(watched.read) == fulltext.BEHIND, "the log was read again from an earlier place than the index's last"


def test_lone_surrogates(filled: FullText, log: Rows) -> None:
    log.say("broken", "half a \ud83d pair", role="\udfff")
    for _ in range(2):
        assert find(filled, "half \ud83d") == ["broken"]
        assert find(filled, "pair", filters={"role": ["\udfff"]}) == ["broken"]
        filled.catch_up()


def test_positions_are_read_whole(index: FullText, log: Rows) -> None:
    log.all["default"] = [
        Row(n // 3 + 1, f"r{n}", ({"text": f"record number{n}"},)) for n in range(3 * fulltext.BEHIND)
    ]
    assert all(find(index, f"number{n}") == [f"r{n}"] for n in (0, 1, 2, fulltext.BEHIND, 3 * fulltext.BEHIND - 1))


def test_many_rows_take_several_commits(index: FullText, log: Rows) -> None:
    for n in range(BATCH + 10):
        log.say(f"r{n % (BATCH - 1)}", f"record number{n}")
    index.catch_up()
    assert find(index, f"number{BATCH + 9}") == ["r10"]
    assert find(index, "number10") == []
    assert len(find(index, "record", BATCH)) == BATCH - 1


def test_a_long_text_is_looked_for_by_its_rarest_words(index: FullText, log: Rows) -> None:
    for n in range(300):
        log.say(f"r{n}", f"common word number{n}")
    assert find(index, " ".join(["common", "word"] + [f"absent{n}" for n in range(2_000)] + ["number42"]), 1) == ["r42"]


def test_a_deleted_folder_is_made_again(filled: FullText, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "index", ignore_errors=True)
    assert find(filled, "password") == ["en"]
    filled.catch_up()
    assert find(filled, "password") == ["en"]


def test_an_index_that_cannot_be_written_is_done_without(tmp_path: Path, log: Rows) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    index = FullText(blocked, log, FIELDS)
    for n in range(fulltext.BEHIND + 1):
        log.say(f"r{n}", f"record number{n}")
    assert find(index, "number7") == ["r7"]
    assert isinstance(index.failure, StoreError)
    with pytest.raises(StoreError, match="cannot be written"):
        index.catch_up()
