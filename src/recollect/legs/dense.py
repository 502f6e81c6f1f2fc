"""The dense leg: memories whose meaning is near the question's vector."""

from __future__ import annotations

from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.legs.found import Found, depth
from recollect.ports import Vector, VectorIndex


def dense(
    index: VectorIndex,
    question: Question,
    model: str,
    vector: Vector,
    *,
    limit: Annotated[int, Range(1, 1000)] | None = None,
    factor: Annotated[float, Range(0.1, 100)] | None = None,
    minimum: Annotated[float, Range(-1, 1)] | None = None,
) -> Found:
    """The best by cosine; below `minimum` nothing is near enough to speak."""
    return Found(tuple(index.search(model, vector, question.filter, depth(question, limit, factor), minimum)))
