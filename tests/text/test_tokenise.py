"""The tokeniser: what a text becomes, in every script, and that it does so in linear time."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.text import fingerprint, spans, terms
from clew.text.tokenise import CACHED_LENGTH

# A text, its stream, its extra terms.
READ = [
    ("Runners were running", "runner were run", ""),
    ("She bought the children mice", "she buy the child mous", ""),
    ("The CAFÉ's naïve Straße", "the cafe naiv strass", ""),
    ("it's don't Caroline’s users'", "it dont carolin user", ""),
    ("ﬁle Ｆｕｌｌ ①", "file full 1", ""),
    ("user_id", "user id", "userid"),
    ("chat-send", "chat send", "chatsend"),
    ("getUserName HTTPServer", "getusernam httpserver", "get user name http server"),
    ("iPhone GitHub", "iphon github", "phone git hub"),
    ("Python3 iPhone15 md5 v2 x86", "python3 iphone15 md5 v2 x86", "python iphon phone15 md"),
    ("src/main.py", "src main py", "mainpi"),
    ("alice@example.com", "alic exampl com", "examplecom"),
    ("error:timeout", "error timeout", ""),
    ("__init__ snake__case", "init snake case", "snakecas"),
    ("v2.1.3-beta 3.14 2024-05-08", "v2 1 3 beta 3 14 2024 05 08", "v2.1.3-beta 3.14 2024-05-08"),
    ("1,000,000 in 2,50", "1000000 in 2 50", ""),
    ("C++ and C# but not c+", "c and c but not c", "c++ c#"),
    ("done.Next", "done next", "donenext"),
    ("#123 50% $5", "123 50 5", ""),
    ("大别山", "大别 别山 山", ""),
    ("猫", "猫", ""),
    ("用FastAPI写的", "用 fastapi 写的 的", "fast api"),
    ("接続プール", "接続 続プ プー ール ル", ""),
    ("서울에서 커피", "서울 울에 에서 서 커피 피", ""),
    ("ﾃﾞｰﾀ", "デー ータ タ", ""),
    ("ไทย", "ไท ทย ย", ""),
    ("हिन्दी में", "हिन्दी में", ""),
    ("Здравствуйте, Ελλάδα", "здравствуйте ελλαδα", ""),
    ("👍🏽 ok → 🎉", "👍 ok → 🎉", ""),
    ("", "", ""),
    ("。、! ... () ¿", "", ""),
    ("\ud800lone\udfff 文\ud800", "lone 文", ""),
]


@pytest.mark.parametrize(("text", "stream", "extra"), READ)
def test_reads(text: str, stream: str, extra: str) -> None:
    assert terms(text) == (stream.split(), extra.split())


def test_all_spellings_of_a_name_meet() -> None:
    names = ["user_id", "user-id", "user.id", "userId", "UserID", "userid", "USER_ID"]
    assert all("userid" in (*found.stream, *found.extra) for found in map(terms, names))


def test_numbers_with_a_point_are_not_numbers_without() -> None:
    assert "314" not in terms("3.14").extra


def test_a_composed_letter_and_a_decomposed_one_are_the_same() -> None:
    for text in ("café Ångström", "がぎぐ", "한국어", "Чаёк"):
        assert terms(unicodedata.normalize("NFD", text)) == terms(text)


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        ("hel\u00adlo wo\u200brld", "hello world"),
        ("葛\U000e0100城 逢\ufe00 数\u200b据", "葛城 逢 数据"),
        ("می\u200cخواهم", "میخواهم"),
        ("İstanbul Łódź Ærø đường", "istanbul lodz aero duong"),
        ("ёлка Москва\u0301", "елка москва"),
        ("Αθήνα ὁ λόγος", "αθηνα ο λογος"),
        ("مُحَمَّد إلى مدرسة", "محمد الي مدرسه"),
        ("אָלֶף", "אלף"),
    ],
)
def test_what_people_leave_out_when_they_search_does_not_count(written: str, searched: str) -> None:
    assert terms(written) == terms(searched)


def test_a_selector_of_a_variant_does_not_move_the_places() -> None:
    assert [(s.term, s.start, s.end) for s in spans("a葛\U000e0100城市")] == [
        ("a", 0, 1), ("葛城", 1, 4), ("城市", 3, 5), ("市", 4, 5)]  # fmt: skip


def test_every_mark_belongs_to_the_letter_before_it() -> None:
    """`MARKS` lists what Python's `\\w` leaves out, but for scripts that are no longer written
    and for the selectors of variants of a character."""
    unknown = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
        and code < 0x10000
        and len(terms(f"a{chr(code)}b").stream) > 1
        and not _dense(chr(code))
    ]
    assert unknown == []


def _dense(character: str) -> bool:
    return len(terms(character * 2).stream) == 2


@given(st.text())
def test_anything_gives_terms_that_can_be_stored(text: str) -> None:
    found = terms(text)
    for term in (*found.stream, *found.extra):
        assert term
        assert len(term) <= 64 + 1
        assert not any(c.isspace() for c in term)
        term.encode()


@given(st.text())
def test_spans_are_the_terms_with_their_places(text: str) -> None:
    found = list(spans(text))
    assert [s.term for s in found if s.kind == "word"] == terms(text).stream
    assert [s.term for s in found if s.kind != "word"] == terms(text).extra
    assert all(0 <= s.start < s.end <= len(text) for s in found)


@given(st.text(), st.text())
def test_a_space_separates(first: str, second: str) -> None:
    one, two = terms(first), terms(second)
    assert terms(f"{first} {second}") == (one.stream + two.stream, one.extra + two.extra)


@pytest.mark.parametrize(
    "part", ["a", "_", "a_", "a.", "-", "aB", "文", "a文", "'", "1,000", "\u0301", "C++", "👍", "\ud800"]
)
def test_huge_inputs_of_any_kind(part: str) -> None:
    """A quadratic rule would take minutes here."""
    text = part * (300_000 // len(part))
    found = terms(text)
    assert len(found.stream) <= len(text)


def test_a_word_is_remembered_as_it_is_read() -> None:
    long = "x" * (CACHED_LENGTH + 1)
    for word in ("userId", "Caroline's", long):
        assert terms(word) == terms(word)
    assert terms(long).stream == ["x" * 64]


def test_the_tokeniser_has_a_name() -> None:
    """The name goes into every index: when this value changes, users' indexes are made again."""
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 16
