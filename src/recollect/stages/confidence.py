"""Is anything relevant here at all? A logistic over signs that the pipeline has at hand anyway.

A sign is a plain number of the question and its best candidates; what each is worth is data (a `Calibration`). The
signs of meaning need an embedder that was calibrated; without one the signs of words stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, log

from recollect.domain.confidence import Calibration, Confidence, ConfidenceRecipe, Point, Sign
from recollect.domain.memory import Memory
from recollect.domain.question import Question
from recollect.domain.ranking import RankedList
from recollect.domain.recall import Candidate, Dropped
from recollect.domain.scripts import has_unspaced, pieces_of
from recollect.domain.subjects import titles
from recollect.domain.vocabulary import stem
from recollect.stages.lexing import humps
from recollect.stages.priors import nearness
from recollect.stages.stopwords import is_stop_word

CONSIDERED = 10
"""So many candidates are read."""
HEAD = 5
CLOSEST = 3
MAX_CHARACTERS = 2_000
"""A longer memory is read from its best passage on, or else from its beginning."""
MAX_WORDS = 32
FEWEST = 1_000
"""A small store knows few words: they are weighed as if it had so many memories."""
KIN_LETTERS = 4
UNDATED = 0.8
"""How near in time the candidates of a question are that names no time."""
BEST_BM25 = 2.2
"""What one word gives at most, in units of its inverse frequency, where BM25's k1 is the usual 1.2. Another k1 scales
the sign, and its calibration with it."""

_BREAKS = re.compile(r"[\W_]+")
_ASCII_BREAKS = {number: " " for number in range(128) if not chr(number).isalnum()}
"""The same for plain texts, in a fraction of the time."""

WORD_SIGNS = ("covered", "together", "by_words", "dated", "in_time", "rarest", "rarity")
MEANING_SIGNS = ("close", "outstanding", "agreement")
LANGUAGE_SIGNS = ("unknown",)
"""For an embedder that finds from one language to another: there missing words say less."""


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many memories of the index each word of the question occurs, of how many."""

    documents: int = 0
    of: Mapping[str, float] = field(default_factory=dict[str, float])

    def inverse(self, word: str) -> float:
        """The inverse document frequency of Lucene's BM25."""
        found = self.of.get(word, 0.0)
        return log(1 + (self.documents - found + 0.5) / (found + 0.5))

    def rarity(self, word: str) -> float:
        """The same from 0 to 1, in an index of at least FEWEST memories where every word was seen once: a store that
        never saw a word does not know how rare it is."""
        documents, found = max(self.documents, FEWEST), max(self.of.get(word, 0.0), 1.0)
        return log(1 + (documents - found + 0.5) / (found + 0.5)) / log(1 + (documents - 0.5) / 1.5)


def assess(
    question: Question,
    lists: Sequence[RankedList],
    candidates: Sequence[Candidate],
    frequencies: Frequencies,
    recipe: ConfidenceRecipe,
    model: str | None = None,
) -> Confidence | None:
    """The confidence of an answer; None (unknown) where nothing was calibrated for what could be seen.

    model: the embedder whose cosines are in the list `similarity`. An embedder that nobody calibrated is as none.
    """
    by_name = {one.name: one for one in lists}
    if frequencies.documents < 1 or "lexical" not in by_name:
        return None
    best = candidates if question.sort_by == "relevance" else sorted(candidates, key=lambda one: -one.score)
    found = signs(question, by_name, best, frequencies)
    chosen = [
        one for one in recipe.calibrations if (model or "").startswith(one.model) and set(one.weights) <= set(found)
    ]
    if not chosen:
        return None
    seen = len(by_name["similarity"].hits) if "similarity" in by_name else frequencies.documents
    unasked = recipe.keep_unasked if seen >= recipe.unasked_from else 1.0
    calibration = max(chosen, key=lambda one: (len(one.model), len(one.weights), one.name))
    answer = weighed(found, calibration, unasked if question.unasked else recipe.keep)
    floor = floor_at(calibration.curve, unasked)
    return replace(
        answer,
        doubtful=floor is not None and answer.chance < logistic(floor.log_odds),
        is_handful=seen < recipe.unasked_from and recipe.keep >= 1,
    )


def withheld(candidates: Sequence[Candidate], confidence: Confidence) -> list[Dropped]:
    """What would have been returned, had the answer been surer."""
    reason = f"chance {confidence.chance:.3f} below {confidence.floor:.3f}"
    return [Dropped(one.id, "confidence", one.score, reason) for one in candidates]


def told(confidence: Confidence) -> str:
    """Why an answer is empty, in words."""
    return (
        f"nothing relevant enough: the chance of {confidence.chance:.1%} is below {confidence.floor or 0.0:.1%}, the"
        f" floor that keeps {confidence.keep * 100:g} % of answerable questions and lets"
        f" {confidence.injected * 100:.0f} % of unanswerable ones pass"
    )


def doubted(confidence: Confidence) -> str:
    """What to tell who asked and gets an answer that nobody would be given unasked."""
    return f"probably nothing here fits: the chance is {confidence.chance:.1%}"


def weighed(found: Mapping[str, float], calibration: Calibration, keep: float = 1.0) -> Confidence:
    """The logistic, sign by sign, and the floor that this rate means."""
    parts = tuple(
        Sign(name, found[name], weight * (found[name] - calibration.typical.get(name, 0.0)))
        for name, weight in calibration.weights.items()
    )
    total = calibration.intercept + sum(one.adds for one in parts)
    point = floor_at(calibration.curve, keep)
    return Confidence(
        chance=logistic(total),
        calibration=calibration.name,
        base=calibration.intercept,
        signs=parts,
        keep=keep,
        floor=None if point is None else logistic(point.log_odds),
        injected=1.0 if point is None else point.injected,
    )


def floor_at(curve: Sequence[Point], keep: float) -> Point | None:
    """The place of the curve that keeps this share, on the line between its neighbours; None where none need go.

    Beyond the ends of the curve nothing was measured: below, its first point holds, above it nothing is left out.
    """
    if keep >= 1 or not curve or keep > curve[-1].kept:
        return None
    above = next(place for place, one in enumerate(curve) if one.kept >= keep)
    high, low = curve[above], curve[max(above - 1, 0)]
    span = high.kept - low.kept
    share = (max(keep, low.kept) - low.kept) / span if span > 0 else 1.0
    return Point(
        keep,
        low.log_odds + share * (high.log_odds - low.log_odds),
        low.injected + share * (high.injected - low.injected),
    )


def logistic(log_odds: float) -> float:
    """Safe for any size."""
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else 1 - 1 / (1 + exp(log_odds))


def signs(
    question: Question, lists: Mapping[str, RankedList], candidates: Sequence[Candidate], frequencies: Frequencies
) -> dict[str, float]:
    """Every sign that can be seen, by name.

    covered: the share of the question's words, each by its rarity, that the best of the first five holds · together:
    that the first ten hold between them · by_words: the best BM25 of what could be reached · dated: whether the
    question names a time · in_time: how near to it the best are · rarest, rarity: how rare its words are, which says
    how much of them can be expected · unknown: the share of its words that no memory holds · close: the mean of the
    three best cosines · outstanding: how far the best cosine stands above the pool · agreement: how many of the first
    five by words are among the first five by meaning.
    """
    read = candidates[:CONSIDERED]
    words = content_words(question, [one.memory for one in candidates])
    weights = [frequencies.rarity(word) for word in words]
    reachable = BEST_BM25 * sum(frequencies.inverse(word) for word in words)
    held = [held_words(words, _text(one)) for one in read]
    lexical = lists["lexical"].hits
    found = {
        "covered": max((_share(weights, one) for one in held[:HEAD]), default=0.0),
        "together": _share(weights, [max(column) for column in zip(*held, strict=True)]),
        "by_words": lexical[0].score / reachable if lexical and reachable else 0.0,
        "dated": float(question.window is not None),
        "in_time": _in_time(question, read[:HEAD]),
        "rarest": max(weights, default=0.0),
        "rarity": sum(weights) / len(words) if words else 0.0,
        "unknown": sum(not frequencies.of.get(word) for word in words) / len(words) if words else 0.0,
    }
    cosines = [hit.score for hit in lists["similarity"].hits] if "similarity" in lists else []
    if cosines:
        best = cosines[:CLOSEST]
        heads = [{hit.id for hit in lists[name].hits[:HEAD]} for name in ("lexical", "similarity")]
        found["close"] = sum(best) / len(best)
        found["outstanding"] = best[0] - sum(cosines) / len(cosines)
        found["agreement"] = len(heads[0] & heads[1]) / HEAD
    return found


def content_words(question: Question, memories: Sequence[Memory]) -> list[str]:
    """The words that an answer should hold: neither stop words, nor the time that is named, nor who speaks anyway,
    unless nothing else is asked for."""
    speakers = {str(one.metadata.get("speaker", "")) for one in memories}
    spoken = {name.partition(" ")[0].casefold() for name in speakers}
    timed = set(_split(question.window.words)) if question.window is not None else set[str]()
    words = dict.fromkeys(word for one in question.words for word in _split(one))
    telling = [one for one in words if len(one) > 1 and one not in timed and not is_stop_word(one)][:MAX_WORDS]
    return [one for one in telling if one not in spoken] or telling


def held_words(words: Sequence[str], text: str) -> list[float]:
    """For each word whether the text has it: 1 in any of its forms, else the share of letters that it has in common
    with the likest word from the beginning on (photograph, photography), 0 below four letters. A stop word of the text
    is like nothing (thanks, than)."""
    wanted = [_root(word) for word in words]
    heads = {root[:2] for root in wanted}  # a root begins like its word: other words need no stemming
    near = {word: _root(word) for word in _split(text) if word[:2] in heads}
    roots = set(near.values())
    kin: dict[str, list[str]] = {root[:KIN_LETTERS]: [] for root in wanted if len(root) >= KIN_LETTERS}
    for word, root in near.items():
        family = kin.get(root[:KIN_LETTERS])
        if family is not None and not is_stop_word(word):
            family.append(root)
    return [
        1.0 if root in roots else max((_alike(root, other) for other in kin.get(root[:KIN_LETTERS], ())), default=0.0)
        for root in wanted
    ]


def _alike(left: str, right: str) -> float:
    shared = next((place for place, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
    return (min(len(left), len(right)) if shared is None else shared) / max(len(left), len(right))


@lru_cache(maxsize=16_384)
def _root(word: str) -> str:
    return stem(word)[0]


def _share(weights: Sequence[float], held: Sequence[float]) -> float:
    total = sum(weights)
    return sum(weight * one for weight, one in zip(weights, held, strict=False)) / total if total else 0.5


def _in_time(question: Question, candidates: Sequence[Candidate]) -> float:
    if question.window is None:
        return UNDATED
    return max((nearness(one.memory, question.window) for one in candidates), default=0.0)


def _text(candidate: Candidate) -> str:
    content, passage = candidate.memory.content, candidate.passage
    start = passage.start if passage is not None and len(content) > MAX_CHARACTERS else 0
    # Tags are searched like the text, and titles over a section are ranked by: they hold words as the text does.
    text = " ".join((content[start : start + MAX_CHARACTERS], titles(candidate.memory), *candidate.memory.tags))
    return " ".join((text, *humps(text)))


def _split(text: str) -> list[str]:
    folded = text.casefold()
    if has_unspaced(folded):
        return [word for part in pieces_of(folded) for word in _BREAKS.sub(" ", part).split()]
    return folded.translate(_ASCII_BREAKS).split() if folded.isascii() else _BREAKS.sub(" ", folded).split()
