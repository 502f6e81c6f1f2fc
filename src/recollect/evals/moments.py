"""The times that data sets write: ISO 8601, seconds or milliseconds since 1970, and the ways of chats and mails."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.writing import as_asked

MILLISECONDS_FROM = 100_000_000_000
"""So many seconds end in the year 5138: larger numbers are milliseconds."""
WITHOUT_SIGNS = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}
"""ISO 8601 without its signs, by the number of digits. As seconds such a date would be a day of 1970, as milliseconds
one of the 27th century: nobody means those."""
YEARS = range(1000, 3000)
FORMATS = (
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%I:%M %p on %d %B, %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%Y-%m",
)
_WEEKDAY = re.compile(r"\s*\((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\)", re.IGNORECASE)
_UTC = re.compile(r"(\d{4}-.*\d) ?(?:utc|z)", re.IGNORECASE)


def moment(value: Any) -> datetime | None:
    """The time that a value tells, in its own zone (UTC where it names none); None where it tells none."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    text = _WEEKDAY.sub("", str(value)).strip()
    if named := _UTC.fullmatch(text):
        text = f"{named[1]}Z"
    try:
        if re.fullmatch(r"(19|20)\d{6}(\d{6})?", text):
            return as_asked(datetime.strptime(text, WITHOUT_SIGNS[len(text)]).replace(tzinfo=UTC))
        if isinstance(value, int | float) or re.fullmatch(r"-?\d+(\.\d+)?", text):
            return _of_number(float(text))
        return as_asked(text)
    except (InvalidInput, ValueError, OverflowError, OSError):
        return _as_written(text)


def _of_number(number: float) -> datetime:
    if number in YEARS:
        return datetime(int(number), 1, 1, tzinfo=UTC)
    seconds = number / 1000 if abs(number) >= MILLISECONDS_FROM else number
    return as_asked(datetime.fromtimestamp(seconds, UTC))


def _as_written(text: str) -> datetime | None:
    for form in FORMATS:
        try:
            return as_asked(datetime.strptime(text, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    try:
        return as_asked(parsedate_to_datetime(text))
    except (InvalidInput, ValueError, TypeError, IndexError):
        return None
