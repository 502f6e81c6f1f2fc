"""What a question excludes stays excluded in legs that know no words: they are asked again, and the rest is sifted.

Most questions exclude what few memories hold, so at first few are looked up to be kept from a leg; only where that was
not enough, ten times as many, twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from recollect.domain.errors import RecollectError
from recollect.domain.question import Question
from recollect.legs.found import Found
from recollect.ports import TextIndex

MOST_EXCLUDED = (1_000, 10_000, 100_000)
"""So many memories with the excluded words are kept from a leg, step by step; what is left of them is sifted out."""

log = logging.getLogger(__name__)

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

    A leg that found some of it is asked `again` without those memories, so that others take their places, and without
    more of them as long as it still finds some. What these steps cannot do costs hits, not the answer.
    """
    found = leg(question)
    gone = excluded(index, question, (hit.id for hit in found.hits))
    if not gone or index is None or question.unwanted is None:
        return found
    late = gone
    for most in MOST_EXCLUDED if again else ():
        try:
            others = index.match(question.unwanted, question.filter, most).ids[:most]
            deeper = leg(without(question, gone.union(others)))
            late = excluded(index, question, (hit.id for hit in deeper.hits))
        except RecollectError as error:
            if most == MOST_EXCLUDED[0]:
                raise
            log.warning("a leg could not be asked without %d memories: %s", most, type(error).__name__)
            break
        found, gone = deeper, gone | late
        if not late or len(others) < most:
            break
    kept = tuple(hit for hit in found.hits if hit.id not in gone)
    return replace(found, hits=kept, excluded=gone)
