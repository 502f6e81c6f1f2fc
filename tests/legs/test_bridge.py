"""The second step of a question, by hand: two anchors, and memories about what they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from recollect.domain.memory import MENTIONS
from recollect.domain.question import Question
from recollect.legs.bridge import bridge
from tests.stages.asking import ask
from tests.world import World

pytestmark = pytest.mark.covers("prior.graph")

ANCHORS = (("anna", 2.0), ("ben", 1.0))
QUESTION = ask("who works where")


@pytest.fixture
def world() -> World:
    world = World(embedder=None)
    world.remember("anna", "She works at Northwind Traders now.", metadata={"title": "Anna Berg"})
    world.remember("ben", "He moved to Porto Alegre, as Ben Meyer told.", metadata={"title": "Ben Meyer"})
    world.remember("north", "A shop.", metadata={"title": "Northwind Traders"})
    world.remember("porto", "A city.", metadata={"title": "Porto Alegre"})
    world.remember("harbour", "A port.", metadata={"title": "Porto Alegre"})
    world.remember("other", "Nobody named it.", metadata={"title": "Lisbon Tower"})
    return world


def found(
    world: World,
    anchors: Sequence[tuple[str, float]] = ANCHORS,
    question: Question = QUESTION,
    known: Sequence[str] = ("anna", "ben"),
    **options: Any,
) -> list[tuple[str, Any]]:
    assert world.store.text is not None
    memories = {one.id: one for one in world.store.records.fetch(list(known))}
    given = {"sharpness": 1.0, **options}
    hits = bridge(world.store.text, memories, question, anchors, world.store.links, **given).hits
    return [(hit.id, pytest.approx(hit.score)) for hit in hits]


def test_what_a_better_anchor_names_stands_higher_and_what_many_are_about_lower(world: World) -> None:
    assert found(world) == [("north", 1.0), ("harbour", 0.25), ("porto", 0.25)]
    assert found(world, sharpness=2.0) == [("north", 1.0), ("harbour", 0.125), ("porto", 0.125)]
    assert found(world, sharpness=20.0) == [("north", 1.0)], "the weakest are not worth a look"


def test_a_store_without_links_is_led_on_by_names_alone(world: World) -> None:
    world.store = replace(world.store, links=None)
    assert found(world) == [("north", 1.0), ("harbour", 0.25), ("porto", 0.25)]


def test_the_limits_are_those_of_anchors_and_of_hits(world: World) -> None:
    assert found(world, anchor_limit=1) == [("north", 1.0)]
    assert found(world, limit=2) == [("north", 1.0), ("harbour", 0.25)]


def test_an_anchor_that_the_question_names_is_the_surer_one(world: World) -> None:
    question = ask("where does ben meyer live")
    assert found(world, question=question, named=1.0) == [("north", 1 / 1.5), ("harbour", 0.5), ("porto", 0.5)]
    world.remember("twin", "He lives in Lisbon Tower.", metadata={"title": "Ben Meyer (painter)"})
    anchors, known = (("anna", 2.0), ("ben", 1.0), ("twin", 1.0)), ("anna", "ben", "twin")
    surer = 0.5 + 1 / 2**0.5  # two share the name, so each gains less
    assert dict(found(world, anchors, question, known, named=1.0))["north"] == 1 / surer


def test_what_two_anchors_name_is_worth_the_better_of_them(world: World) -> None:
    world.remember("carl", "He went to Northwind Traders, too.")
    assert found(world, (("anna", 2.0), ("carl", 1.0)), known=("anna", "carl")) == [("north", 1.0)]


def test_without_anchors_that_are_known_there_is_no_second_step(world: World) -> None:
    assert found(world, ()) == found(world, [("anna", 0.0)]) == found(world, known=()) == []
    assert found(world, [("gone", 9.0), ("anna", 2.0), ("ben", 0.0)]) == [("north", 1.0)]


def test_a_models_links_lead_on_too_shared_among_what_an_anchor_mentions(world: World) -> None:
    for target in ("other", "porto"):
        world.link("anna", MENTIONS, target)
    world.link("other", MENTIONS, "anna")
    world.link("anna", "see-also", "harbour")
    assert found(world, ANCHORS[:1]) == [("north", 1.0), ("other", 0.5), ("porto", 0.5)]
