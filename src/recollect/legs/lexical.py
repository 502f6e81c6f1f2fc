"""The lexical leg: memories that hold the question's words, by BM25; a ladder of looser queries when none does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from recollect.domain.profile import Range
from recollect.domain.query import And, Node, Term, units
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Attempt
from recollect.legs import bm25
from recollect.legs.context import in_context
from recollect.legs.found import Found, depth
from recollect.legs.terms import terms_of
from recollect.ports import LinkIndex, TextIndex, TextMatches
from recollect.stages.confidence import Frequencies
from recollect.stages.ladder import (
    MAX_SIMILAR,
    MIN_SIMILARITY,
    RUNGS,
    Lexicon,
    fuzzy_words,
    rare_candidates,
    similarities,
)
from recollect.stages.parse import MAX_WORDS
from recollect.stages.unparse import unparse

ColumnWeights = tuple[float, float]
Search = Callable[[Node], tuple[list[Hit], TextMatches]]

# The rung that finds by likeness of spelling, so that its hits are ordered by that likeness and not by BM25.
FUZZY_RUNG = "trigram_fuzzy"


def lexical(
    index: TextIndex,
    question: Question,
    links: LinkIndex | None = None,
    *,
    rungs: Sequence[str] = ("initial",),
    limit: Annotated[int, Range(1, 1000)] | None = None,
    factor: Annotated[float, Range(0.1, 100)] | None = None,
    match: Literal["any", "all-then-any"] = "any",
    columns: ColumnWeights = (1.0, 1.0),
    k1: Annotated[float, Range(0.01, 10)] = 1.2,
    b: Annotated[float, Range(0, 1)] = 0.75,
    idf: bm25.Idf = "fts5",
    before: tuple[float, ...] = (),
    after: tuple[float, ...] = (),
    repeats: bool = False,
    statistics: Literal["index", "scope"] = "index",
) -> Found:
    """The best by BM25. "all-then-any": memories with all words first, and when they are too few, those with any
    below them. before, after: what the words of the turns before and after a turn of a conversation count for it,
    nearest first. repeats: a word said twice in the question counts twice. statistics: how rare words are in the whole
    index, or within the scope where that is known."""
    most = depth(question, limit, factor)

    def scores(matches: TextMatches) -> NDArray[np.float64]:
        return bm25.scores(matches, columns, k1, b, idf, _said(matches, question) if repeats else None)

    def search(query: Node) -> tuple[list[Hit], TextMatches]:
        matches = index.match(query, question.filter, most, columns)
        asked.append(matches)
        if statistics == "scope" and matches.scope is not None:
            inside = matches.scope
            matches = replace(matches, documents=inside.documents, frequencies=inside.frequencies)
        if links is not None and (before or after):
            alone = _best(matches, scores(matches), most)
            matches = in_context(alone, links, before, after)
            mixed.append(matches is not alone)
        return _ordered(matches, scores(matches), most), matches

    attempts: list[Attempt] = []
    asked, mixed = list[TextMatches](), list[bool]()
    lexicon, ceiling = Lexicon(), None
    for rung in rungs:
        lexicon = _learned(rung, lexicon, index, question)
        query = RUNGS[rung](question, lexicon)
        if query is None:
            attempts.append(Attempt(rung, "", 0))
            continue
        if rung == "initial" and match == "all-then-any" and question.bare:
            hits, compiled = _all_then_any(query, search, most)
        else:
            hits, matches = search(query)
            compiled = matches.compiled
            if rung == FUZZY_RUNG:
                hits, ceiling = _by_likeness(matches, similarities(lexicon.similar), most), 1.0
        attempts.append(Attempt(rung, unparse(query), len(hits)))
        if hits:
            flat = any(mixed) or ceiling is not None
            return Found(tuple(hits), tuple(attempts), compiled, _rareness(asked), flat, ceiling)
    return Found((), tuple(attempts), "", _rareness(asked))


def _learned(rung: str, lexicon: Lexicon, index: TextIndex, question: Question) -> Lexicon:
    """What a rung needs to know of the words in the index, and earlier ones did not."""
    if rung != "initial" and not lexicon.frequencies:
        lexicon = _frequencies(index, question)
    return _neighbours(index, question, lexicon) if rung == FUZZY_RUNG else lexicon


def _rareness(asked: Sequence[TextMatches]) -> Frequencies:
    """How rare the words are that were asked for first, before any rung replaced them."""
    if not asked:
        return Frequencies()
    first = asked[0]
    pairs = zip(first.units, first.frequencies.tolist(), strict=True)
    return Frequencies(
        first.documents, {unit.text.casefold(): count for unit, count in pairs if isinstance(unit, Term)}
    )


def _all_then_any(query: Node, search: Search, most: int) -> tuple[list[Hit], str]:
    parts = units(query)
    if not 1 < len(parts) <= MAX_WORDS:  # one word is all words; and what holds all of very many is the best by any
        hits, matches = search(query)
        return hits, matches.compiled
    strict, matches = search(And(parts))
    if len(strict) >= most:
        return strict, matches.compiled
    loose, broadened = search(query)
    known = {hit.id for hit in strict}
    return [*strict, *(hit for hit in loose if hit.id not in known)][:most], broadened.compiled


def _said(matches: TextMatches, question: Question) -> NDArray[np.float64]:
    """How often the question says each unit; what it does not say itself (an alias, another spelling) counts once."""
    times = Counter(question.words)
    return np.array(
        [max(1, times[unit.text.lower()]) if isinstance(unit, Term) else 1 for unit in matches.units], dtype=np.float64
    )


def _best(matches: TextMatches, scores: NDArray[np.float64], most: int) -> TextMatches:
    """Only the best candidates, ties by id: what is poor by itself has nothing to lend. They come in the order of their
    ids, so that what they lend adds up to the same number whatever order the store found them in."""
    rows = list(range(len(matches.ids)))
    if len(rows) > most:
        last = np.partition(scores, -most)[-most]
        rows = np.flatnonzero(scores > last).tolist()
        tied: list[int] = np.flatnonzero(scores == last).tolist()
        rows += sorted(tied, key=matches.ids.__getitem__)[: most - len(rows)]
    rows.sort(key=matches.ids.__getitem__)
    ids = tuple(matches.ids[row] for row in rows)
    return replace(matches, ids=ids, lengths=matches.lengths[rows], counts=matches.counts[rows])


def _ordered(matches: TextMatches, scores: NDArray[np.float64], most: int) -> list[Hit]:
    """Best first, ties by id."""
    hits = [Hit(id, float(score)) for id, score in zip(matches.ids, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:most]


def _by_likeness(matches: TextMatches, likeness: dict[str, float], most: int) -> list[Hit]:
    """A memory is worth the best likeness of any word it holds."""
    worth = np.array([likeness.get(unit.text, 0.0) if isinstance(unit, Term) else 0.0 for unit in matches.units])
    held = matches.counts.sum(axis=2) > 0
    return _ordered(matches, (held * worth).max(axis=1, initial=0.0), most)


def _frequencies(index: TextIndex, question: Question) -> Lexicon:
    known = [(word, own[0]) for word, own in terms_of(index, rare_candidates(question)) if own]
    counts = index.frequencies([term for _, term in known])
    return Lexicon(frequencies={word: count for (word, _), count in zip(known, counts, strict=True)})


def _neighbours(index: TextIndex, question: Question, lexicon: Lexicon) -> Lexicon:
    similar = {word: index.similar(word, MIN_SIMILARITY, MAX_SIMILAR) for word in fuzzy_words(question)}
    return Lexicon(lexicon.frequencies, similar)
