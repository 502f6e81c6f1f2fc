"""The graph leg: personalised PageRank from the anchors over typed links, by local push."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from recollect.domain.memory import Link
from recollect.domain.question import Question
from recollect.legs.graph import MAX_NODES, graph
from tests.world import NOW

RESTART = 0.5


class Links:
    """A LinkIndex of edges that counts what it is asked."""

    def __init__(self, edges: list[tuple[str, str]]) -> None:
        self.edges = [Link(source, "see-also", target) for source, target in edges]
        self.asked = 0

    def links(self, ids: Sequence[str], types: Sequence[str] = ()) -> list[Link]:
        assert not types  # whatever connects two memories connects them
        self.asked += len(ids)
        wanted = set(ids)
        return [one for one in self.edges if one.source in wanted or one.target in wanted]

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        raise AssertionError


def power_iteration(edges: list[tuple[str, str]], seeds: dict[str, float]) -> dict[str, float]:
    """The same by the book: mass returns to the seeds with probability RESTART, else it walks along a link."""
    around: dict[str, list[str]] = {}
    for one, other in edges:
        around.setdefault(one, []).append(other)
        around.setdefault(other, []).append(one)
    total = sum(seeds.values())
    mass = {id: seeds.get(id, 0.0) / total for id in around}
    for _ in range(200):
        mass = {
            id: RESTART * seeds.get(id, 0.0) / total
            + (1 - RESTART) * sum(mass[other] / len(around[other]) for other in around[id])
            for id in around
        }
    return mass


@pytest.mark.covers("prior.graph")
@pytest.mark.parametrize("seed", range(5))
def test_local_push_is_personalised_pagerank(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"m{number:02}" for number in range(20)]
    edges = sorted({(one, other) for one in names for other in chance.sample(names, 2) if one < other})
    exact = power_iteration(edges, {names[0]: 1.0, names[1]: 0.5})
    found = graph(Links(edges), Question("q", NOW), [names[0], names[1]], limit=20, restart=RESTART, hops=4)
    for hit in found.hits:
        assert hit.score == pytest.approx(exact[hit.id], abs=2e-3)
    best = sorted((id for id in exact), key=lambda id: -exact[id])[:3]
    assert [hit.id for hit in found.hits][:3] == best


@pytest.mark.covers("prior.graph")
def test_an_anchor_without_links_says_nothing_and_a_hub_is_bounded() -> None:
    assert graph(Links([]), Question("q", NOW), ["a", "b"]).hits == ()
    links = Links([("hub", f"m{number:05}") for number in range(3 * MAX_NODES)])
    found = graph(links, Question("q", NOW), ["m00000"], limit=10, hops=4)
    assert [hit.id for hit in found.hits][:2] == ["m00000", "hub"] and len(found.hits) <= 10
    assert links.asked <= 2
