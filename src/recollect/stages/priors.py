"""Priors adjust a fused score by what is known of the memory: score → score, applied in the profile's order.

Prior: (score, memory, question, **options) -> score. Add one: write the function, add its line to PRIORS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import exp, log1p
from typing import Annotated, Literal

from recollect.domain.memory import EPISODE, Memory, same_text
from recollect.domain.profile import Range
from recollect.domain.question import Question, TimeWindow
from recollect.domain.scripts import has_unspaced, spread
from recollect.stages import intent as intents

Prior = Callable[..., float]
Factor = Annotated[float, Range(0, 100)]
Unit = Annotated[float, Range(0, 1)]
Days = Annotated[float, Range(0.001, 1e6)]
Moment = Literal["created_at", "accessed_at", "updated_at"]

DAY_SECONDS = 86_400.0
SHARED_WORK = frozenset({"you", "your", "we", "us", "our"})
# Much quicker than `stages.sentences`, whose care for abbreviations no count needs: a recall reads many turns.
SENTENCE = re.compile(r"([^.!?。！？؟\n]+)([.!?。！？؟]*)")
ASKING = frozenset("?？؟")
READ_CHARACTERS = 1_000
"""Of a turn, to see whether it states anything; a longer one does."""


def importance(score: float, memory: Memory, question: Question, *, base: Factor = 0.7, slope: Factor = 0.3) -> float:
    """score × (0.7 + 0.3 · importance); only where relevance decides the order."""
    return score * (base + slope * memory.importance) if question.sort_by == "relevance" else score


def promote(
    score: float,
    memory: Memory,
    question: Question,
    *,
    minimum: Unit = 0.8,
    places: Annotated[int, Range(1, 1000)] = 10,
    k: Annotated[float, Range(0, 10_000)] = 60.0,
) -> float:
    """High importance adds 1/(k+1) − 1/(k+1+places): the worth of ten places at the top of one list."""
    return score + 1 / (k + 1) - 1 / (k + 1 + places) if memory.importance >= minimum else score


def confidence(score: float, memory: Memory, question: Question) -> float:
    """score × confidence."""
    return score * memory.confidence


def decay(
    score: float, memory: Memory, question: Question, *, half_life_days: Days = 30.0, by: Moment = "created_at"
) -> float:
    """score × 0.5^(age_days / half_life_days). Pinned memories do not decay; a time in the future has age 0."""
    if memory.pinned:
        return score
    return score * 0.5 ** (age_days(memory, question, by) / half_life_days)


def freshness(
    score: float,
    memory: Memory,
    question: Question,
    *,
    share: Unit = 0.1,
    half_life_days: Days = 90.0,
    by: Moment = "created_at",
) -> float:
    """A gentle decay that never takes more than `share`: score × (1 − share + share · 0.5^(age / half life))."""
    if memory.pinned:
        return score
    return score * (1 - share + share * 0.5 ** (age_days(memory, question, by) / half_life_days))


def types(score: float, memory: Memory, question: Question, *, weights: Mapping[str, float] | None = None) -> float:
    """score × the weight of the memory's type; types that are not listed count 1."""
    return score * (weights or {}).get(memory.type, 1.0)


def temporal(
    score: float,
    memory: Memory,
    question: Question,
    *,
    inside: Factor = 1.0,
    bonus: Factor = 0.0,
    reach_days: Days = 3.0,
) -> float:
    """Where the words of the question point at a time, memories from it are favoured, others are not filtered.

    score × inside within the window; besides, bonus · exp(−days outside / (reach_days + window / 4)) is added.
    """
    window = question.window
    if window is None:
        return score
    within = window.start <= memory.created_at < window.end
    fade = nearness(memory, window, reach_days) if bonus else 0.0
    return score * (inside if within else 1.0) + bonus * fade


def speaker(score: float, memory: Memory, question: Question, *, bonus: Factor = 0.1) -> float:
    """A memory of somebody whom the question names gains the bonus (metadata.speaker)."""
    name = memory.metadata.get("speaker")
    if not isinstance(name, str) or not name.strip():
        return score
    return score + bonus if name.split()[0].lower() in question.words else score


def role(
    score: float,
    memory: Memory,
    question: Question,
    *,
    roles: tuple[str, ...] = ("assistant", "system"),
    penalty: Factor = 0.1,
) -> float:
    """What the assistant said counts less than what the user said, unless the question is about what the assistant said
    or both did ("you said", "how did we")."""
    spoken = (memory.metadata.get("role") or memory.metadata.get("speaker")) in roles
    return score - penalty if spoken and not SHARED_WORK & set(question.words) else score


def thin(
    score: float,
    memory: Memory,
    question: Question,
    *,
    penalty: Factor = 0.15,
    words: Annotated[int, Range(1, 10_000)] = 40,
) -> float:
    """A turn of a conversation that asks or nods counts less than one that tells something.

    score − penalty · (1 − log(1 + n) / log(1 + words)), where n words of the turn, `words` at most, ask nothing.
    """
    if memory.type != EPISODE or memory.scope.session is None:
        return score
    return score - penalty * (1 - log1p(min(stated_words(memory.content), words)) / log1p(words))


def intent(
    score: float, memory: Memory, question: Question, *, factors: Mapping[str, Mapping[str, float]] | None = None
) -> float:
    """Preference and concrete-fact questions favour and damp kinds of memory; the factors multiply."""
    if not question.intents:
        return score
    return score * intents.factor(question.intents, intents.kinds(memory), factors=factors)


def exact(
    score: float,
    memory: Memory,
    question: Question,
    *,
    bonus: Factor = 1.0,
    k: Annotated[float, Range(0, 10_000)] = 60.0,
) -> float:
    """A memory that holds the question's words one after the other gains bonus / (k + 1)."""
    wanted, text = same_text(" ".join(question.words)), same_text(memory.content)
    if not wanted or wanted not in text:
        return score
    # A word inside another is another word, except where words are not parted.
    whole = has_unspaced(wanted) or re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text)
    return score + bonus / (k + 1) if whole else score


PRIORS: Mapping[str, Prior] = {
    "importance": importance,
    "promote": promote,
    "confidence": confidence,
    "decay": decay,
    "freshness": freshness,
    "types": types,
    "temporal": temporal,
    "speaker": speaker,
    "role": role,
    "thin": thin,
    "intent": intent,
    "exact": exact,
}


def nearness(memory: Memory, window: TimeWindow, reach_days: float = 3.0) -> float:
    """1 for a memory from the window, less the further outside: exp(−days outside / (reach_days + window / 4))."""
    away = max((window.start - memory.created_at).total_seconds(), (memory.created_at - window.end).total_seconds())
    width = (window.end - window.start).total_seconds()
    return exp(-max(away, 0.0) / (reach_days * DAY_SECONDS + width / 4))


def stated_words(content: str) -> int:
    """How many words of a text stand in no question; of a long text, those at its beginning."""
    sentences = SENTENCE.findall(content[:READ_CHARACTERS])
    return sum([len(spread(said).split()) for said, end in sentences if ASKING.isdisjoint(end)])


def age_days(memory: Memory, question: Question, by: Moment = "created_at") -> float:
    """How old a memory is at the time of the question, never negative."""
    moment = getattr(memory, by)
    return max(0.0, (question.now - moment).total_seconds() / DAY_SECONDS)
