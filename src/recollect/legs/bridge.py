"""The bridge leg: the second step of a question that takes two.

What the first wave found (the anchors) names other things; memories *about* those things may hold the rest of the
answer. What a memory is about is its title or first line, which every store can look up, so a step costs the same in a
store of any size. One such step beat PageRank over a graph of shared concepts (decision 6). Where a language model has
read the memories, its `mentions` links are such steps too (decision 13).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Annotated

from recollect.domain.memory import MENTIONS, Memory
from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.subjects import Words, fold, subject
from recollect.legs.found import Found
from recollect.ports import LinkIndex, TextIndex
from recollect.stages.concepts import mentions, names

MOST_ABOUT = 20
"""What so many memories are about leads nowhere in particular."""
LEAST_STRENGTH = 0.05


def bridge(
    index: TextIndex,
    memories: Mapping[str, Memory],
    question: Question,
    anchors: Sequence[tuple[str, float]],
    links: LinkIndex | None = None,
    *,
    limit: Annotated[int, Range(1, 1000)] = 100,
    anchor_limit: Annotated[int, Range(1, 50)] = 8,
    sharpness: Annotated[float, Range(0, 20)] = 4.0,
    named: Annotated[float, Range(0, 10)] = 0.0,
) -> Found:
    """score(d) = max over the anchors that name what d is about of strength(anchor) / how many memories are about it
    (by a `mentions` link: / how many of them the anchor has).

    strength: (the anchor's score / the best of them)^sharpness, where `named` is first added for what the question
    itself names, divided by the root of how many anchors are about it. memories: at least those of the anchors.
    """
    best = max((score for _, score in anchors), default=0.0)
    if best <= 0:
        return Found()
    known = {id: memories[id] for id, score in anchors if score > 0 and id in memories}
    scores = _sure({id: score / best for id, score in anchors if id in known}, known, question, named)
    sources = sorted(scores, key=lambda id: (-scores[id], id))[:anchor_limit]
    best = scores[sources[0]] if sources else 1.0
    strength = {id: (scores[id] / best) ** sharpness for id in sources}
    said = {id: names(known[id].content) for id in sources if strength[id] >= LEAST_STRENGTH}
    about = index.about(sorted(set[Words]().union(*said.values())), question.filter, MOST_ABOUT)
    worth: dict[str, float] = {}
    for name, ids in about.items():
        for source in said:
            if name in said[source]:
                for id in ids:
                    if id != source:
                        worth[id] = max(worth.get(id, 0.0), strength[source] / len(ids))
    for source, targets in _mentioned(links, list(said)).items():
        for id in targets:
            worth[id] = max(worth.get(id, 0.0), strength[source] / len(targets))
    hits = [Hit(id, score) for id, score in worth.items()]
    return Found(tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]))


def _mentioned(links: LinkIndex | None, sources: Sequence[str]) -> dict[str, list[str]]:
    """For each of these anchors the memories that it leads to by a model's word."""
    found: dict[str, list[str]] = {}
    for link in links.links(sources, (MENTIONS,)) if links is not None else ():
        if link.source in sources:
            found.setdefault(link.source, []).append(link.target)
    return found


def _sure(
    scores: Mapping[str, float], known: Mapping[str, Memory], question: Question, named: float
) -> dict[str, float]:
    """The anchors' scores, raised where the question names what they are about: there the second step starts."""
    asked = fold(question.text)
    subjects = {id: about for id in scores if mentions(asked, about := subject(known[id]))}
    sharing = Counter(subjects.values())
    return {
        id: score + named / sqrt(sharing[subjects[id]]) if id in subjects else score for id, score in scores.items()
    }
