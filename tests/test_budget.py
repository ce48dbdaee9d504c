"""Budgets: what is asked for, what comes of it, and what cannot work."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.budget import Budget
from clew.errors import BadBudget


def test_defaults_leave_room_for_the_reply() -> None:
    assert Budget.of(8_000) == Budget(8_000, output=800, trigger=6_120, target=3_060)
    assert Budget.of(1_000_000) == Budget(1_000_000, output=16_384, trigger=836_073, target=418_036)
    assert Budget.of(8_000).input == 7_200


def test_fractions_are_of_the_prompt_space_and_larger_numbers_are_tokens() -> None:
    assert Budget.of(10_000, output=2_000, trigger=0.5, target=0.25) == Budget(10_000, 2_000, 4_000, 2_000)
    assert Budget.of(10_000, output=2_000, trigger=5_000, target=300) == Budget(10_000, 2_000, 5_000, 300)
    assert Budget.of(10_000, output=0, trigger=1).trigger == 10_000


@pytest.mark.parametrize(
    ("window", "settings", "says"),
    [
        ("500k", {}, "not '500k'; write 500_000"),
        ("many", {}, "number of tokens, not 'many'"),
        (None, {}, "number of tokens, not None"),
        (True, {}, "number of tokens, not True"),
        (nan, {}, "not nan"),
        (inf, {}, "not inf"),
        (200, {}, "200 tokens cannot hold a conversation"),
        (0.5, {}, "whole number, not 0.5"),
        (-8_000, {}, "-8,000 tokens"),
        (8_000, {"output": 0.1}, "whole number, not 0.1; fractions are for trigger and target"),
        (8_000, {"output": 9_000}, "9,000 leaves -1,000 of a window of 8,000"),
        (8_000, {"output": -1}, "-1 leaves 8,001"),
        (8_000, {"trigger": 200_000}, "200,000 tokens, but a window of 8,000 less 800 for the reply leaves 7,200"),
        (8_000, {"trigger": 0}, "comes to 0 tokens"),
        (8_000, {"trigger": -0.5}, "comes to 0 tokens"),
        (8_000, {"trigger": nan}, "not nan"),
        (8_000, {"target": 7_000}, "target 7,000 is above trigger 6,120"),
        (8_000, {"media_bytes": -1}, "number of bytes, 0 for no media at all, not -1"),
        (8_000, {"media_bytes": "20MB"}, "number of bytes, not '20MB'"),
    ],
)
def test_what_cannot_work_is_refused_with_the_effective_values(window: Any, settings: Any, says: str) -> None:
    with pytest.raises(BadBudget) as refused:
        Budget.of(window, **settings)
    assert says in str(refused.value)


NUMBERS = st.none() | st.integers(-10, 10**7) | st.floats()


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
@example(1.4757395258967648e20, None, 1.0, None)
def test_a_budget_is_refused_or_in_order(window: Any, output: Any, trigger: Any, target: Any) -> None:
    try:
        budget = Budget.of(window, output=output, trigger=trigger, target=target)
    except BadBudget:
        return
    assert 0 < budget.target <= budget.trigger <= budget.input <= budget.window
    assert all(type(n) is int for n in (budget.window, budget.output, budget.trigger, budget.target))
