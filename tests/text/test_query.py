"""The query language: nothing a person types is an error, and everything means what it seems to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.text import NOTHING, parse, pattern, terms, words
from clew.text.parse import LONGEST
from clew.text.patterns import Exact, Leaf, Some, count, leaves, matches
from clew.text.query import All, Any, Either, Phrase, Prefix, Query, Within, Without, Word

FIELDS = ("title", "role")
A, B, C = Word("a1"), Word("b1"), Word("c1")

MEANT: list[tuple[str, Query]] = [
    ("a1", A),
    ("a1 b1", Any((A, B))),
    ('"a1 b1"', Phrase("a1 b1")),
    ("“a1  b1” 「文」", Any((Phrase("a1 b1"), Phrase("文")))),
    ("doc*", Prefix("doc")),
    ("数＊", Prefix("数")),
    ("a1 AND b1", All((A, B))),
    ("a1 && b1 ＆＆ c1", All((A, B, C))),
    ("a1 OR b1 || c1", Either((A, B, C))),
    ("a1 -b1", Without(A, (B,))),
    ("a1 NOT b1 -c1", Without(A, (B, C))),
    ("a1 －b1", Without(A, (B,))),
    ("a1 AND NOT b1", Without(A, (B,))),
    ("a1 AND NOT b1 AND c1", Without(All((A, C)), (B,))),
    ("NOT a1 AND b1", Without(B, (A,))),
    ("a1 AND -b1 c1", All((A, Without(C, (B,))))),
    ("a1 b1 AND c1 OR a1", Either((All((Any((A, B)), C)), A))),
    ("(a1 OR b1) AND c1", All((Either((A, B)), C))),
    ("（a1 OR b1） c1", Any((Either((A, B)), C))),
    ("title:a1 role:b1", Any((Within("title", A), Within("role", B)))),
    ("title：a1", Within("title", A)),
    ('title:"a1 b1"', Within("title", Phrase("a1 b1"))),
    ("title:(a1 OR b1)", Within("title", Either((A, B)))),
    ("-title:a1 b1", Without(B, (Within("title", A),))),
    ("other:a1", Word("other:a1")),
    ("title:", NOTHING),
    ("user-id C++ a:b what's", Any((Word("user-id"), Word("C++"), Word("a:b"), Word("what's")))),
    ("--verbose", Word("verbose")),
    ("and or not", Any((Word("and"), Word("or"), Word("not")))),
    # what makes no sense as it stands
    ("", NOTHING),
    ("*", NOTHING),
    ("。", NOTHING),
    ("AND", NOTHING),
    ("AND a1 AND", A),
    ("a1 AND AND b1", All((A, B))),
    ("OR OR a1", A),
    ("NOT a1", A),
    ("-a1 -b1", Any((A, B))),
    ("a1 OR -b1", Either((A, B))),
    ('"a1 b1', Any((A, B))),
    ("(a1", A),
    ("a1)", A),
    ("a1) b1", Any((A, B))),
    ("()", NOTHING),
    ("***a1", A),
    ("a1 -", A),
    ("NEAR(a1 b1)", Any((Word("NEAR"), Any((A, B))))),
]


@pytest.mark.parametrize(("text", "query"), MEANT)
def test_means(text: str, query: Query) -> None:
    assert parse(text, FIELDS) == query


TYPED = st.lists(
    st.one_of(
        st.sampled_from(
            [*'"“”「」()（）*-－:', " ", " AND ", " OR ", " NOT ", "&&", "title:", "role:", "\u3000", "文", "C++"]
        ),
        st.text(max_size=5),
    ),
    max_size=30,
).map("".join)


@given(TYPED)
def test_a_query_written_out_is_the_same_query(text: str) -> None:
    query = parse(text, FIELDS)
    assert parse(str(query), FIELDS) == query


@given(TYPED)
def test_what_has_words_looks_for_some(text: str) -> None:
    """No syntax error, and no empty surprise: without a field, the words that are typed are looked for."""
    typed = [term for term in terms(text).stream if term not in ("and", "or", "not")]
    looked_for = list(leaves(pattern(parse(text))))
    assert looked_for or not typed


@given(TYPED)
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    found = terms(text)
    if found.stream:
        assert matches(pattern(words(text)), lambda leaf, _: count(leaf, found), {})


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "title: " * 50_000, "-" * 100_000, '"' * 99_999, "“" * 9_999, "a OR " * 30_000]
)
def test_hostile_lengths(text: str) -> None:
    for size in (len(text), LONGEST):
        pattern(parse(text[:size], FIELDS))


def test_of_a_long_text_the_beginning_and_the_end_count() -> None:
    text = "first " + "between " * 100_000 + "last"
    found = str(parse(text)).split()
    assert (found[0], found[-1]) == ("first", "last")
    assert len(text) > sum(map(len, found)) > LONGEST
    assert len(str(parse("字" * 1_000_000))) <= 2 * LONGEST + 1


# -- what is found


def found(query: str, text: str) -> bool:
    fields = {"text": terms(text), "title": terms("On Docker")}

    def holds(leaf: Leaf, field: str) -> bool:
        return any(count(leaf, held) for name, held in fields.items() if field in ("", name))

    return matches(pattern(parse(query, FIELDS), ("role",)), holds, {"role": "user"})


MATCHES = [
    ("rotate vault", "vault write"),
    ("running", "she runs"),
    ("userid", "the user_id column"),
    ("user_id", "the userId column"),
    ("user-id AND column", "a user id column"),
    ("api", "FastAPI"),
    ("fastapi", "用FastAPI写的"),
    ('"github actions"', "GitHub Actions failed"),
    ('"user id"', "user_id"),
    ("C++", "C++ code"),
    ("c AND code", "C++ code"),
    ("connecti*", "connections"),
    ("happine*", "happiness"),
    ('"happy dogs"', "happy dog"),
    ("src/mai*", "src/main.py"),
    ("猫", "我有一只猫。"),
    ("猫", "猫咪"),
    ("大别", "我们部署大别山项目"),
    ('"大别山 项目"', "大别山项目"),
    ('"写的 代码"', "写的代码"),
    ('"用 FastAPI"', "使用FastAPI"),
    ("数据库*", "数据库连接池"),
    ("サー*", "サーバー"),
    ("서울", "서울에서"),
    ("ｄａｔａ", "data"),
    ("the", "the end"),
    ("to be", "to be or not"),
    ("👍", "fine 👍🏿"),
    ("title:docker", "nothing"),
    ("role:user", "nothing"),
    ("role:user AND nothing", "nothing"),
    ("docker -networking", "docker alone"),
    ("1000", "1,000 rows"),
    ("cafe", "café"),
]
MISSES = [
    ("car*", "carpenter"[:2]),
    ("carpet*", "a car"),
    ("C++", "plain C code"),
    ("title:alone", "alone"),
    ("role:assistant", "nothing"),
    ('"actions github"', "GitHub Actions failed"),
    ("docker AND vault", "docker"),
    ("docker -networking", "docker networking"),
    ("大别 -山项", "大别山项目"),
    ("大别山项目 AND 数据", "大别山项目"),
    ("大山 AND 项目", "大别山项目"),
    ("3.14 AND pi", "314 pi"),
    ("the vault", "the end"),
]


@pytest.mark.parametrize(("query", "text"), MATCHES)
def test_finds(query: str, text: str) -> None:
    assert found(query, text)


@pytest.mark.parametrize(("query", "text"), MISSES)
def test_does_not_find(query: str, text: str) -> None:
    assert not found(query, text)


def test_stop_words_count_only_alone_or_in_capitals() -> None:
    def looked_for(text: str) -> set[str]:
        return {leaf.term for _, leaf in leaves(pattern(parse(text))) if isinstance(leaf, Exact)}

    assert looked_for("what is the capital of France") == {"capit", "franc"}
    assert looked_for("who is it") == {"who", "is", "it"}
    assert looked_for("ask IT about the WHO") == {"ask", "it", "who"}
    assert looked_for("ASK IT") == {"ask"}
    assert looked_for("会议在什么地方呢") == {"会议", "议在", "在什", "么地", "地方"}


def test_nothing_matches_nothing() -> None:
    assert pattern(NOTHING) == Some()
    assert not matches(pattern(NOTHING), lambda leaf, _: 1, {})


def test_a_question_has_no_operators() -> None:
    assert words('NOT "a" (b) OR') == Any((Word("NOT"), Word('"a"'), Word("(b)"), Word("OR")))
