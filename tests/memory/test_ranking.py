"""The recipe of recall: context, pieces, and what records share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.memory.ranking import (
    CONTEXT_RECORDS,
    PIECE,
    SESSION_BEST,
    SESSION_SHARE,
    SHARES,
    best,
    context,
    pieces,
    shared,
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


def test_the_best_piece_counts() -> None:
    assert best({("a", 0): 1.0, ("a", 1): 3.0, ("b", 0): 2.0}) == {"a": 3.0, "b": 2.0}


def line(id: int) -> list[tuple[int, int]]:
    return [(id + d, abs(d)) for d in (-3, -2, -1, 1, 2, 3) if 0 <= id + d < 10]


def test_neighbours_and_session_share_in_a_score() -> None:
    found = shared({5: 1.0}, line, lambda _: "s")
    level = SESSION_SHARE / SESSION_BEST
    assert found == pytest.approx(
        {5: 1 + level, 4: SHARES[1] + level, 6: SHARES[1] + level, 3: SHARES[2] + level, 7: SHARES[2] + level}
    )
    assert shared({5: 1.0}, lambda _: [], lambda _: None) == {5: 1.0}


def test_a_session_that_speaks_of_it_beats_one_that_mentions_it() -> None:
    scores = {0: 1.0, 1: 1.0, 2: 1.0, 9: 1.0}
    found = shared(scores, lambda _: [], lambda id: "other" if id == 9 else "session")
    assert found[0] == found[1] == found[2] > found[9]


@given(st.dictionaries(st.integers(0, 9), st.floats(0.1, 10)))
def test_a_record_found_never_loses(scores: dict[int, float]) -> None:
    found = shared(scores, line, lambda id: id // 5)
    assert all(found[id] >= score for id, score in scores.items())
    assert found == pytest.approx(shared(dict(reversed(scores.items())), line, lambda id: id // 5))
