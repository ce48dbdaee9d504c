"""Learning from reported usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import Message, Usage, assistant, user
from clew.sessions.entries import Entry, Said
from clew.sessions.view import project
from clew.tokens import Calibrated, Heuristic, Rule
from clew.tokens.protocol import learns
from clew.tokens.upstream import Gemini

# Gemini CLI 0.61.0: overhead, (reported, counted) pairs, and the weight after each.
GEMINI = [
    (0, [(700, 1000)] * 4, [0.9400000000000001, 0.8920000000000001, 0.8536000000000001, 0.8228800000000002]),
    (
        0,
        [(100_000, 1000)] * 8,
        [
            1.15,
            1.2999999999999998,
            1.4499999999999997,
            1.5999999999999996,
            1.7499999999999996,
            1.8999999999999995,
            2,
            2,
        ],
    ),
    (500, [(1500, 1000), (1400, 1000), (300, 1000)], [1.0, 0.9800000000000001, 0.8820000000000001]),
    (0, [(1000, 0), (1000, -5), (1000, 1000)], [1.0, 1.0, 1.0]),
]


@pytest.mark.parametrize(("overhead", "events", "weights"), GEMINI)
def test_gemini_setting(overhead: int, events: list[tuple[int, int]], weights: list[float]) -> None:
    counter = Calibrated.gemini(Gemini(3), overhead=overhead)
    seen = []
    for reported, counted in events:
        counter = counter.learned(counted, reported)
        seen.append(counter.factor)
    assert seen == weights


def test_it_counts_as_its_base_does_and_under_its_name() -> None:
    counter = Calibrated(Heuristic()).learned(1_000, 1_500)
    message = user("How many tokens?", "多少个？")
    assert counter.factor > 1
    assert counter.message(message) == Heuristic().message(message)
    assert counter.name == Heuristic().name
    assert learns(counter)
    assert hash(counter) == hash(Calibrated(Heuristic()).learned(1_000, 1_500))


@given(st.integers(1_000, 100_000), st.floats(0.6, 2.8))
def test_it_approaches_the_true_ratio(predicted: int, ratio: float) -> None:
    counter = Calibrated(Heuristic())
    for _ in range(30):
        counter = counter.learned(predicted, round(predicted * ratio))
    assert counter.factor == pytest.approx(ratio, rel=0.02)


@given(st.lists(st.tuples(st.integers(-10, 10**7), st.integers(-10, 10**9)), max_size=30))
def test_the_factor_stays_within_its_bounds(reports: list[tuple[int, int]]) -> None:
    for rule in (Rule(), Rule(rate=1.0, low=0.9, high=1.1), Calibrated.gemini(Heuristic()).rule):
        counter = Calibrated(Heuristic(), rule)
        for predicted, actual in reports:
            counter = counter.learned(predicted, actual)
            assert rule.low <= counter.factor <= rule.high


@pytest.mark.parametrize(("predicted", "actual"), [(1_000, 0), (0, 1_000), (-3, 5), (1_000, 20_000), (1_000, 50)])
def test_absurd_reports_teach_nothing(predicted: int, actual: int) -> None:
    counter = Calibrated(Heuristic())
    assert counter.learned(predicted, actual) is counter


def test_a_view_learns_as_it_reads() -> None:
    def entry(i: int, message: Message) -> Entry:
        return Entry(i, i - 1 or None, Said(message))

    question = user("word " * 400)
    counted = Heuristic().message(question)
    answer = assistant("Yes.", usage=Usage(input=counted * 2, output=2))
    view = project([entry(1, question), entry(2, answer)], Calibrated(Heuristic())).view
    assert view.scale == 1.25
    assert view.tokens > view.count
