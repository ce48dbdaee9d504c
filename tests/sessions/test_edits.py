"""Edits: how they write down the entries they name, and what several of them do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import user
from clew.sessions.edits import Drop, Ids, Insert, Replace, pack, unpack
from clew.sessions.entries import Entry, Said
from clew.sessions.view import project
from clew.tokens import Heuristic

IDS = st.sets(st.integers(1, 60))


@pytest.mark.parametrize(
    ("ids", "packed"),
    [
        ([], ()),
        ([3], (3,)),
        ([3, 2], (2, 3)),
        ([4, 2, 3, 3], ((2, 4),)),
        ([1, 2, 3, 5, 6, 8, 9, 10, 11], ((1, 3), 5, 6, (8, 11))),
        ([(1, 3), 4, (10, 12)], ((1, 4), (10, 12))),
        ([(1, 10), (2, 3), 11, 20], ((1, 11), 20)),
    ],
)
def test_runs_of_three_or_more_are_folded(ids: list[int | tuple[int, int]], packed: Ids) -> None:
    assert pack(ids) == packed


@given(IDS, IDS)
def test_packed_ids_are_the_same_ids_ascending_and_may_be_packed_again(a: set[int], b: set[int]) -> None:
    assert list(unpack(pack(a))) == sorted(a)
    assert pack((*pack(a), *pack(b))) == pack(a | b)
    assert pack(pack(a)) == pack(a)


def test_many_edits_do_what_one_does() -> None:
    """In the same time, too: it grows with the view and the edits, not with one times the other."""
    entries = [Entry(i, i - 1 or None, Said(user(f"m{i}"), 1, Heuristic.name)) for i in range(1, 20_001)]
    view = project(entries, Heuristic()).view
    odd = range(1, 20_000, 2)
    assert view.edited([Drop((i,)) for i in odd]).messages == view.edited([Drop(pack(odd))]).messages


def test_an_edit_may_name_what_an_earlier_one_made() -> None:
    entries = [Entry(i, i - 1 or None, Said(user(f"m{i}"))) for i in range(1, 6)]
    view = project(entries, Heuristic()).view
    edits = [Replace(((1, 3),), user("one to three")), Insert(3, user("after three")), Drop((4,))]
    once = view.edited(edits)
    assert [m.text for m in once.messages] == ["one to three", "after three", "m5"]
    twice = view.edited([*edits, Replace(((1, 4),), user("less"))])
    assert [m.text for m in twice.messages] == ["less", "after three", "m5"]
    assert view.edited([*edits, Drop((1, 2))]).messages == once.messages, "an item goes as a whole or not at all"
