"""The default counter: how near it comes, how it behaves at the edges."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.tokens import Exact, Heuristic
from clew.tokens.heuristic import estimate

TEXTS = Path(__file__).parent / "texts"
"""Texts written for these tests; the weights were fitted without them."""

anything = st.text(st.characters(exclude_categories=()), max_size=400)


def passages(language: str) -> list[str]:
    return (TEXTS / f"{language}.txt").read_text(encoding="utf-8").strip().split("\n\n")


def mean_error(language: str, exact: Exact) -> float:
    errors = [abs(estimate(p) / exact.text(p) - 1) for p in passages(language)]
    return sum(errors) / len(errors)


@pytest.mark.parametrize("language", ["english", "chinese", "japanese", "korean", "code", "json"])
def test_mean_error_is_within_ten_percent(language: str) -> None:
    assert mean_error(language, Exact("o200k_base")) <= 0.10


@pytest.mark.parametrize("language", ["english", "code", "json"])
def test_ascii_text_is_as_near_to_the_older_vocabulary(language: str) -> None:
    assert mean_error(language, Exact("cl100k_base")) <= 0.10


@pytest.mark.parametrize("language", ["chinese", "japanese", "korean"])
def test_the_older_vocabulary_needs_more_for_east_asian_text(language: str) -> None:
    exact = Exact("cl100k_base")
    for passage in passages(language):
        assert 1.1 < exact.text(passage) / estimate(passage) < 2.0


@given(anything)
def test_any_text_counts_and_only_the_empty_one_is_free(text: str) -> None:
    assert (estimate(text) > 0) == (text != "")


@given(anything, anything)
def test_adding_text_hardly_lowers_the_count(text: str, more: str) -> None:
    assert estimate(text + more) >= estimate(text) - 3


@given(anything, st.text(st.characters(exclude_categories=()), max_size=400))
def test_the_whole_is_about_the_sum_of_its_parts(one: str, two: str) -> None:
    assert abs(estimate(one + two) - estimate(one) - estimate(two)) <= 6


def test_lone_surrogates_count() -> None:
    assert estimate("\ud800") == 1
    assert estimate("text \udfff and more") > estimate("text  and more")


def test_ten_megabytes_count() -> None:
    once, much = "The log keeps everything. 日志什么都不丢。\n", 200_000
    assert len((once * much).encode()) > 10_000_000
    assert estimate(once * much) == pytest.approx(estimate(once) * much, rel=0.1)


def test_drawn_lines_are_cheap_as_they_are_for_tokenizers() -> None:
    line = "-" * 80
    assert estimate(line) <= 6
    assert Exact("o200k_base").text(line) == 1


def test_a_counter_is_a_value() -> None:
    assert Heuristic() == Heuristic()
    assert len({Heuristic(), Heuristic()}) == 1
