"""What a leg brings home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.domain.memory import Memory
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Attempt
from recollect.stages.confidence import Frequencies


@dataclass(frozen=True, slots=True)
class Found:
    """Hits best first; of the lexical leg the rungs it walked, the query that won, and how rare its words are."""

    hits: tuple[Hit, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    compiled: str = ""
    frequencies: Frequencies = field(default_factory=Frequencies)
    flattened: bool = False
    """Whether the scores are flat by making: mixed with those of the turns around, or likenesses of spelling."""
    read: Mapping[str, Memory] = field(default_factory=dict[str, Memory])
    """Memories that the leg had to read on its way: the pool need not read them again."""


def depth(question: Question, limit: int | None, factor: float | None) -> int:
    """How many hits a leg asks for: a fixed number, a multiple of what the question wants, the larger if both."""
    if factor is None:
        return question.limit if limit is None else limit
    return max(limit or 1, round(factor * question.limit))
