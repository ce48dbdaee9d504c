"""The recipe of recall: context, pieces, and what records share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.memory.ranking import (
    ANSWER_SHARE,
    CONTEXT_RECORDS,
    INCOMING,
    PIECE,
    SESSION_BEST,
    SESSION_SHARE,
    SHARES,
    SHORT,
    Place,
    context,
    decay,
    diverse,
    embedded,
    overlap,
    pieces,
    shares,
    spread,
)

TEXTS = st.text(st.sampled_from("ab .。\n!?字\ud800"), max_size=300)


@given(TEXTS, st.integers(2, 50))
def test_pieces_are_the_text(text: str, size: int) -> None:
    cut = pieces(text, size)
    assert "".join(text[start:end] for start, end in cut) == text
    assert all(end - start <= size for start, end in cut)
    assert all(end - start >= size // 2 for start, end in cut[:-1])


def test_pieces_end_where_the_text_does() -> None:
    assert pieces("") == [(0, 0)]
    assert pieces("a" * PIECE) == [(0, PIECE)]
    paragraphs = "word " * 80 + "\n\n" + "word " * 80
    assert [paragraphs[start:end].strip() for start, end in pieces(paragraphs)] == [("word " * 80).strip()] * 2
    sentences = "句子。" * 300
    assert all(sentences[:end].endswith("。") for _, end in pieces(sentences))
    assert [end for _, end in pieces("x" * (2 * PIECE + 1))] == [PIECE, 2 * PIECE, 2 * PIECE + 1]


def test_context_is_the_last_records_and_what_is_known() -> None:
    said = [f"turn {n}" for n in range(5)]
    assert context(said, ["8 May", "", "Rome"]) == "\n".join(["8 May", "Rome", *said[-CONTEXT_RECORDS:]])
    assert context([], []) == ""


def line(id: int) -> list[tuple[int, int]]:
    return [(id + d, d) for d in (-3, -2, -1, 1, 2, 3) if 0 <= id + d < 10]


NEAR = {id: line(id) for id in range(10)}


def test_neighbours_and_session_share_in_a_score() -> None:
    found = shares({5: 1.0}, NEAR, lambda _: Place("s", 10))
    level = SESSION_SHARE / SESSION_BEST
    assert found == {
        5: (0.0, level),
        4: (SHARES[1], level),
        6: (SHARES[1], level),
        3: (SHARES[2], level),
        7: (SHARES[2], level),
        2: (0.0, level),
        8: (0.0, level),
    }
    assert shares({5: 1.0}, {}, lambda _: Place("", 10)) == {5: (0.0, 0.0)}


def test_what_follows_a_question_gets_more_of_its_score() -> None:
    found = shares({5: 1.0}, NEAR, lambda id: Place.of("where?" if id == 5 else "there"))
    assert found[6].neighbours == ANSWER_SHARE > found[4].neighbours
    assert not Place.of("so long? " * SHORT).asks


def test_a_long_record_stands_by_itself() -> None:
    found = shares({5: 1.0}, NEAR, lambda id: Place("", SHORT * (4 if id == 6 else 1)))
    assert found[6].neighbours == pytest.approx(SHARES[1] / 4)
    assert found[4].neighbours == SHARES[1]


def test_a_session_that_speaks_of_it_beats_one_that_mentions_it() -> None:
    scores = {0: 1.0, 1: 1.0, 2: 1.0, 9: 1.0}
    found = shares(scores, {}, lambda id: Place("other" if id == 9 else "session", 10))
    assert found[0].session == found[1].session == found[2].session > found[9].session


def test_only_the_best_bring_in_their_neighbours() -> None:
    scores = {10 * n: float(INCOMING + 1 - n) for n in range(INCOMING + 1)}
    near = {id: [(id + 1, 1)] for id in scores}
    found = shares(scores, near, lambda _: Place("", 10))
    assert set(found) == {*scores, *(id + 1 for id in scores if id < 10 * INCOMING)}


@given(st.dictionaries(st.integers(0, 9), st.floats(0.1, 10)))
def test_shares_do_not_depend_on_the_order(scores: dict[int, float]) -> None:
    def place(id: int) -> Place:
        return Place(str(id // 5), 10)

    found = shares(scores, NEAR, place)
    again = shares(dict(reversed(scores.items())), NEAR, place)
    assert found.keys() == again.keys() >= scores.keys()
    assert all(found[id] == pytest.approx(again[id]) for id in found)
    assert all(part >= 0 for share in found.values() for part in share)


def test_scores_between_nothing_and_one() -> None:
    assert spread({"a": 3.0, "b": 1.0, "c": 2.0}) == {"a": 1.0, "b": 0.0, "c": 0.5}
    assert spread({"a": 3.0, "b": 3.0}) == {"a": 1.0, "b": 1.0}
    assert spread({}) == {}


def test_a_half_life_halves() -> None:
    assert decay(0, 30) == 1
    assert decay(30, 30) == pytest.approx(0.5)
    assert decay(60, 30) == pytest.approx(0.25)
    assert decay(-5, 30) == decay(10, 0) == 1


def test_the_next_one_is_unlike_those_before_it() -> None:
    held = {"a": {"red", "tea"}, "b": {"red", "tea", "hot"}, "c": {"blue", "sea"}}
    scores = {"a": 1.0, "b": 0.9, "c": 0.5}

    def alike(one: str, other: str) -> float:
        return overlap(held[one], held[other])

    assert diverse(scores, alike, 1.0, 3) == ["a", "b", "c"]
    assert diverse(scores, alike, 0.3, 3) == ["a", "c", "b"]
    assert diverse(scores, alike, 0.3, 1) == ["a"]
    assert overlap(set(), set()) == overlap({"a"}, set()) == 0


def test_a_short_text_is_embedded_with_what_was_said_before_it() -> None:
    assert embedded("Forty dollars", ["How much?", "And when?"]) == "And when?\nForty dollars"
    assert embedded("x" * (SHORT + 1), ["How much?"]) == "x" * (SHORT + 1)
    assert embedded("Forty dollars") == "Forty dollars"
