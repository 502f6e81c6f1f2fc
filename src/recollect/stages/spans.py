"""Calendar arithmetic for time expressions: stretches of wall-clock time, start inclusive, end exclusive.

Weeks start on Monday; seasons are the northern meteorological ones (summer is June to August; the winter of a year is
the one that starts in its December). Everything here is naive local time; `temporal` turns it into UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)
FAR_PAST = datetime(1, 1, 2)
FAR_FUTURE = datetime(9999, 12, 30)

_SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
SEASONS = frozenset(_SEASON_STARTS)

# "Two weeks ago" is rarely counted out: the stretch is one unit wide around the day, and wider the longer ago it is.
_HALF_WIDTH = {
    "minute": timedelta(minutes=10),
    "hour": timedelta(minutes=30),
    "day": timedelta(0),
    "week": timedelta(days=3),
    "month": timedelta(days=15),
    "year": timedelta(days=183),
}
UNITS = frozenset(_HALF_WIDTH)
_SLACK = 0.15


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of local time."""

    start: datetime
    end: datetime


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def days(moment: datetime, count: int = 1) -> Span:
    """`count` whole days, the first of them holding the moment."""
    start = midnight(moment)
    return Span(start, start + count * DAY)


def month(year: int, number: int) -> Span:
    start = datetime(year, number, 1)
    return Span(start, shift_months(start, 1))


def year(number: int) -> Span:
    return Span(datetime(number, 1, 1), datetime(number + 1, 1, 1))


def quarter(year_number: int, number: int) -> Span:
    start = datetime(year_number, 3 * number - 2, 1)
    return Span(start, shift_months(start, 3))


def season(name: str, year_number: int) -> Span:
    start = datetime(year_number, _SEASON_STARTS[name], 1)
    return Span(start, shift_months(start, 3))


def week(moment: datetime) -> Span:
    """The calendar week that holds the moment."""
    return days(moment - moment.weekday() * DAY, 7)


def weekend(moment: datetime) -> Span:
    """Saturday and Sunday of the calendar week that holds the moment."""
    return days(moment - moment.weekday() * DAY + 5 * DAY, 2)


def weekday_before(moment: datetime, number: int) -> Span:
    """The latest such weekday that lies before the day of the moment."""
    return days(moment - ((moment.weekday() - number - 1) % 7 + 1) * DAY)


def calendar_unit(moment: datetime, unit: str) -> Span:
    """The day, week, weekend, month or year that holds the moment."""
    if unit == "week":
        return week(moment)
    if unit == "weekend":
        return weekend(moment)
    if unit == "month":
        return month(moment.year, moment.month)
    return year(moment.year) if unit == "year" else days(moment)


def shift_months(moment: datetime, count: int) -> datetime:
    """The same day some months away, or the last day of that month where it is shorter."""
    index = moment.year * 12 + moment.month - 1 + count
    first = moment.replace(year=index // 12, month=index % 12 + 1, day=1)
    following = first.replace(year=(index + 1) // 12, month=(index + 1) % 12 + 1)
    return first + min(moment.day - 1, (following - first).days - 1) * DAY


def back(moment: datetime, count: int, unit: str) -> datetime:
    """The moment `count` units earlier (later where count is negative)."""
    if unit in ("month", "year"):
        return shift_months(moment, -count * (12 if unit == "year" else 1))
    return moment - count * timedelta(**{f"{unit}s": 1})


def ago(moment: datetime, count: int, unit: str, vague: bool) -> Span:
    """`count` units before the moment (after it where negative), one unit wide around that day.

    From four units on it is wider by 15 % of the distance on either side, and by one unit where the count is vague.
    """
    there = back(moment, count, unit)
    distance = abs(moment - there)
    slack = distance * _SLACK if abs(count) >= 4 else timedelta(0)
    if vague:
        slack = max(slack, distance / abs(count))
    pad = _HALF_WIDTH[unit] + slack
    if unit in ("minute", "hour"):
        return Span(there - pad, there + pad)
    return Span(midnight(there - pad), midnight(there + pad) + DAY)


def rolling(moment: datetime, count: int, unit: str) -> Span:
    """The last `count` units up to the end of today."""
    start = back(moment, count, unit)
    return Span(start if unit in ("minute", "hour") else midnight(start), midnight(moment) + DAY)
