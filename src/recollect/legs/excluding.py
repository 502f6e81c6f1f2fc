"""What a question excludes stays excluded in legs that know no words: they are asked again, and the rest is sifted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from recollect.domain.question import Question
from recollect.legs.found import Found
from recollect.ports import TextIndex

MOST_EXCLUDED = 1000
"""So many memories with the excluded words are kept from a leg beforehand; what is left of them is sifted out."""

Leg = Callable[[Question], Found]


def excluded(index: TextIndex | None, question: Question, ids: Iterable[str]) -> frozenset[str]:
    """Which of these memories the question excludes, by the index's own word."""
    asked = frozenset(ids)
    if question.unwanted is None or index is None or not asked:
        return frozenset()
    among = replace(question.filter, only=asked)
    return frozenset(index.match(question.unwanted, among, len(asked)).ids)


def without(question: Question, ids: frozenset[str]) -> Question:
    """The question with these memories shut out of its scope."""
    return (
        replace(question, filter=replace(question.filter, exclude=question.filter.exclude | ids)) if ids else question
    )


def sifted(leg: Leg, question: Question, index: TextIndex | None, *, again: bool = True) -> Found:
    """What a leg finds without what the question excludes.

    A leg that found some of it is asked `again` without those memories, so that others take their places.
    """
    found = leg(question)
    gone = excluded(index, question, (hit.id for hit in found.hits))
    if not gone or index is None or question.unwanted is None:
        return found
    if again:
        others = index.match(question.unwanted, question.filter, MOST_EXCLUDED).ids[:MOST_EXCLUDED]
        found = leg(without(question, gone.union(others)))
        gone |= excluded(index, question, (hit.id for hit in found.hits))
    kept = tuple(hit for hit in found.hits if hit.id not in gone)
    return replace(found, hits=kept, excluded=gone)
