"""The chart: readable at 80 columns whatever the numbers are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.lab.chart import buckets, short, svg_chart, text_chart

values = st.lists(st.integers(0, 2_000_000), max_size=300)


@given(values, st.lists(st.integers(0, 320), max_size=20), st.integers(1, 2_000_000), st.integers(20, 120))
def test_lines_never_exceed_the_width(tokens: list[int], marks: list[int], trigger: int, width: int) -> None:
    lines = text_chart(tokens, marks, trigger=trigger, limit=trigger + 100, width=width)
    assert bool(lines) == bool(tokens)
    for line in lines[:-1]:
        assert len(line) <= width + 8
    if lines:
        assert sum("▲" in line for line in lines[:-1]) == any(m < len(tokens) for m in marks)


@given(values, st.integers(1, 200))
def test_squeezing_keeps_the_peak(tokens: list[int], width: int) -> None:
    squeezed = buckets(tokens, width)
    assert len(squeezed) == min(len(tokens), width)
    assert max(squeezed, default=0) == max(tokens, default=0)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (1_500, "1.5k"), (27_040, "27k"), (123_456, "123k"), (999_999, "1M")],
)
def test_short(tokens: int, text: str) -> None:
    assert short(tokens) == text


@given(st.integers(0, 99_000_000))
def test_short_is_short(tokens: int) -> None:
    assert len(short(tokens)) <= 5


@given(values, st.lists(st.integers(0, 300), max_size=10), st.text())
def test_svg_is_well_formed(tokens: list[int], marks: list[int], title: str) -> None:
    clean = "".join(c for c in title if c.isprintable())
    root = ElementTree.fromstring(svg_chart(tokens, marks, trigger=1_000, limit=1_200, title=clean))
    assert root.tag.endswith("svg")
