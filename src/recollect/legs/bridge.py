"""The bridge leg: the second step of a question that takes two.

What the first wave found (the anchors) names other things; memories about those things may hold the rest of the
answer. The text index is the concept graph: its postings are the edges between concepts and memories, always current,
at no cost on the write path. One step, typed and weighed by rarity, beat PageRank over the same graph (decision 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Annotated

from recollect.domain.memory import Memory
from recollect.domain.profile import Range
from recollect.domain.query import Node, Or, Phrase, Term, Unit
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.legs.found import Found
from recollect.ports import Records, TextIndex, TextMatches
from recollect.stages.concepts import Words, concepts, subject

MAX_UNITS = 32
MOST_COMMON_COUNT = 20
MOST_COMMON_SHARE = 0.05
SHARED = 0.5
"""What a shared concept is worth against a memory that is about what the anchor names."""


def bridge(
    index: TextIndex,
    records: Records,
    question: Question,
    anchors: Sequence[tuple[str, float]],
    *,
    limit: Annotated[int, Range(1, 1000)] = 100,
    anchor_limit: Annotated[int, Range(1, 50)] = 8,
    sharpness: Annotated[float, Range(0, 20)] = 4.0,
) -> Found:
    """score(d) = max over anchors of (anchor's score / best score)^sharpness · link(anchor, d).

    link: 1/n where d is about something the anchor names (n memories are), half the rarity of the concept where d
    names the anchor's subject or shares another concept with it.
    """
    best = max((score for _, score in anchors), default=0.0)
    if best <= 0:
        return Found()
    strength = {id: (score / best) ** sharpness for id, score in anchors[:anchor_limit] if score > 0}
    sources = records.fetch(list(strength))
    named = {one.id: _names(one) for one in sources}
    units = _units(sources, named)
    if not units:
        return Found()
    matches = index.match(_any(list(units)), question.filter, limit)
    return Found(tuple(_scored(matches, units, sources, named, strength, records)[:limit]))


def _names(memory: Memory) -> tuple[Words, ...]:
    """What a memory names, its own subject first."""
    own = subject(memory)
    return tuple(dict.fromkeys((*([own] if own else []), *concepts(memory.content))))


def _units(sources: Sequence[Memory], named: dict[str, tuple[Words, ...]]) -> dict[Unit, Words]:
    """The concepts to search for, taken from the anchors in turn, so that none is starved by a long one."""
    found: dict[Unit, Words] = {}
    longest = max((len(names) for names in named.values()), default=0)
    for place in range(longest):
        for source in sources:
            names = named[source.id]
            if place < len(names) and len(found) < MAX_UNITS:
                name = names[place]
                found[Term(name[0]) if len(name) == 1 else Phrase(name)] = name
    return found


def _any(units: list[Unit]) -> Node:
    return Or(tuple(units)) if len(units) > 1 else units[0]


def _scored(
    matches: TextMatches,
    units: dict[Unit, Words],
    sources: Sequence[Memory],
    named: dict[str, tuple[Words, ...]],
    strength: dict[str, float],
    records: Records,
) -> list[Hit]:
    held = matches.counts.sum(axis=2) > 0
    most = max(MOST_COMMON_COUNT, MOST_COMMON_SHARE * matches.documents)
    names = [units[unit] for unit in matches.units]
    useful = {place: _rarity(matches, place) for place, count in enumerate(matches.frequencies) if 0 < count <= most}
    subjects = {one.id: subject(one) for one in records.fetch(matches.ids)}
    sharing = Counter(one for one in subjects.values() if one)
    hits: list[Hit] = []
    for row, id in enumerate(matches.ids):
        about = subjects.get(id, ())
        links = {names[at]: _link(names[at], rarity, about, sharing) for at, rarity in useful.items() if held[row, at]}
        worth = max((_reach(links, named[one.id]) * strength[one.id] for one in sources if one.id != id), default=0.0)
        if worth > 0:
            hits.append(Hit(id, worth))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _reach(links: dict[Words, float], names: tuple[Words, ...]) -> float:
    """The strongest of the concepts that the anchor names too."""
    return max((links[name] for name in names if name in links), default=0.0)


def _link(name: Words, rarity: float, about: Words, sharing: Counter[Words]) -> float:
    return 1.0 / sharing[name] if name == about else SHARED * rarity


def _rarity(matches: TextMatches, place: int) -> float:
    """1 for a concept that two memories share, falling with the logarithm of how many do."""
    documents, count = max(matches.documents, 2), float(matches.frequencies[place])
    return min(1.0, log(1 + documents / count) / log(1 + documents / 2))
