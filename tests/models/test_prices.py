"""What calls cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UnknownName
from clew.messages import Usage
from clew.models.prices import PRICES, Price, cost, price

counts = st.integers(0, 10**7)
usages = st.builds(Usage, counts, counts, counts, counts)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("anthropic/claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("openrouter/openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("GPT-4o", "gpt-4o"),
        ("o3-2025-04-16", "o3"),
        ("kimi-k2.5:free", "kimi-k2.5"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"),
    ],
)
def test_the_longest_known_beginning_counts(model: str, known: str) -> None:
    assert price(model) is PRICES[known]


@pytest.mark.parametrize("model", ["", "gpt", "gpt-4", "gpt-5000", "gpt-4o2", "o30", "my-gpt-5", "llama-3"])
def test_an_unknown_model_lists_the_known_ones(model: str) -> None:
    with pytest.raises(UnknownName, match=r"claude-sonnet-4-5.*gpt-5-mini"):
        price(model)


def test_names_and_prices_are_sound() -> None:
    for name, p in PRICES.items():
        assert p.name == name == name.lower()
        assert 0 <= (p.cache_read or 0) <= p.input <= p.output


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(input=1_000_000, output=2_000_000, cache_read=10_000_000, cache_write=400_000, reasoning=500_000)
    assert cost(usage, price("claude-sonnet-4-5")) == pytest.approx(3.0 + 30.0 + 3.0 + 1.5)


def test_without_a_cache_price_cached_tokens_cost_as_input() -> None:
    assert cost(Usage(cache_read=500_000, cache_write=500_000), Price("m", 2.0, 8.0)) == pytest.approx(2.0)
    assert cost(Usage(cache_read=1_000_000), Price("m", 2.0, 8.0, cache_read=0.0)) == 0


@given(usages, usages, st.sampled_from(sorted(PRICES)))
def test_costs_add_up(one: Usage, two: Usage, name: str) -> None:
    p = price(name)
    assert cost(one + two, p) == pytest.approx(cost(one, p) + cost(two, p))
