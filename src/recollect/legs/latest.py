"""The latest leg: what was written last, for a query that is filters alone and gives nobody else anything to find."""

from __future__ import annotations

from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.legs.found import Found, depth
from recollect.ports import Records


def latest(
    records: Records,
    question: Question,
    *,
    limit: Annotated[int, Range(1, 1000)] | None = None,
    factor: Annotated[float, Range(0.1, 100)] | None = None,
) -> Found:
    """The newest memories in scope; only where a query is filters or exclusions alone (`type:decision -wal`)."""
    found = records.scan(question.filter, limit=depth(question, limit, factor))
    return Found(tuple(Hit(one.id, one.created_at.timestamp()) for one in found))
