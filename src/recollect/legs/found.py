"""What a leg brings home."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Attempt


@dataclass(frozen=True, slots=True)
class Found:
    """Hits best first, and for the lexical leg the rungs it walked and the query that won."""

    hits: tuple[Hit, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    compiled: str = ""


def depth(question: Question, limit: int | None, factor: float) -> int:
    """How many hits a leg asks for: a fixed limit, or a multiple of what the question wants."""
    return limit if limit is not None else max(1, round(factor * question.limit))
