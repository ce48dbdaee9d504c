"""Sets of entry ids held as runs answer as plain sets do, whatever the runs span."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.messages import assistant, user
from clew.sessions import Session
from clew.sessions.edits import Drop, Insert, Replace, pack, unpack
from clew.sessions.entries import Compaction, Draft
from clew.sessions.spans import Index, Spans

IDS = st.sets(st.integers(1, 40))
GROUPS = st.lists(IDS, max_size=6)

ALL = ((2, 10**15),)
"""A run no one could write out."""


@given(GROUPS, IDS)
def test_a_set_of_runs_is_a_set(groups: list[set[int]], asked: set[int]) -> None:
    spans, plain = Spans(), set[int]()
    for group in groups:
        spans.add(pack(group))
        plain |= group
    assert list(unpack(spans.ids)) == sorted(plain)
    assert spans.ids == pack(plain) == Spans(plain).ids
    assert spans.covers(pack(asked)) == (asked <= plain)
    assert spans.within(sorted(asked)) == sorted(asked & plain)
    assert spans.without(pack(asked)) == pack(plain - asked)


@given(GROUPS, IDS)
def test_an_index_finds_the_groups_that_share_an_id(groups: list[set[int]], asked: set[int]) -> None:
    assert Index(map(pack, groups)).sharing(pack(asked)) == [n for n, group in enumerate(groups) if group & asked]


def test_runs_longer_than_any_log_cost_nothing() -> None:
    """A stored compaction may name any ids: it must not take the time of writing them out."""
    with Session.open("memory://") as session:
        for n in range(3):
            session.append_many([user(f"u{n}"), assistant(f"a{n}")])
        edits = (Replace(ALL, user("all of it"), sources=ALL), Insert(None, user("again"), sources=ALL), Drop(ALL))
        (kept,) = session.append_many([Draft(Compaction(edits[:1]))])
        assert [m.text for m in session.messages()] == ["u0", "all of it"]
        assert [e.id for e in session.expand(kept)] == [2, 3, 4, 5, 6]
        session.append_many([Draft(Compaction(edits[1:]))])
        assert [m.text for m in session.messages()] == ["u0"]
