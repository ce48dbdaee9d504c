"""Days, weeks, months and years, as they are seen from a day."""

from __future__ import annotations

from datetime import datetime, timedelta

Edge = tuple[datetime, datetime]
"""Where a time begins, and where it is over."""

_DAYS = {"day": 1, "week": 7, "日": 1, "周": 7}


class Calendar:
    """The times around a day. Raises `ValueError` and `OverflowError` for those that calendars do not have."""

    def __init__(self, now: datetime) -> None:
        self.today = now.replace(hour=0, minute=0, second=0, microsecond=0)

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
            case "day" | "日":
                return self.day(shift)
            case "week" | "周":
                return self.week(shift)
            case "month" | "月":
                return self.month(self.today.year, self.today.month + shift)
            case "weekend":
                start, end = self.week(shift)
                return start + timedelta(days=5), end
        return self.year(self.today.year + shift)

    def ago(self, unit: str, n: int) -> Edge:
        """Some units ago: as exact as the unit is, half of it to either side of the day."""
        if unit in _DAYS:
            length = _DAYS[unit]
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
