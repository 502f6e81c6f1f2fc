"""Time expressions against a known question date: Wednesday, 15 May 2024, 12:30 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from asking import NOW

from recollect.stages.temporal import window

pytestmark = pytest.mark.covers("ladder.temporal")

FAR = "9999-12-30"
LONG_AGO = "0001-01-02"

EXAMPLES = {
    # days
    "what did we do today": ("2024-05-15", "2024-05-16"),
    "yesterday's bug": ("2024-05-14", "2024-05-15"),
    "the day before yesterday": ("2024-05-13", "2024-05-14"),
    "the crash last night": ("2024-05-14T12:00", "2024-05-15T12:00"),
    "this morning": ("2024-05-15", "2024-05-16"),
    # weeks, months, years
    "this week": ("2024-05-13", "2024-05-20"),
    "last week": ("2024-05-06", "2024-05-13"),
    "the previous week": ("2024-05-06", "2024-05-13"),
    "over the past week": ("2024-05-08", "2024-05-16"),
    "this month": ("2024-05-01", "2024-06-01"),
    "last month": ("2024-04-01", "2024-05-01"),
    "the past month": ("2024-04-15", "2024-05-16"),
    "this year": ("2024-01-01", "2025-01-01"),
    "last year": ("2023-01-01", "2024-01-01"),
    "this weekend": ("2024-05-18", "2024-05-20"),
    "last weekend": ("2024-05-11", "2024-05-13"),
    "the past weekend": ("2024-05-11", "2024-05-13"),
    # counted
    "3 days ago": ("2024-05-12", "2024-05-13"),
    "a couple of days ago": ("2024-05-12", "2024-05-15"),
    "a week ago": ("2024-05-05", "2024-05-12"),
    "two weeks ago": ("2024-04-28", "2024-05-05"),
    "two months ago": ("2024-02-29", "2024-03-31"),
    "four weeks ago": ("2024-04-10", "2024-04-25"),
    "one year ago": ("2022-11-13", "2023-11-15"),
    "an hour ago": ("2024-05-15T11:00", "2024-05-15T12:00"),
    "in the past two weeks": ("2024-05-01", "2024-05-16"),
    "in the last four months": ("2024-01-15", "2024-05-16"),
    "the past few months": ("2024-01-15", "2024-05-16"),
    # weekdays
    "last Tuesday": ("2024-05-14", "2024-05-15"),
    "last Wednesday": ("2024-05-08", "2024-05-09"),
    "what happened on Monday": ("2024-05-13", "2024-05-14"),
    "on Thursday": ("2024-05-09", "2024-05-10"),
    "we met on the Monday": ("2024-05-13", "2024-05-14"),
    "this Wednesday": ("2024-05-15", "2024-05-16"),
    "with Rachel on the Wednesday two months ago": ("2024-02-29", "2024-03-31"),
    # dates
    "in May 2023": ("2023-05-01", "2023-06-01"),
    "in May": ("2024-05-01", "2024-06-01"),
    "what happened march 4th": ("2024-03-04", "2024-03-05"),
    "in June": ("2023-06-01", "2023-07-01"),
    "the December trip": ("2023-12-01", "2024-01-01"),
    "last May": ("2023-05-01", "2023-06-01"),
    "May 7th, 2023": ("2023-05-07", "2023-05-08"),
    "7 May 2023": ("2023-05-07", "2023-05-08"),
    "on 8th December, 2023": ("2023-12-08", "2023-12-09"),
    "the 7th of May": ("2024-05-07", "2024-05-08"),
    "on May 20": ("2023-05-20", "2023-05-21"),
    "in Dec 2023": ("2023-12-01", "2024-01-01"),
    "this January": ("2024-01-01", "2024-02-01"),
    "Sept. 2023": ("2023-09-01", "2023-10-01"),
    "since 29 February": ("2024-02-29", FAR),
    "2023-05-07": ("2023-05-07", "2023-05-08"),
    "2023-05": ("2023-05-01", "2023-06-01"),
    "05/2023": ("2023-05-01", "2023-06-01"),
    "in 2022": ("2022-01-01", "2023-01-01"),
    "at the end of 2022": ("2022-01-01", "2023-01-01"),
    "Q3 2024": ("2024-07-01", "2024-10-01"),
    "in Q4": ("2023-10-01", "2024-01-01"),
    "last summer": ("2023-06-01", "2023-09-01"),
    "this spring": ("2024-03-01", "2024-06-01"),
    "last spring": ("2023-03-01", "2023-06-01"),
    "last winter": ("2023-12-01", "2024-03-01"),
    "summer of 2021": ("2021-06-01", "2021-09-01"),
    "during the summer": ("2023-06-01", "2023-09-01"),
    # two ends
    "between 3 March 2023 and 9 April 2023": ("2023-03-03", "2023-04-10"),
    "between August 11 and August 15 2023": ("2023-08-11", "2023-08-16"),
    "between November and February": ("2023-11-01", "2024-03-01"),
    "from Monday to Tuesday": ("2024-05-13", "2024-05-15"),
    "between 2020 and 2022": ("2020-01-01", "2023-01-01"),
    "between today and yesterday": ("2024-05-14", "2024-05-16"),
    "on 31 June 2023": ("2023-06-01", "2023-07-01"),
    "since May 2023": ("2023-05-01", FAR),
    "since last week": ("2024-05-06", FAR),
    "since a couple of weeks ago": ("2024-04-21", FAR),
    "after 2022": ("2023-01-01", FAR),
    "after 7 May 2023": ("2023-05-08", FAR),
    "before May 2023": (LONG_AGO, "2023-05-01"),
    "prior to 2023-05-07": (LONG_AGO, "2023-05-07"),
    "until yesterday": (LONG_AGO, "2024-05-15"),
    "by July 10, 2022": (LONG_AGO, "2022-07-11"),
    # counted from a date, which belongs to it
    "the week before August 3, 2023": ("2023-07-27", "2023-08-04"),
    "two weeks before August 11, 2023": ("2023-07-25", "2023-08-12"),
    "on the Sunday before October 25, 2022": ("2022-10-23", "2022-10-26"),
    "the weekend before 20 October 2023": ("2023-10-14", "2023-10-21"),
    "the month after 3 March 2023": ("2023-03-03", "2023-04-03"),
    "the Friday after 3 March 2023": ("2023-03-03", "2023-03-11"),
    # vague
    "what have I done recently": ("2024-05-01", "2024-05-16"),
}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", EXAMPLES)
def test_expressions(text: str) -> None:
    found = window(text, NOW)
    assert found is not None
    assert (found.start, found.end) == tuple(map(moment, EXAMPLES[text]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which database do we run?",
        "how many weeks ago did I start",
        "which service did I use most recently",
        "may I march on",
        "option 2 may be wrong",
        "it broke and may fail",
        "march 4 miles",
        "what do I do on Tuesdays",
        "Sunday group rides",
        "how many days between the workshop and the webinar",
        "how long before I started",
        "the move after 27. Kg2",
        "the first of 2000 rows",
        "in 2048 bits",
        "since 1850",
        "next month",
        "last time",
        "a week-long trip",
        "in the Spring framework",
        "2023-13-45",
        "two apples ago",
        "0 days ago",
        "99999 days ago",
        "9999 years ago",
        "letzte Woche",
        "hier soir",
    ],
)
def test_texts_that_point_nowhere(text: str) -> None:
    assert window(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did I finish last Friday on 23 January, 2022?", "23 January, 2022"),
        ("What did she make recently in May 2022?", "May 2022"),
        ("recently, or was it last week?", "last week"),
        ("in 2023, on May 5, 2023", "May 5, 2023"),
        ("Who did I meet SINCE Last Tuesday?", "SINCE Last Tuesday"),
    ],
)
def test_the_most_definite_expression_wins(text: str, words: str) -> None:
    found = window(text, NOW)
    assert found is not None and found.words == words


def test_days_are_those_of_the_asker() -> None:
    asked = datetime(2024, 5, 15, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    found = window("today", asked)
    assert found is not None
    assert (found.start, found.end) == (moment("2024-05-14T22:00"), moment("2024-05-15T22:00"))
    assert found.start.tzinfo is UTC
    shifted = window("yesterday", datetime(2024, 4, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")))
    assert shifted is not None
    assert shifted.end - shifted.start == timedelta(hours=23)
    assert window("today", NOW.replace(tzinfo=None)) == window("today", NOW)


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_the_edges_of_the_calendar(now: datetime) -> None:
    for text in EXAMPLES:
        found = window(text, now)
        assert found is None or found.start < found.end
