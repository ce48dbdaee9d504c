"""Times that a question names, seen from Wednesday, 13 March 2024."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.memory.when import times

NOW = datetime(2024, 3, 13, 15, tzinfo=UTC).timestamp()

SAID = {
    "yesterday": ("2024-03-12", "2024-03-13"),
    "the day before yesterday": ("2024-03-11", "2024-03-12"),
    "what did I do last night?": ("2024-03-12", "2024-03-13"),
    "last week": ("2024-03-04", "2024-03-11"),
    "this month": ("2024-03-01", "2024-04-01"),
    "last weekend": ("2024-03-09", "2024-03-11"),
    "last year": ("2023-01-01", "2024-01-01"),
    "last Monday": ("2024-03-11", "2024-03-12"),
    "on Friday": ("2024-03-08", "2024-03-09"),
    "last May": ("2023-05-01", "2023-06-01"),
    "in May": ("2023-05-01", "2023-06-01"),
    "in May 2021": ("2021-05-01", "2021-06-01"),
    "on May 3, 2023": ("2023-05-03", "2023-05-04"),
    "the 8th of May, 2023": ("2023-05-08", "2023-05-09"),
    "on 12 June": ("2023-06-12", "2023-06-13"),
    "2023-05-08": ("2023-05-08", "2023-05-09"),
    "in 2019": ("2019-01-01", "2020-01-01"),
    "two days ago": ("2024-03-11", "2024-03-12"),
    "three weeks ago": ("2024-02-18", "2024-02-25"),
    "a month ago": ("2024-02-01", "2024-03-01"),
    "in the last 3 days": ("2024-03-10", "2024-03-14"),
    "昨天我说了什么": ("2024-03-12", "2024-03-13"),
    "大前天": ("2024-03-10", "2024-03-11"),
    "上周": ("2024-03-04", "2024-03-11"),
    "上上周": ("2024-02-26", "2024-03-04"),
    "上周三": ("2024-03-06", "2024-03-07"),
    "上星期日": ("2024-03-10", "2024-03-11"),
    "上个月": ("2024-02-01", "2024-03-01"),
    "去年": ("2023-01-01", "2024-01-01"),
    "去年五月": ("2023-05-01", "2023-06-01"),
    "2023年5月8日": ("2023-05-08", "2023-05-09"),
    "５月８日": ("2023-05-08", "2023-05-09"),
    "十二月二十五日": ("2023-12-25", "2023-12-26"),
    "三天前": ("2024-03-10", "2024-03-11"),
    "两周前": ("2024-02-25", "2024-03-03"),
    "最近三天": ("2024-03-10", "2024-03-14"),
    "上週三": ("2024-03-06", "2024-03-07"),
    "上個月": ("2024-02-01", "2024-03-01"),
    "昨日の会議": ("2024-03-12", "2024-03-13"),
    "おととい何を食べた？": ("2024-03-11", "2024-03-12"),
    "先週": ("2024-03-04", "2024-03-11"),
    "先週の金曜日に": ("2024-03-08", "2024-03-09"),
    "先週末": ("2024-03-09", "2024-03-11"),
    "先月": ("2024-02-01", "2024-03-01"),
    "去年の5月": ("2023-05-01", "2023-06-01"),
    "昨年の八月": ("2023-08-01", "2023-09-01"),
    "一昨年": ("2022-01-01", "2023-01-01"),
    "三か月前": ("2023-12-01", "2024-01-01"),
    "2週間前に": ("2024-02-25", "2024-03-03"),
    "過去3日間": ("2024-03-10", "2024-03-14"),
    "어제 뭐 했어?": ("2024-03-12", "2024-03-13"),
    "지난주에": ("2024-03-04", "2024-03-11"),
    "지난 주 금요일": ("2024-03-08", "2024-03-09"),
    "이번 달": ("2024-03-01", "2024-04-01"),
    "작년 5월에": ("2023-05-01", "2023-06-01"),
    "2023년 5월 8일": ("2023-05-08", "2023-05-09"),
    "3일 전에": ("2024-03-10", "2024-03-11"),
    "2주 전": ("2024-02-25", "2024-03-03"),
    "3개월 전의": ("2023-12-01", "2024-01-01"),
    "최근 3일": ("2024-03-10", "2024-03-14"),
}


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", SAID)
def test_a_time_that_is_named(text: str) -> None:
    (found,) = times(text, NOW)
    assert (found.start, found.end) == tuple(map(day, SAID[text]))


@pytest.mark.parametrize(
    "text",
    [
        "may I go?",
        "she will march on",
        "version 1.2023.4",
        "30 February 2023",
        "六个周",
        "一个月以上",
        "3년 전쟁",
        "日曜日",
        "先生",
        "1,2023 files",
    ],
)
def test_no_time_is_named(text: str) -> None:
    assert times(text, NOW) == []


def test_times_without_a_beginning_or_an_end() -> None:
    assert times("since June", NOW)[0][:2] == (day("2023-06-01"), inf)
    assert times("before 2023", NOW)[0][:2] == (-inf, day("2023-01-01"))
    assert times("2019年以前", NOW)[0][:2] == (-inf, day("2019-01-01"))
    assert times("今年3月以来", NOW)[0][:2] == (day("2024-03-01"), inf)


def test_several_times() -> None:
    assert [span.text for span in times("between October 13, 2023 and last week", NOW)] == [
        "October 13, 2023",
        "last week",
    ]


def test_what_meets_a_time() -> None:
    (may,) = times("in May 2023", NOW)
    assert may.meets(day("2023-05-08"), day("2023-05-08"))
    assert may.meets(day("2020-01-01"), None)
    assert may.meets(None, day("2023-05-02"))
    assert not may.meets(day("2020-01-01"), day("2023-05-01"))
    assert not may.meets(day("2023-06-01"), None)


@given(
    st.text(max_size=60) | st.text("0123456789年月日天周上下个前去一二三十 -/lastweekmyagodinMaJu", max_size=40),
    st.floats(),
)
def test_any_text_at_any_time(text: str, now: float) -> None:
    assert all(span.start < span.end and span.text for span in times(text, now))
