"""Counters by name."""

from __future__ import annotations

import pytest

from clew.errors import UnknownName
from clew.messages import assistant, tool, user
from clew.tokens import COUNTERS, Exact, Heuristic, counter
from clew.tokens.upstream import Pi


def test_names_and_stored_names_lead_to_the_counter() -> None:
    assert counter("heuristic") == Heuristic()
    assert counter("o200k") == Exact("o200k_base")
    assert counter("pi-1.6") == Pi("1.6")
    for name, found in COUNTERS.items():
        assert counter(name) == found
        assert counter(found.name) == found


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match=r"'gpt9'.*cl100k, codex, gemini, .*heuristic"):
        counter("gpt9")


def test_names_are_told_apart_and_counters_are_values() -> None:
    assert len({c.name for c in COUNTERS.values()}) == len(COUNTERS)
    assert len(set(COUNTERS.values())) == len(COUNTERS)


@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter_counts_strange_messages(name: str) -> None:
    found = counter(name)
    for text in ("", "plain", "日本語と한국어", "\ud800", "😀" * 10, "x" * 100_001):
        for message in (user(text), assistant(text), tool("c1", text)):
            assert found.message(message) >= 0
        assert found.text(text) >= 0
    assert found.tools(({"name": "find"},)) >= 0
