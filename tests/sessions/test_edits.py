"""How edits write down the entries they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.sessions.edits import Ids, pack, unpack

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
