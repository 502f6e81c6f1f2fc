"""Moments as stores keep them: in UTC, which a time without a zone is taken to be, cut down to whole milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // MILLISECOND


def from_ms(number: int) -> datetime:
    """The moment that `to_ms` kept."""
    return EPOCH + number * MILLISECOND


def day(moment: datetime) -> str:
    """2026-05-01, with four digits for the year in every century: `%Y` gives as many as it likes."""
    return moment.date().isoformat()


def whole_milliseconds(moment: datetime) -> datetime:
    """The moment as a store gives it back."""
    return from_ms(to_ms(moment))
