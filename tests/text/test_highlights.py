"""Where a query's words stand in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.text import highlights, parse, words

MARKED = [
    ("docker", "Docker and docker-compose", "[Docker] and [docker]-compose"),
    ('"docker networking"', "Docker  networking, networking", "[Docker  networking], networking"),
    ("大别山", "我们的大别山项目", "我们的[大别山]项目"),
    ("猫", "一只猫和猫咪", "一只[猫]和[猫]咪"),
    ("api", "a FastAPI app", "a Fast[API] app"),
    ("user_id", "userId, user_id", "[userId], [user_id]"),
    ("dock*", "docks, Docker", "[docks], [Docker]"),
    ("a1 -b1", "a1 b1", "[a1] b1"),
    ("データ", "ﾃﾞｰﾀ 𠮷", "[ﾃﾞｰﾀ] 𠮷"),
    ("café", "Cafe\u0301s", "[Cafe\u0301s]"),
    ("running", "She runs.", "She [runs]."),
    ("1000", "1,000 rows", "[1,000] rows"),
    ("none", "of it", "of it"),
    ("", "of it", "of it"),
]


@pytest.mark.parametrize(("query", "text", "marked"), MARKED)
def test_marks(query: str, text: str, marked: str) -> None:
    for start, end in reversed(highlights(text, parse(query))):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    assert text == marked


@given(st.text(), st.text())
def test_stretches_are_in_order_and_apart(text: str, query: str) -> None:
    found = [0, *(place for stretch in highlights(text, words(query)) for place in stretch), len(text)]
    assert found == sorted(found)
    inner = found[1:-1]
    assert all(inner[i] < inner[i + 1] for i in range(len(inner) - 1))
