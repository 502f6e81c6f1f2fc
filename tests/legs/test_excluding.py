"""Legs that know no words are asked again without what a question excludes: in few steps, and never for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recollect.domain.errors import Timeout
from recollect.domain.query import Term
from recollect.domain.question import Question
from recollect.legs import excluding
from recollect.legs.excluding import sifted
from recollect.legs.latest import latest
from recollect.ports import TextIndex
from tests.world import NOW, World

WANTED = ["a", "b", "c"]
ASKED = Question("-pump", NOW, unwanted=Term("pump"), limit=3)


class Watched:
    """An index that counts how often all that is excluded was looked up, and may fail from a number on."""

    def __init__(self, index: TextIndex, fails_from: int = 10**9) -> None:
        self.index, self.fails_from = index, fails_from
        self.looked_up: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def match(self, query: Any, filter: Any, limit: int, *rest: Any) -> Any:
        if filter.only is None:
            self.looked_up.append(limit)
            if limit >= self.fails_from:
                raise Timeout("too many", "ask for fewer")
        return self.index.match(query, filter, limit, *rest)


@pytest.fixture
def world() -> World:
    """Three memories, and newer than they are a hundred that are excluded."""
    world = World()
    for id in WANTED:
        world.remember(id, "a quiet valve", days=10)
    for number in range(100):
        world.remember(f"p{number:03}", "the pump is loud", days=1)
    return world


def found(world: World, index: Any) -> list[str]:
    answer = sifted(lambda one: latest(world.store.records, one, limit=3), ASKED, index)
    return sorted(hit.id for hit in answer.hits)


@pytest.mark.parametrize(
    ("steps", "expected", "asked"),
    [
        ((200,), WANTED, [200]),
        ((10, 50, 200), WANTED, [10, 50, 200]),
        ((10, 98, 200), WANTED, [10, 98]),
        ((10, 50), [], [10, 50]),
    ],
)
def test_more_is_looked_up_as_long_as_it_was_not_enough(
    world: World, monkeypatch: pytest.MonkeyPatch, steps: tuple[int, ...], expected: list[str], asked: list[int]
) -> None:
    monkeypatch.setattr(excluding, "MOST_EXCLUDED", steps)
    assert world.store.text is not None
    index = Watched(world.store.text)
    assert (found(world, index), index.looked_up) == (expected, asked)


def test_nothing_is_looked_up_where_a_leg_found_nothing_that_is_excluded(world: World) -> None:
    assert world.store.text is not None
    index = Watched(world.store.text)
    answer = sifted(lambda one: latest(world.store.records, one, limit=3), replace(ASKED, unwanted=Term("tram")), index)
    assert len(answer.hits) == 3 and index.looked_up == []


def test_a_step_that_fails_costs_hits_and_not_the_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before it stands, without what is excluded."""
    monkeypatch.setattr(excluding, "MOST_EXCLUDED", (98, 200))
    assert world.store.text is not None
    world.remember("d", "a quiet tram", days=0)
    index = Watched(world.store.text, fails_from=200)
    kept = found(world, index)
    assert kept and not [id for id in kept if id.startswith("p")]
    monkeypatch.setattr(excluding, "MOST_EXCLUDED", (10, 200))
    assert found(world, index) == ["d"]
    with pytest.raises(Timeout):
        found(world, Watched(world.store.text, fails_from=10))
