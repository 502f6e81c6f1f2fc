"""Words that no memory holds, but for one slip of the finger: which words were meant, by what the index knows."""

from __future__ import annotations

from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.query import Or, Term
from recollect.domain.question import Question
from recollect.legs.terms import terms_of
from recollect.ports import Dictionary, TextIndex
from recollect.stages.spelling import least_likeness, most_likely, slip, suspects
from recollect.stages.stopwords import is_stop_word

MAX_NEIGHBOURS = 500
"""So many words that look alike are compared letter by letter; short words look like many others."""
MAX_READINGS = 16
WITNESSES = 50
"""A reading must be held by some of so many memories in scope."""


def meant(
    index: TextIndex,
    question: Question,
    embedder: object = None,
    *,
    most: Annotated[int, Range(0, 64)] = 8,
    shortest: Annotated[int, Range(2, 64)] = 4,
) -> dict[str, str]:
    """What the misspelt words of a plain question mean: word → the word in scope that one slip makes it of.

    A word that any memory holds, or that an embedder with a Dictionary knows, is no slip. At most `most` unknown words
    are looked at (0: none), those with fewer than `shortest` letters never.
    """
    words = suspects(question, shortest) if most else ()
    terms = {word: own[0] for word, own in terms_of(index, words) if len(own) == 1}
    counts = index.frequencies(list(terms.values())) if terms else []
    unknown = [word for word, count in zip(terms, counts, strict=True) if not count][:most]
    found = {word: reading for word in unknown if (reading := _reading(index, question, word)) is not None}
    if found and isinstance(embedder, Dictionary):
        return {word: reading for word, reading in found.items() if not embedder.knows(word)}
    return found


def _reading(index: TextIndex, question: Question, word: str) -> str | None:
    """Of the words one slip away the likeliest; words of other scopes are none of this question's business."""
    near = index.similar(word, least_likeness(word), MAX_NEIGHBOURS)
    slips = {other: likely for other, _ in near if (likely := slip(word, other))}
    ordinary = _everywhere(index, [other for other, likely in slips.items() if likely == 1 and is_stop_word(other)])
    telling = [other for other in sorted(slips, key=lambda other: (-slips[other], other)) if not is_stop_word(other)]
    if not telling:
        return most_likely(word, ordinary)
    matches = index.match(Or(tuple(map(Term, telling[:MAX_READINGS]))), question.filter, WITNESSES)
    held = matches.counts.sum(axis=2).any(axis=0)
    pairs = zip(matches.units, matches.frequencies.tolist(), held.tolist(), strict=True)
    in_scope = {unit.text: count for unit, count, here in pairs if here and isinstance(unit, Term)}
    return most_likely(word, {**ordinary, **in_scope})


def _everywhere(index: TextIndex, stop_words: list[str]) -> dict[str, float]:
    """How many memories hold these words, which are in every scope and tell nothing of it."""
    terms = {word: own[0] for word, own in terms_of(index, stop_words) if own}
    return dict(zip(terms, map(float, index.frequencies(list(terms.values()))), strict=True))
