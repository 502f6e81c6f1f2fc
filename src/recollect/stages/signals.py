"""Signals order the pool by what a memory is, not by whether it was found: similarity, recency, access, subject,
headings.

Signal: (pool, question, **options) -> hits, best first, ties by id so that the order is total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Pool
from recollect.domain.subjects import Words, fold, titles
from recollect.domain.subjects import subject as subject_of
from recollect.stages.concepts import mentions
from recollect.stages.confidence import content_words, held_words
from recollect.stages.priors import Moment
from recollect.stages.stopwords import is_stop_word

Signal = Callable[..., tuple[Hit, ...]]

MAX_SECTION_CHARACTERS = 8_000
"""So much of a section is read for words of the question."""


def similarity(pool: Pool, question: Question, *, estimated_by: str = "") -> tuple[Hit, ...]:
    """Cosine with the question, for the candidates that have a vector; empty when the question has none.

    `estimated_by` names a leg: a candidate that it found and that has no vector (not yet, or because it is sensitive)
    stands where it stands there, between the least and the greatest cosine. Otherwise nothing speaks for it here.
    """
    known = pool.similarities
    unknown = [hit for hit in pool.found.get(estimated_by, ()) if hit.id in pool.memories and hit.id not in known]
    if not known or not unknown:
        return _best_first(known.values())
    cosines = [hit.score for hit in known.values()]
    low, high = min(cosines), max(cosines)
    best = max(hit.score for hit in pool.found[estimated_by])

    def estimate(score: float) -> float:
        return low + (high - low) * max(score / best, 0.0) if best > 0 else low

    return _best_first([*known.values(), *(Hit(hit.id, estimate(hit.score)) for hit in unknown)])


def recency(pool: Pool, question: Question, *, by: Moment = "created_at") -> tuple[Hit, ...]:
    """Newest first; the raw score is the POSIX time."""
    return _best_first(Hit(memory.id, getattr(memory, by).timestamp()) for memory in pool.memories.values())


def access(pool: Pool, question: Question) -> tuple[Hit, ...]:
    """Most often opened first."""
    return _best_first(Hit(memory.id, float(memory.access_count)) for memory in pool.memories.values())


def subject(pool: Pool, question: Question, *, share: Annotated[float, Range(0, 1)] = 0.0) -> tuple[Hit, ...]:
    """Memories whose subject the question names: 1/√n where n candidates share it, and less in proportion where its
    name is less than this `share` of the question's words: there it may stand by chance."""
    asked = fold(question.text)
    named = {id: about for id, one in pool.memories.items() if mentions(asked, about := subject_of(one))}
    sharing = Counter(named.values())
    least = share * _telling(asked)

    def worth(about: Words) -> float:
        return min(1.0, _telling(about) / least) if least else 1.0

    return _best_first(Hit(id, worth(about) / sqrt(sharing[about])) for id, about in named.items())


def _telling(words: Words) -> int:
    """How many different words these are, stop words only where there are no others."""
    return len({word for word in words if not is_stop_word(word)} or set(words))


def headings(pool: Pool, question: Question) -> tuple[Hit, ...]:
    """Sections of notes whose title or headings the question names: the share of its words that stand there, times the
    square of the share that stand there or in the section."""
    words = content_words(question, ())
    found: list[Hit] = []
    for id, one in pool.memories.items():
        named = _held(words, titles(one))
        if named:
            known = named | _held(words, one.content[:MAX_SECTION_CHARACTERS])
            found.append(Hit(id, len(named) * len(known) ** 2 / len(words) ** 3))
    return _best_first(found)


SIGNALS: Mapping[str, Signal] = {
    "similarity": similarity,
    "recency": recency,
    "access": access,
    "subject": subject,
    "headings": headings,
}


def _held(words: Sequence[str], text: str) -> set[str]:
    """The words that a text has, in any of their forms."""
    return {word for word, held in zip(words, held_words(words, text), strict=True) if held == 1} if text else set()


def _best_first(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit[1], hit[0])))
