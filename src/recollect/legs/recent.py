"""The recent leg: what was used last. It widens the pool; whether it votes is the profile's word."""

from __future__ import annotations

from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.legs.found import Found
from recollect.ports import Records


def recent(
    records: Records,
    question: Question,
    *,
    limit: Annotated[int, Range(1, 1000)] = 200,
    embedded: bool = False,
) -> Found:
    """The most recently accessed memories in scope; with `embedded`, only those that have a vector."""
    return Found(tuple(records.recent(question.filter, limit, embedded)))
