"""The graph leg: what is connected to what the first wave found, by personalised PageRank from the anchors.

Local push: mass starts at the anchors and spreads along links, only where there is enough of it to matter, so the
cost depends on the neighbourhood and not on the size of the store.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Annotated

from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.legs.found import Found
from recollect.ports import LinkIndex

Neighbours = Mapping[str, Sequence[str]]

MAX_NODES = 2000


def graph(
    links: LinkIndex,
    question: Question,
    anchors: Sequence[str],
    *,
    limit: Annotated[int, Range(1, 1000)] = 50,
    anchor_limit: Annotated[int, Range(1, 100)] = 10,
    restart: Annotated[float, Range(0.01, 0.99)] = 0.5,
    hops: Annotated[int, Range(1, 4)] = 2,
) -> Found:
    """Memories ordered by their PageRank mass; an anchor without any link stays out, it has nothing to say here."""
    seeds = list(dict.fromkeys(anchors))[:anchor_limit]
    neighbours = _neighbourhood(links, seeds, hops)
    mass = _push({id: 1.0 / place for place, id in enumerate(seeds, start=1)}, neighbours, restart)
    hits = [Hit(id, score) for id, score in mass.items() if neighbours.get(id)]
    return Found(tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]))


def _neighbourhood(links: LinkIndex, seeds: Sequence[str], hops: int) -> dict[str, list[str]]:
    """Who touches whom within `hops` of the seeds, fetched one ring at a time."""
    around: dict[str, dict[str, None]] = defaultdict(dict)
    ring, seen = list(seeds), set(seeds)
    for _ in range(hops):
        if not ring or len(seen) > MAX_NODES:
            break
        for link in links.links(ring):
            around[link.source][link.target] = None
            around[link.target][link.source] = None
        ring = sorted({id for one in ring for id in around[one]} - seen)
        seen.update(ring)
    return {id: list(others) for id, others in around.items()}


def _push(
    seeds: Mapping[str, float], neighbours: Neighbours, restart: float, epsilon: float = 1e-5
) -> dict[str, float]:
    """Approximate personalised PageRank by forward push (Andersen, Chung, Lang 2006)."""
    total = sum(seeds.values()) or 1.0
    residue = {id: weight / total for id, weight in seeds.items()}
    mass: dict[str, float] = defaultdict(float)
    queue = deque(residue)
    while queue:
        id = queue.popleft()
        held = residue.get(id, 0.0)
        others = neighbours.get(id, ())
        if held <= epsilon * max(1, len(others)):
            continue
        residue[id] = 0.0
        mass[id] += restart * held
        for other in others:
            residue[other] = residue.get(other, 0.0) + (1 - restart) * held / len(others)
            queue.append(other)
    return dict(mass)
