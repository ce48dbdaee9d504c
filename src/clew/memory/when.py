"""Times that a question names: "yesterday", "in May 2023", "three weeks ago", 昨天, 去年五月, 两周前, 先週, 지난주.

English, Chinese, Japanese and Korean, by patterns, without a model. A time is a span between two moments; one that
lies open (a month without a year) is the last one that has begun. Days begin at midnight in a given zone, weeks on
Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from math import inf
from re import Match
from typing import NamedTuple

from clew.memory.calendar import Calendar, Edge

LONGEST = 2_000
"""Characters of a question in which times are looked for: its end, where a long message asks."""


class Span(NamedTuple):
    """From `start` until before `end`, in seconds since 1970; `text` is how it was said."""

    start: float
    end: float
    text: str

    def meets(self, start: float | None, end: float | None) -> bool:
        """Whether something that lasts from `start` (None: always was) to `end` (None: still is) falls in it."""
        start, end = -inf if start is None else start, inf if end is None else end
        return start < self.end and (self.start < end or start == end == self.start)


def times(text: str, now: float, zone: tzinfo = UTC) -> list[Span]:
    """The times a text names, seen from `now` (seconds since 1970), in the order in which it names them."""
    try:
        calendar = Calendar(datetime.fromtimestamp(now, zone))
    except (OverflowError, OSError, ValueError):  # a year that calendars do not have
        return []
    return list(_read(text[-LONGEST:].translate(_NARROW), calendar))


def _read(text: str, calendar: Calendar) -> Iterator[Span]:
    for match in _TIMES.finditer(text):
        rule = next(name for name, value in match.groupdict().items() if value is not None)
        pattern, made = _RULES[rule]
        inner = pattern.match(text, match.start())
        if inner is None:
            continue
        try:
            found = made(calendar, inner)
        except (ValueError, OverflowError):  # the 30th of February, or before the first year
            continue
        if found is None:
            continue
        start, end = (edge.timestamp() for edge in found)
        before = _BEFORE.search(text, 0, inner.start())
        if before or _HAN_BEFORE.match(text, inner.end()):
            start, end = -inf, start
        elif _SINCE.search(text, 0, inner.start()) or _HAN_SINCE.match(text, inner.end()):
            end = inf
        yield Span(start, end, inner[0])


_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_SAME = {
    "天": "日",
    "일": "日",
    "星期": "周",
    "礼拜": "周",
    "禮拜": "周",
    "週": "周",
    "週間": "周",
    "주": "周",
    "주일": "周",
}
_SAME |= {"개월": "月", "달": "月", "년": "年", "週末": "weekend", "주말": "weekend"}
_NARROW = {ord("０") + n: str(n) for n in range(10)}
_DIGITS = "零一二三四五六七八九"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NUMBER = rf"(?P<n>\d{{1,3}}|an?|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_HAN = r"(?P<n>\d{1,3}|[一两二三四五六七八九十]{1,3})"
_HAN_UNIT = r"[个個かカヶヵ]?(?P<unit>天|日|周|週間?|星期|礼拜|禮拜|月|年|일|주일?|개월|달|년)間?"
_YEARS = {
    "大前年": -3,
    "一昨年": -2,
    "おととし": -2,
    "前年": -2,
    "去年": -1,
    "昨年": -1,
    "今年": 0,
    "明年": 1,
    "来年": 1,
}
_YEARS |= {"재작년": -2, "작년": -1, "지난해": -1, "올해": 0, "내년": 1}
_HAN_YEAR = rf"(?:(?P<year>(?:19|20)\d\d)[年년]|(?P<ago>{'|'.join(_YEARS)}))"
_HAN_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])(?:月份?|월)"
_HAN_DAY = r"\s?(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})[日号號일]"


def _iso(calendar: Calendar, found: Match[str]) -> Edge | None:
    year, month, day = int(found["year"]), int(found["month"]), found["day"]
    return calendar.date(year, month, int(day) if day else None)


def _english_date(calendar: Calendar, found: Match[str]) -> Edge | None:
    groups = found.groupdict()
    day, year, named = groups.get("day"), groups.get("year"), found["month"]
    if not day and not year and named.lower() in ("may", "march", "mar", "jan", "sep", "dec", "nov", "oct"):
        led = re.search(r"\b(?:in|of|since|during|before|after|until|this)\s+$", found.string[: found.start()], re.I)
        if not led or not named[0].isupper():
            return None  # the verb, or a name
    month = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(named[:3].lower()))
    return calendar.date(int(year) if year else None, month, int(day) if day else None)


def _english_last(calendar: Calendar, found: Match[str]) -> Edge | None:
    shift = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1}[found["which"].lower()]
    what = found["what"].lower()
    if what in _DAYS:
        return calendar.weekday(_DAYS.index(what), None if shift == -1 else shift)
    if what in _MONTHS:
        month = _MONTHS.index(what) + 1
        begun = month < calendar.today.month
        return calendar.month(calendar.today.year + (-1 if shift == -1 and not begun else max(shift, 0)), month)
    if what == "night":
        return calendar.day(min(shift, 0))
    return calendar.unit(what, shift)


def _on(calendar: Calendar, found: Match[str]) -> Edge | None:
    return calendar.weekday(_DAYS.index(found["what"].lower()), None)


def _number(text: str) -> int:
    text = text.lower()
    if text.isdecimal():
        return int(text)
    if text in _NUMBERS:
        return _NUMBERS.index(text) + 1
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * (_DIGITS.index(tens) if tens else 1) + (_DIGITS.index(ones) if ones else 0)
    return 2 if text == "两" else _DIGITS.index(text[-1]) if text[-1] in _DIGITS else 1


def _unit(found: Match[str]) -> str:
    unit = found["unit"].lower()
    return _SAME.get(unit, unit)


def _ago(calendar: Calendar, found: Match[str]) -> Edge | None:
    return calendar.ago(_unit(found), _number(found["n"]))


def _lately(calendar: Calendar, found: Match[str]) -> Edge | None:
    """From so many units before until now."""
    return calendar.ago(_unit(found), _number(found["n"]))[0], calendar.day(0)[1]


def _word(calendar: Calendar, found: Match[str]) -> Edge | None:
    return calendar.day(_WORDS[found[0].lower()])


def _year(calendar: Calendar, found: Match[str]) -> Edge | None:
    return calendar.year(int(found["year"]))


def _han_date(calendar: Calendar, found: Match[str]) -> Edge | None:
    groups = found.groupdict()
    year = int(groups["year"]) if groups.get("year") else None
    if groups.get("ago"):
        year = calendar.today.year + _YEARS[groups["ago"]]
    if not groups.get("month"):
        return calendar.year(year) if year is not None else None
    day = groups.get("day")
    return calendar.date(year, _number(groups["month"]), _number(day) if day else None)


def _han_last(calendar: Calendar, found: Match[str]) -> Edge | None:
    shift = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "": None}[found["which"] or ""]
    unit, day = _unit(found), found["day"]
    if unit == "月":
        return calendar.unit(unit, shift) if shift is not None else None
    if day == "末":
        return calendar.unit("weekend", shift if shift is not None else -(calendar.today.weekday() < 5))
    if day:
        return calendar.weekday("一二三四五六日天".index(day) % 7 if day != "天" else 6, shift)
    return calendar.unit(unit, shift) if shift is not None else None


def _named_week(calendar: Calendar, found: Match[str]) -> Edge | None:
    """先週の金曜日, 지난주 금요일, 先月."""
    shift, unit, day = _SHIFTS[found["which"]], _unit(found), found["day"]
    if day and unit == "周":
        return calendar.weekday("月火水木金土日월화수목금토일".index(day) % 7, shift)
    return calendar.unit(unit, shift)


_SHIFTS = {"先々": -2, "先": -1, "今": 0, "来": 1, "再来": 2}
_SHIFTS |= {"지지난": -2, "지난": -1, "저번": -1, "이번": 0, "다음": 1}
_WORDS = {
    "today": 0,
    "tonight": 0,
    "yesterday": -1,
    "the day before yesterday": -2,
    "tomorrow": 1,
    "今天": 0,
    "今日": 0,
    "今晚": 0,
    "昨天": -1,
    "昨日": -1,
    "昨晚": -1,
    "大前天": -3,
    "前天": -2,
    "明天": 1,
    "后天": 2,
    "後天": 2,
    "一昨日": -2,
    "おととい": -2,
    "昨夜": -1,
    "今夜": 0,
    "明日": 1,
    "明後日": 2,
    "그저께": -2,
    "어제": -1,
    "어젯밤": -1,
    "내일": 1,
    "모레": 2,
}
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_ALTERNATIVES = "|".join(sorted(_WORDS, key=len, reverse=True))
_LATIN = {  # a rule is a pattern and what it means; the first that fits counts
    "iso": (rf"(?<![\d.]){_YEAR}[-/.](?P<month>0?[1-9]|1[0-2])(?:[-/.](?P<day>\d\d?))?(?![\d./-]*\d)", _iso),
    "day_month": (rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b", _english_date),
    "month_day": (rf"\b{_MONTH}\s+(?P<day>\d\d?)(?:st|nd|rd|th)?\b(?!\d)(?:,?\s+{_YEAR}\b)?", _english_date),
    "which": (
        rf"\b(?P<which>last|past|previous|this|next)\s+"
        rf"(?P<what>night|weekend|week|month|year|{'|'.join(_DAYS)}|{'|'.join(_MONTHS)})\b",
        _english_last,
    ),
    "on": (rf"\bon\s+(?P<what>{'|'.join(_DAYS)})\b", _on),
    "month": (rf"\b{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR}\b)?", _english_date),
    "lately": (rf"\b(?:last|past|previous)\s+{_NUMBER}\s+{_UNIT}\b", _lately),
    "ago": (rf"\b{_NUMBER}\s+{_UNIT}\s+ago\b", _ago),
}
_HANZI = {
    "han_date": (rf"(?<!\d){_HAN_YEAR}(?:[的の\s]?{_HAN_MONTH}(?:{_HAN_DAY})?)?", _han_date),
    "han_month": (rf"(?<![\d个上下这本前后每]){_HAN_MONTH}(?:{_HAN_DAY})?(?![\d前后内])", _han_date),
    "han_ago": (rf"{_HAN}{_HAN_UNIT}(?:以前|之前|前|\s?전(?=[에의부까쯤]|\W|$))", _ago),
    "han_lately": (rf"(?:最近|过去|過去|近|ここ|지난\s?|최근\s?){_HAN}{_HAN_UNIT}", _lately),
    "named_week": (
        rf"(?P<which>{'|'.join(_SHIFTS)})\s?(?P<unit>週末|週|月(?!曜)|주말|주|달)"
        r"(?:(?:の|\s)?(?P<day>[月火水木金土日월화수목금토일])(?:曜|요일))?",
        _named_week,
    ),
    "han_which": (
        r"(?P<which>上上|上|这|這|本|下)?(?:一|个|個)?(?P<unit>周|週(?!間|末)|星期|礼拜|禮拜|月)(?P<day>[一二三四五六日天末](?!些|个|直|起|定))?",
        _han_last,
    ),
    "word": (rf"(?<![a-z])(?:{_ALTERNATIVES})(?![a-z])", _word),
    "year": (rf"\b(?<![\d.,-]){_YEAR}(?![\d.,]*\d)\b", _year),
}
_PATTERNS = {**_LATIN, **_HANZI}
_RULES: dict[str, tuple[re.Pattern[str], Callable[[Calendar, Match[str]], Edge | None]]] = {
    name: (re.compile(pattern, re.IGNORECASE), made) for name, (pattern, made) in _PATTERNS.items()
}
_TIMES = re.compile(
    "|".join(f"(?P<{name}>{re.sub(r'[?]P<[a-z]+>', '?:', pattern)})" for name, (pattern, _) in _PATTERNS.items()),
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:before|until|till|prior to)\s+(?:the\s+)?$", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|after)\s+(?:the\s+)?$", re.IGNORECASE)
_HAN_BEFORE = re.compile("以前|之前")
_HAN_SINCE = re.compile("以来|以后|之后|起")
