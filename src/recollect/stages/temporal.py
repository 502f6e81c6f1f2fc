"""Time expressions of a question → the stretch of time they point at: "last Tuesday", "in May 2023", "two weeks ago".

A small grammar of its own over the words of the question, read once from left to right; English only. It is counted
in the time zone that `now` carries and given in UTC. Where a question names several times, a calendar date beats a
relative expression, which beats "recently"; among equals the narrower one wins, then the earlier one.

Months and days without a year are the latest ones that have begun, weekdays the latest before today. "last week" is
the calendar week before this one, "the past week" the last seven days. "N units ago" is one unit wide around that
day. "before" ends where its time starts, "until" and "by" where it ends, "after" starts where it ends, "since" where
it starts; their other ends are far away. "the week before 3 August 2023" is counted from that date and includes it,
because that is the day on which it was told. "How many weeks ago" and "most recently" point nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recollect.domain.question import TimeWindow
from recollect.stages import spans
from recollect.stages.spans import FAR_FUTURE, FAR_PAST, Span

MAX_CHARACTERS = 4096
RECENT_DAYS = 14

_TOKEN = re.compile(
    r"(?<![\w/.-])\d{4}-\d{2}(?:-\d{2})?(?![\d-])|(?<![\w/])\d{1,2}/\d{4}(?![\d/])"
    r"|(?<!\d)\d++(?:st|nd|rd|th)?\b|[a-z]+|[.?!;:()\"]"
)
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
_SHORT_MONTHS = {name[:3]: number for name, number in _MONTHS.items() if name != "may"} | {"sept": 9}
# Other words look like these: alone they need "in", "on" or the like before them.
_AMBIGUOUS_MONTHS = frozenset({"march", "april", "may", "june", "august", *_SHORT_MONTHS})
_ALL_MONTHS = _MONTHS | _SHORT_MONTHS
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tue tues",
            "wednesday wed",
            "thursday thu thurs",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
_COUNTS = {
    word: count
    for count, words in {
        1: "a an one",
        2: "two couple",
        3: "three few",
        4: "four",
        5: "five several",
        6: "six",
        7: "seven",
        8: "eight",
        9: "nine",
        10: "ten",
        11: "eleven",
        12: "twelve dozen",
        20: "twenty",
        30: "thirty",
    }.items()
    for word in words.split()
}
_VAGUE = frozenset({"couple", "few", "several", "dozen"})
_PREPOSITIONS = "in on during of since before after until till by from between around throughout"
_INTRODUCERS = frozenset(_PREPOSITIONS.split())
_YEAR_INTRODUCERS = _INTRODUCERS - {"on", "of", "around"} | {"year"}
# "the end of 2022" names a year, "the first of 2000 rows" does not.
_PARTS_OF_A_YEAR = frozenset({"end", "start", "beginning", "middle", "half", "rest"})
_LAST = frozenset({"last", "past", "previous"})

# Every expression starts with a number or with one of these; at any other word there is nothing to try.
_SINGLE = "this q today tonight yesterday recently lately weekend between from since after before until till by prior"
_ARTICLES = frozenset({"a", "an", "one", "the"})
_STARTS = frozenset(_SINGLE.split()).union(
    _ARTICLES, _LAST, _COUNTS, _ALL_MONTHS, _WEEKDAYS, spans.SEASONS, spans.UNITS, (f"{unit}s" for unit in spans.UNITS)
)

_DATE, _RELATIVE, _VAGUELY = 3, 2, 1


@dataclass(frozen=True, slots=True)
class _Found:
    """An expression: its stretch, the token behind it, how much its word counts, and whether it named its year."""

    span: Span
    next: int
    rank: int
    dated: bool = True


def window(text: str, now: datetime) -> TimeWindow | None:
    """The stretch of time that the text points at, seen from `now`; None when it points at none."""
    if now.tzinfo is None:
        now = now.replace(tzinfo=UTC)
    text = text[:MAX_CHARACTERS]
    lowered = text.lower()
    if len(lowered) != len(text):
        text = lowered
    reader = _Reader(list(_TOKEN.finditer(lowered)), now.replace(tzinfo=None))
    found = reader.read()
    best = min(found, key=lambda one: (-one[1].rank, one[1].span.end - one[1].span.start, one[0]), default=None)
    if best is None:
        return None
    first, chosen = best
    words = text[reader.matches[first].start() : reader.matches[chosen.next - 1].end()]
    start, end = (_in_utc(moment, now) for moment in (chosen.span.start, chosen.span.end))
    return TimeWindow(start, end, words) if start < end else None


def _in_utc(moment: datetime, now: datetime) -> datetime:
    """Local wall time as UTC; the far ends stay where they are, for no zone may push them over the edge."""
    if FAR_PAST < moment < FAR_FUTURE:
        try:
            return moment.replace(tzinfo=now.tzinfo).astimezone(UTC)
        except OverflowError:
            pass
    return moment.replace(tzinfo=UTC)


class _Reader:
    """Reads expressions out of the tokens of one text; every rule looks at a few tokens only."""

    def __init__(self, matches: list[re.Match[str]], now: datetime) -> None:
        self.matches = matches
        self.tokens = [match.group() for match in matches]
        self.now = now
        self.second_at = -1
        """Where the second time of a range starts: what stands there is introduced by the first."""

    def read(self) -> list[tuple[int, _Found]]:
        """Every expression with the place of its first token."""
        results: list[tuple[int, _Found]] = []
        place = 0
        while place < len(self.tokens):
            found = None
            if self._may_start(place):
                found = self._first(place, (self._range, self._anchored, self._open, self._point))
            if found is not None:
                results.append((place, found))
            place = found.next if found else place + 1
        return results

    def _may_start(self, place: int) -> bool:
        token = self.tokens[place]
        if token in _ARTICLES:
            return self.at(place + 1) not in _ARTICLES and place + 1 < len(self.tokens) and self._may_start(place + 1)
        return token in _STARTS or token[0].isdigit()

    def _first(self, place: int, rules: tuple[Callable[[int], _Found | None], ...]) -> _Found | None:
        """The first rule that applies; a date outside the calendar (31 June, the year 0) is no date."""
        for rule in rules:
            try:
                if found := rule(place):
                    return found
            except (ValueError, OverflowError):
                continue
        return None

    def at(self, place: int) -> str:
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""

    def _skip(self, place: int, *words: str) -> int:
        return place + 1 if self.at(place) in words else place

    # Expressions of two times, or of one and a direction

    def _range(self, place: int) -> _Found | None:
        """between X and Y · from X to Y: from the start of the one to the end of the other."""
        if self.at(place) not in ("between", "from"):
            return None
        first = self._point(place + 1)
        if first is None or self.at(first.next) not in ("and", "to", "until", "till", "through"):
            return None
        self.second_at = first.next + 1
        second = self._point(self.second_at)
        if second is None:
            return None
        if first.dated:
            (start, _), (_, end) = sorted((one.span.start, one.span.end) for one in (first, second))
            return _Found(Span(start, end), second.next, second.rank)
        # "between August 11 and August 15 2023", "between November and February": the second names the year.
        start = first.span.start.replace(year=second.span.start.year)
        if start > second.span.start:
            start = spans.shift_months(start, -12)
        return _Found(Span(start, second.span.end), second.next, second.rank)

    def _anchored(self, place: int) -> _Found | None:
        """the week before DATE · two weeks before DATE · the Sunday after DATE: counted from the date, with it."""
        here = self._skip(place, "the", "last")
        count, here, vague = self._count(here) or (1, here, False)
        unit, here = self.at(here).removesuffix("s"), here + 1
        direction = self.at(here)
        if direction not in ("before", "after", "following", "preceding"):
            return None
        anchor = self._point(here + 1)
        if anchor is None or anchor.rank != _DATE:
            return None
        day = anchor.span.start
        later = direction in ("after", "following")
        if unit in _WEEKDAYS:
            span = spans.weekday_before(day + 8 * spans.DAY if later else day, _WEEKDAYS[unit])
        elif unit == "weekend":
            span = spans.weekend(day + (7 if later else -7) * spans.DAY)
        elif unit in spans.UNITS - {"minute", "hour"}:
            span = spans.ago(day, -count if later else count, unit, vague)
            if count == 1 and not vague:
                there = spans.back(day, -1 if later else 1, unit)
                span = Span(min(day, there), max(day, there))
        else:
            return None
        return _Found(Span(min(span.start, day), max(span.end, day + spans.DAY)), anchor.next, _DATE)

    def _open(self, place: int) -> _Found | None:
        """since X · after X · before X · until X · by X: one end is far away."""
        word, here = self.at(place), place + 1
        if word == "prior":
            word, here = "before", self._skip(here, "to")
        if word not in ("since", "after", "before", "until", "till", "by"):
            return None
        point = self._point(here)
        if point is None or (word == "by" and point.rank != _DATE):
            return None
        ends = {
            "since": (point.span.start, FAR_FUTURE),
            "after": (point.span.end, FAR_FUTURE),
            "before": (FAR_PAST, point.span.start),
        }
        start, end = ends.get(word, (FAR_PAST, point.span.end))
        return _Found(Span(start, end), point.next, point.rank)

    # Expressions of one time

    def _point(self, place: int) -> _Found | None:
        rules = (self._numeric, self._month, self._year, self._ago, self._last, self._this, self._weekday, self._word)
        return self._first(self._skip(place, "the"), rules)

    def _numeric(self, place: int) -> _Found | None:
        """2023-05-07 · 2023-05 · 05/2023 · Q3 2024."""
        token = self.at(place)
        if "-" in token:
            year, month, *day = (int(part) for part in token.split("-"))
            span = spans.days(datetime(year, month, day[0])) if day else spans.month(year, month)
            return _Found(span, place + 1, _DATE)
        if "/" in token:
            month, year = (int(part) for part in token.split("/"))
            return _Found(spans.month(year, month), place + 1, _DATE)
        if token == "q" and self.at(place + 1) in tuple("1234"):
            here = self._skip(place + 2, "of")
            number, year = int(self.at(place + 1)), self._year_number(here)
            if year is not None:
                return _Found(spans.quarter(year, number), here + 1, _DATE)
            latest = self._latest(lambda year: spans.quarter(year, number))
            return _Found(latest, place + 2, _DATE, dated=False)
        return None

    def _month(self, place: int) -> _Found | None:
        """May 2023 · in May · May 7th, 2023 · 7 May 2023 · the 7th of May."""
        day, here = self._day(place), place
        if day is not None:
            here = self._skip(place + 1, "of")
        name = self.at(here)
        number = _ALL_MONTHS.get(name)
        if number is None:
            return None
        sure = name not in _AMBIGUOUS_MONTHS or self.at(place - 1) in _INTRODUCERS or place == self.second_at
        sure = sure or (day is not None and not self.at(place).isdigit())
        here = self._skip(here + 1, ".") if name in _SHORT_MONTHS else here + 1
        if day is None and (day := self._day(here)) is not None:
            sure = sure or not self.at(here).isdigit()
            here += 1
        year_at = self._skip(here, "of")
        year = self._year_number(year_at)
        if year is not None:
            span = spans.month(year, number) if day is None else spans.days(datetime(year, number, day))
            return _Found(span, year_at + 1, _DATE)
        if not sure:
            return None
        if day is None:
            return _Found(self._latest(lambda year: spans.month(year, number)), here, _DATE, dated=False)
        chosen = day
        return _Found(self._latest(lambda year: spans.days(datetime(year, number, chosen))), here, _DATE, dated=False)

    def _year(self, place: int) -> _Found | None:
        """in 2022 · summer 2021 · summer of 2021 · during the summer."""
        token = self.at(place)
        if token in spans.SEASONS:
            here = self._skip(place + 1, "of")
            year = self._year_number(here)
            if year is not None:
                return _Found(spans.season(token, year), here + 1, _DATE)
            before = self.at(place - 2) if self.at(place - 1) == "the" else self.at(place - 1)
            # "in spring" may be a framework and "in the fall" an accident.
            named = before in ("during", "over", "since") or (
                before == "in" and token in ("summer", "winter", "autumn")
            )
            if named:
                return _Found(self._latest(lambda year: spans.season(token, year)), place + 1, _VAGUELY, dated=False)
            return None
        year = self._year_number(self._skip(place, "year"))
        # A number is a year only where a year is expected, and not one that lies far ahead.
        introduced = self.at(place - 1) in _YEAR_INTRODUCERS or token == "year" or place == self.second_at
        introduced = introduced or (self.at(place - 1) == "of" and self.at(place - 2) in _PARTS_OF_A_YEAR)
        if year is None or not introduced or year > self.now.year + 1:
            return None
        return _Found(spans.year(year), self._skip(place, "year") + 1, _DATE)

    def _ago(self, place: int) -> _Found | None:
        """two months ago · a couple of days ago."""
        counted = self._count(place)
        if counted is None:
            return None
        count, here, vague = counted
        unit = self.at(here).removesuffix("s")
        if unit not in spans.UNITS or self.at(here + 1) not in ("ago", "back", "earlier"):
            return None
        return _Found(spans.ago(self.now, count, unit, vague), here + 2, _RELATIVE)

    def _last(self, place: int) -> _Found | None:
        """last night · last week · the past weekend · last Tuesday · last May · last summer · the past two weeks."""
        word, here = self.at(place), place + 1
        if word not in _LAST:
            return None
        name = self.at(here)
        if name == "night":
            return _Found(
                Span(*(spans.midnight(self.now) + timedelta(hours=hours) for hours in (-12, 12))), here + 1, _RELATIVE
            )
        if name in _WEEKDAYS:
            return _Found(spans.weekday_before(self.now, _WEEKDAYS[name]), here + 1, _RELATIVE)
        if name in _MONTHS:
            moment = self.now.replace(day=1) - spans.DAY
            span = self._latest(lambda year: spans.month(year, _MONTHS[name]), moment)
            return _Found(span, here + 1, _RELATIVE)
        if name in spans.SEASONS:
            return _Found(self._latest(lambda year: spans.season(name, year), ended=True), here + 1, _RELATIVE)
        if name == "weekend":
            return _Found(spans.weekend(self.now - 7 * spans.DAY), here + 1, _RELATIVE)
        if name in ("week", "month", "year"):
            if word == "past":
                return _Found(spans.rolling(self.now, 1, name), here + 1, _RELATIVE)
            earlier = spans.back(self.now.replace(day=1) if name == "month" else self.now, 1, name)
            return _Found(spans.calendar_unit(earlier, name), here + 1, _RELATIVE)
        count, here, vague = self._count(here) or (1, here, False)
        unit = self.at(here).removesuffix("s")
        if unit not in spans.UNITS:
            return None
        return _Found(spans.rolling(self.now, count + vague, unit), here + 1, _RELATIVE)

    def _this(self, place: int) -> _Found | None:
        """this week · this weekend · this month · this year · this Monday · this summer · this May · this morning."""
        if self.at(place) != "this":
            return None
        name, here = self.at(place + 1), place + 2
        if name in ("morning", "afternoon", "evening"):
            return _Found(spans.days(self.now), here, _RELATIVE)
        if name in ("week", "weekend", "month", "year"):
            return _Found(spans.calendar_unit(self.now, name), here, _RELATIVE)
        if name in _WEEKDAYS:
            return _Found(spans.weekday_before(self.now + spans.DAY, _WEEKDAYS[name]), here, _RELATIVE)
        if name in _MONTHS:
            return _Found(spans.month(self.now.year, _MONTHS[name]), here, _RELATIVE)
        if name in spans.SEASONS:
            return _Found(self._latest(lambda year: spans.season(name, year)), here, _RELATIVE)
        return None

    def _weekday(self, place: int) -> _Found | None:
        """on Monday: the latest one before today. "on the Wednesday two months ago" is left to its second half."""
        number = _WEEKDAYS.get(self.at(place))
        before = self.at(place - 2) if self.at(place - 1) == "the" else self.at(place - 1)
        if number is None or (
            before not in ("on", "since", "before", "after", "until", "from", "between") and place != self.second_at
        ):
            return None
        if self._ago(place + 1) is not None:
            return None
        return _Found(spans.weekday_before(self.now, number), place + 1, _RELATIVE)

    def _word(self, place: int) -> _Found | None:
        """today · tonight · yesterday · the day before yesterday · recently · lately."""
        token = self.at(place)
        if token in ("today", "tonight"):
            return _Found(spans.days(self.now), place + 1, _RELATIVE)
        if token == "yesterday":
            return _Found(spans.days(self.now - spans.DAY), place + 1, _RELATIVE)
        if self.tokens[place : place + 3] == ["day", "before", "yesterday"]:
            return _Found(spans.days(self.now - 2 * spans.DAY), place + 3, _RELATIVE)
        if token in ("recently", "lately") and self.at(place - 1) not in ("most", "more"):
            return _Found(spans.rolling(self.now, RECENT_DAYS, "day"), place + 1, _VAGUELY)
        return None

    # Numbers

    def _count(self, place: int) -> tuple[int, int, bool] | None:
        """A number in digits or words ("a couple of", "a few"), the place behind it, and whether it is vague."""
        token = self.at(place)
        if token.isdigit() and len(token) <= 4 and int(token) > 0:
            return int(token), place + 1, False
        here = place + 1 if token == "a" and self.at(place + 1) in _VAGUE else place
        if self.at(here) not in _COUNTS:
            return None
        return _COUNTS[self.at(here)], self._skip(here + 1, "of"), self.at(here) in _VAGUE

    def _day(self, place: int) -> int | None:
        number = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", self.at(place))
        return int(number[1]) if number and 1 <= int(number[1]) <= 31 else None

    def _year_number(self, place: int) -> int | None:
        token = self.at(place)
        return int(token) if token.isdigit() and len(token) == 4 and 1900 <= int(token) <= 2100 else None

    def _latest(self, make: Callable[[int], Span], moment: datetime | None = None, ended: bool = False) -> Span:
        """The latest of a yearly stretch that has begun (or ended) by the moment; 29 February may take some years."""
        by = moment or self.now
        for year in range(by.year, by.year - 9, -1):
            try:
                span = make(year)
            except ValueError:
                continue
            if (span.end if ended else span.start) <= by:
                return span
        raise ValueError("no such day")
