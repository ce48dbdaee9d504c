"""How much leaves a queue that is too long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.policies.queue import flushed, overflowing

ROLES = st.sampled_from(["user", "assistant", "tool"])
QUEUES = st.lists(st.tuples(st.integers(0, 50), ROLES), max_size=12)


@given(QUEUES, st.integers(0, 5))
def test_a_flush_spares_the_last_ones_and_takes_no_more_than_the_share_needs(
    queue: list[tuple[int, str]], kept: int
) -> None:
    tokens, roles = [n for n, _ in queue], [role for _, role in queue]
    gone = flushed(tokens, roles, kept=kept)
    assert 0 <= gone <= max(len(queue) - kept, 0)
    assert gone < 2 or sum(tokens[: gone - 2]) <= 0.75 * sum(tokens)


@given(QUEUES, st.integers(1, 100), st.integers(0, 60))
def test_what_overflows_is_whole_turns_at_the_beginning_and_once(
    queue: list[tuple[int, str]], limit: int, size: int
) -> None:
    tokens, roles = [n for n, _ in queue], [role for _, role in queue]
    first = overflowing(tokens, roles, limit, size)
    rest = list(zip(tokens[first:], roles[first:], strict=True))
    assert bool(rest) == bool(queue)
    assert overflowing(tokens[first:], roles[first:], limit, size) == 0
    if sum(tokens) <= limit:
        assert first == 0
    if first and "user" in roles[first:]:
        assert rest[0][1] == "user"
    if size and sum(n for n, _ in rest) > limit:
        assert "user" not in roles[first + 1 :], "only the last turn may be too long"


def test_larger_steps_come_more_seldom() -> None:
    def moves(size: int) -> int:
        tokens: list[int] = []
        seen = 0
        for _ in range(100):
            tokens += [5, 5]
            gone = overflowing(tokens, ["user", "assistant"] * (len(tokens) // 2), 100, size)
            tokens, seen = tokens[gone:], seen + (gone > 0)
        return seen

    assert moves(50) * 3 < moves(1)
