"""Times that a question names: "yesterday", "in May 2023", "three weeks ago", 昨天, 去年五月, 两周前.

English and Chinese, by patterns, without a model. A time is a span between two moments; one that lies open (a month
without a year) is the last one that has begun. Days begin at midnight in a given zone, weeks on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf
from re import Match
from typing import NamedTuple

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
        reader = _Reader(datetime.fromtimestamp(now, zone))
    except (OverflowError, OSError, ValueError):  # a year that calendars do not have
        return []
    return list(reader.read(text[-LONGEST:].translate(_NARROW)))


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
_UNITS = {"day": 1, "week": 7, "天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7}
_NARROW = {ord("０") + n: str(n) for n in range(10)}
_DIGITS = "零一二三四五六七八九"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NUMBER = rf"(?P<n>\d{{1,3}}|an?|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_HAN = r"(?P<n>\d{1,3}|[一两二三四五六七八九十]{1,3})"
_HAN_UNIT = r"个?(?P<unit>天|日|周|星期|礼拜|月|年)"
_HAN_YEAR = r"(?:(?P<year>(?:19|20)\d\d)年|(?P<ago>大前年|前年|去年|今年|明年)的?)"
_HAN_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月份?"
_HAN_DAY = r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})[日号]"

Edge = tuple[datetime, datetime]


class _Reader:
    """Reads the times that a text names on a day."""

    def __init__(self, now: datetime) -> None:
        self.today = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def read(self, text: str) -> Iterator[Span]:
        for match in _TIMES.finditer(text):
            rule = next(name for name, value in match.groupdict().items() if value is not None)
            pattern, made = _RULES[rule]
            inner = pattern.match(text, match.start())
            if inner is None:
                continue
            try:
                found = made(self, inner)
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

    def day(self, shift: int) -> Edge:
        start = self.today + timedelta(days=shift)
        return start, start + timedelta(days=1)

    def week(self, shift: int) -> Edge:
        start = self.today + timedelta(days=7 * shift - self.today.weekday())
        return start, start + timedelta(days=7)

    def month(self, year: int, month: int) -> Edge:
        """A month; those of 0 and below, and of 13 and above, are of other years."""
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        start = self.today.replace(year=year, month=month, day=1)
        return start, start.replace(year=year + month // 12, month=month % 12 + 1)

    def year(self, year: int) -> Edge:
        start = self.today.replace(year=year, month=1, day=1)
        return start, start.replace(year=year + 1)

    def weekday(self, day: int, week: int | None) -> Edge:
        """A day of a week (0: this one), or of None the last one before today."""
        here = self.today.weekday()
        return self.day(7 * week + day - here if week is not None else -((here - day - 1) % 7 + 1))

    def unit(self, unit: str, shift: int) -> Edge:
        """The day, week, month or year that is so many before or after this one."""
        match unit:
            case "day" | "天" | "日":
                return self.day(shift)
            case "week" | "周" | "星期" | "礼拜":
                return self.week(shift)
            case "month" | "月":
                return self.month(self.today.year, self.today.month + shift)
            case "weekend":
                start, end = self.week(shift)
                return start + timedelta(days=5), end
        return self.year(self.today.year + shift)

    def ago(self, unit: str, n: int) -> Edge:
        """Some units ago: as exact as the unit is, half of it to either side of the day."""
        if unit in _UNITS:
            length = _UNITS[unit]
            day = self.today - timedelta(days=n * length)
            return day - timedelta(days=length // 2), day + timedelta(days=length // 2 + 1)
        return self.unit(unit, -n)

    def date(self, year: int | None, month: int, day: int | None) -> Edge:
        """A day or month; without a year the last one that has begun."""
        if year is None:
            year = self.today.year
            if self.today.replace(month=month, day=day or 1) > self.today:
                year -= 1
        if day is None:
            return self.month(year, month)
        start = self.today.replace(year=year, month=month, day=day)
        return start, start + timedelta(days=1)


def _iso(reader: _Reader, found: Match[str]) -> Edge | None:
    year, month, day = int(found["year"]), int(found["month"]), found["day"]
    return reader.date(year, month, int(day) if day else None)


def _english_date(reader: _Reader, found: Match[str]) -> Edge | None:
    groups = found.groupdict()
    day, year, named = groups.get("day"), groups.get("year"), found["month"]
    if not day and not year and named.lower() in ("may", "march", "mar", "jan", "sep", "dec", "nov", "oct"):
        led = re.search(r"\b(?:in|of|since|during|before|after|until|this)\s+$", found.string[: found.start()], re.I)
        if not led or not named[0].isupper():
            return None  # the verb, or a name
    month = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(named[:3].lower()))
    return reader.date(int(year) if year else None, month, int(day) if day else None)


def _english_last(reader: _Reader, found: Match[str]) -> Edge | None:
    shift = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1}[found["which"].lower()]
    what = found["what"].lower()
    if what in _DAYS:
        return reader.weekday(_DAYS.index(what), None if shift == -1 else shift)
    if what in _MONTHS:
        month = _MONTHS.index(what) + 1
        begun = month < reader.today.month
        return reader.month(reader.today.year + (-1 if shift == -1 and not begun else max(shift, 0)), month)
    if what == "night":
        return reader.day(min(shift, 0))
    return reader.unit(what, shift)


def _on(reader: _Reader, found: Match[str]) -> Edge | None:
    return reader.weekday(_DAYS.index(found["what"].lower()), None)


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


def _ago(reader: _Reader, found: Match[str]) -> Edge | None:
    return reader.ago(found["unit"].lower(), _number(found["n"]))


def _lately(reader: _Reader, found: Match[str]) -> Edge | None:
    """From so many units before until now."""
    return reader.ago(found["unit"].lower(), _number(found["n"]))[0], reader.day(0)[1]


def _word(reader: _Reader, found: Match[str]) -> Edge | None:
    return reader.day(_WORDS[found[0].lower()])


def _year(reader: _Reader, found: Match[str]) -> Edge | None:
    return reader.year(int(found["year"]))


def _han_date(reader: _Reader, found: Match[str]) -> Edge | None:
    groups = found.groupdict()
    year = int(groups["year"]) if groups.get("year") else None
    if groups.get("ago"):
        year = reader.today.year + {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1}[groups["ago"]]
    if not groups.get("month"):
        return reader.year(year) if year is not None else None
    day = groups.get("day")
    return reader.date(year, _number(groups["month"]), _number(day) if day else None)


def _han_last(reader: _Reader, found: Match[str]) -> Edge | None:
    shift = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "": None}[found["which"] or ""]
    unit, day = found["unit"], found["day"]
    if unit == "月":
        return reader.unit(unit, shift) if shift is not None else None
    if day == "末":
        return reader.unit("weekend", shift if shift is not None else -(reader.today.weekday() < 5))
    if day:
        return reader.weekday("一二三四五六日天".index(day) % 7 if day != "天" else 6, shift)
    return reader.unit(unit, shift) if shift is not None else None


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
    "han_date": (rf"(?<!\d){_HAN_YEAR}(?:{_HAN_MONTH}(?:{_HAN_DAY})?)?", _han_date),
    "han_month": (rf"(?<![\d个上下这本前后每]){_HAN_MONTH}(?:{_HAN_DAY})?(?![\d前后内])", _han_date),
    "han_ago": (rf"{_HAN}{_HAN_UNIT}(?:以前|之前|前)", _ago),
    "han_lately": (rf"(?:最近|过去|近){_HAN}{_HAN_UNIT}", _lately),
    "han_which": (
        r"(?P<which>上上|上|这|本|下)?(?:一|个)?(?P<unit>周|星期|礼拜|月)(?P<day>[一二三四五六日天末](?!些|个|直|起|定))?",
        _han_last,
    ),
    "word": (rf"(?<![a-z])(?:{_ALTERNATIVES})(?![a-z])", _word),
    "year": (rf"\b(?<![\d.,-]){_YEAR}(?![\d.,]*\d)\b", _year),
}
_PATTERNS = {**_LATIN, **_HANZI}
_RULES: dict[str, tuple[re.Pattern[str], Callable[[_Reader, Match[str]], Edge | None]]] = {
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
