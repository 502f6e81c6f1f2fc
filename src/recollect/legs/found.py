"""What legs bring home, what is known of it before there is a pool, and how deep a leg looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from recollect.domain.memory import Memory
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Attempt
from recollect.ports import Records, Vector, VectorIndex
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
    ceiling: float | None = None
    """The most that a score could be, where that is known: likenesses of spelling end at 1."""
    excluded: frozenset[str] = frozenset()
    """What was found and is no answer, because the question excludes it."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is known of the candidates before there is a pool: read while others still searched, or on the way."""

    memories: dict[str, Memory] = field(default_factory=dict[str, Memory])
    cosines: dict[str, Hit | None] = field(default_factory=dict[str, Hit | None])
    """With the question; None for a memory without a vector."""

    def read(self, found: Iterable[Found], records: Records) -> None:
        """The memories that these legs found, those that are not known yet, in one query."""
        ids = dict.fromkeys(hit.id for one in found for hit in one.hits)
        unknown = [id for id in ids if id not in self.memories]
        if unknown:
            self.memories.update((one.id, one) for one in records.fetch(unknown))

    def compare(self, ids: Iterable[str], vectors: VectorIndex, model: str, vector: Vector) -> None:
        """The cosines of these memories, those that are not known yet."""
        unknown = [id for id in ids if id not in self.cosines]
        found = vectors.similarities(model, vector, unknown) if unknown else {}
        self.cosines.update((id, found.get(id)) for id in unknown)


def depth(question: Question, limit: int | None, factor: float | None) -> int:
    """How many hits a leg asks for: a fixed number, a multiple of what the question wants, the larger if both."""
    if factor is None:
        return question.limit if limit is None else limit
    return max(limit or 1, round(factor * question.limit))
