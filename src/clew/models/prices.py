"""What calls cost: list prices of well-known models.

Taken on 2026-11-30 from the price file that the package litellm 1.110.2 carries
(`model_prices_and_context_window_backup.json`). List prices of the providers' own service; surcharges
for long prompts, regions or speed, and discounts for batches, are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from clew.errors import UnknownName
from clew.messages import Usage


class Price(Struct, frozen=True):
    """US dollars per million tokens.

    Without a price for reading or writing the prompt cache, such tokens cost as much as `input`.
    """

    name: str
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


_TABLE = (
    Price("claude-haiku-5-5", 0.1, 0.5, 0.01, 0.125),
    Price("claude-haiku-4-5", 1.0, 5.0, 0.1, 1.25),
    Price("claude-sonnet-4", 3.0, 15.0, 0.3, 3.75),
    Price("claude-sonnet-4-5", 3.0, 15.0, 0.3, 3.75),
    Price("claude-sonnet-4-6", 3.0, 15.0, 0.3, 3.75),
    Price("claude-opus-4", 15.0, 75.0, 1.5, 18.75),
    Price("claude-opus-4-1", 15.0, 75.0, 1.5, 18.75),
    Price("claude-opus-4-5", 5.0, 25.0, 0.5, 6.25),
    Price("claude-opus-4-6", 5.0, 25.0, 0.5, 6.25),
    Price("claude-opus-4-7", 5.0, 25.0, 0.5, 6.25),
    Price("claude-opus-4-8", 5.0, 25.0, 0.5, 6.25),
    Price("claude-3-5-haiku", 0.8, 4.0, 0.08, 1.0),
    Price("claude-3-5-sonnet", 3.0, 15.0, 0.3, 3.75),
    Price("claude-3-7-sonnet", 3.0, 15.0, 0.3, 3.75),
    Price("gpt-4o", 2.5, 10.0, 1.25),
    Price("gpt-4o-mini", 0.15, 0.6, 0.075),
    Price("gpt-4.1", 2.0, 8.0, 0.5),
    Price("gpt-4.1-mini", 0.4, 1.6, 0.1),
    Price("gpt-4.1-nano", 0.1, 0.4, 0.025),
    Price("gpt-5", 1.25, 10.0, 0.125),
    Price("gpt-5-mini", 0.25, 2.0, 0.025),
    Price("gpt-5-nano", 0.05, 0.4, 0.005),
    Price("gpt-5-pro", 15.0, 120.0),
    Price("gpt-5.1", 1.25, 10.0, 0.125),
    Price("gpt-5.1-codex-mini", 0.25, 2.0, 0.025),
    Price("gpt-5.2", 1.75, 14.0, 0.175),
    Price("gpt-5.2-pro", 21.0, 168.0),
    Price("gpt-5.3", 1.75, 14.0, 0.175),
    Price("gpt-5.4", 2.5, 15.0, 0.25),
    Price("gpt-5.4-mini", 0.75, 4.5, 0.075),
    Price("gpt-5.4-nano", 0.2, 1.25, 0.02),
    Price("gpt-5.4-pro", 30.0, 180.0),
    Price("gpt-5.5", 5.0, 30.0, 0.5),
    Price("gpt-5.5-pro", 30.0, 180.0),
    Price("gpt-5.6", 4.0, 20.0, 0.4, 5.0),
    Price("gpt-5.6-terra", 2.0, 12.0, 0.2, 2.5),
    Price("gpt-5.6-luna", 0.2, 1.2, 0.02, 0.25),
    Price("o3", 2.0, 8.0, 0.5),
    Price("o3-mini", 1.1, 4.4, 0.55),
    Price("o3-pro", 20.0, 80.0),
    Price("o4-mini", 1.1, 4.4, 0.275),
    Price("gemini-2.5-pro", 1.25, 10.0, 0.125),
    Price("gemini-2.5-flash", 0.3, 2.5, 0.03),
    Price("gemini-2.5-flash-lite", 0.1, 0.4, 0.01),
    Price("gemini-3-flash", 0.5, 3.0, 0.05),
    Price("gemini-3.1-pro", 2.0, 12.0, 0.2),
    Price("gemini-3.1-flash-lite", 0.25, 1.5, 0.025),
    Price("gemini-3.5-flash", 1.5, 9.0, 0.15),
    Price("gemini-3.5-flash-lite", 0.3, 2.5, 0.03),
    Price("gemini-3.8-flash", 0.75, 3.75, 0.075),
    Price("deepseek-chat", 0.28, 0.42, 0.028),
    Price("deepseek-reasoner", 0.28, 0.42, 0.028),
    Price("deepseek-v4-flash", 0.3, 1.2, 0.006),
    Price("deepseek-v4-pro", 1.32, 3.96, 0.044),
    Price("mistral-large", 0.5, 1.5, 0.05),
    Price("mistral-large-4", 0.7, 2.1, 0.07),
    Price("devstral-small", 0.1, 0.3, 0.01),
    Price("devstral-medium", 0.4, 2.0, 0.04),
    Price("kimi-k2.5", 0.6, 3.0, 0.1),
    Price("kimi-k2.6", 0.95, 4.0, 0.16),
    Price("kimi-k3", 3.0, 15.0, 0.3, 3.0),
    Price("kimi-k3.1-pro", 2.0, 10.0, 0.2, 2.0),
    Price("glm-4.6", 0.6, 2.2, 0.11),
    Price("glm-4.7", 0.6, 2.2, 0.11),
    Price("grok-4.5", 2.0, 6.0, 0.3),
    Price("grok-4.6", 2.0, 6.0, 0.5),
    Price("grok-4.7", 2.0, 6.0, 0.5),
    Price("grok-code-fast-1", 1.0, 2.0, 0.2),
    Price("extractive", 0.0, 0.0, 0.0, 0.0),  # Clew's own summariser
)

PRICES: Mapping[str, Price] = {p.name: p for p in _TABLE}
"""Prices by model name, without a provider's prefix or a version's date."""


def price(model: str) -> Price:
    """The price of a model, by the longest known name that its own name begins with.

    Dates and variants follow after `-`, `:` or `@` ("gpt-5-2025-08-07"), providers stand before the
    last `/` ("anthropic/claude-sonnet-4-5"). Raises `UnknownName` with the list of known names.
    """
    name = model.rpartition("/")[2].lower()
    known = [p for p in PRICES if name == p or (name.startswith(p) and name[len(p)] in "-:@")]
    if not known:
        raise UnknownName(f"no price is known for the model {model!r}; there are prices for: {', '.join(PRICES)}")
    return PRICES[max(known, key=len)]


def cost(usage: Usage, price: Price) -> float:
    """US dollars for so many tokens (reasoning is part of the output)."""
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    dollars = (
        usage.input * price.input + usage.output * price.output + usage.cache_read * read + usage.cache_write * write
    )
    return dollars / 1_000_000
