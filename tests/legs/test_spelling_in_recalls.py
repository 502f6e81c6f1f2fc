"""A misspelt question in a whole recall: what is embedded, what is searched, and what the answer says."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.domain.errors import Timeout
from tests.world import World, ids

QUESTION = "when was Carolien's funraiser?"
READ = "when was Caroline's fundraiser?"


@pytest.fixture
def world() -> World:
    world = World()
    world.remember("a", "the fundraiser of Caroline took place in May", 60)
    world.remember("b", "the weather was fine", 10)
    return world


def test_words_and_meaning_are_asked_for_what_was_meant(world: World) -> None:
    assert world.embedder is not None
    answer = world.ask("balanced", QUESTION)
    assert world.embedder.queries == [READ]
    assert answer.trace.lists["lexical"] == ("a",)
    assert answer.query == QUESTION, "the question is still the one that was asked"
    assert [note.split(";")[0] for note in answer.trace.notes[:2]] == [
        "read 'carolien' as 'caroline'", "read 'funraiser' as 'fundraiser'",
    ]  # fmt: skip
    assert answer.trace.attempts[0].rung == "initial" and len(answer.trace.attempts) == 1
    assert ids(answer) == ids(world.ask("balanced", READ))


@pytest.mark.parametrize(
    ("profile", "text", "options"),
    [
        ("balanced", f'"{QUESTION}"', {}),
        ("balanced", QUESTION, {"spelling.most": 0}),
        ("two-stage", QUESTION, {}),
        ("balanced", READ, {}),
    ],
)
def test_nothing_is_read_otherwise_where_nobody_wants_it(
    world: World, profile: str, text: str, options: dict[str, Any]
) -> None:
    assert not [note for note in world.ask(profile, text, options=options).trace.notes if note.startswith("read ")]


def test_a_vocabulary_that_cannot_be_read_costs_the_spelling_and_not_the_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def similar(*_: object) -> list[tuple[str, float]]:
        raise Timeout("it takes too long")

    monkeypatch.setattr(world.store.text, "similar", similar)
    answer = world.ask("balanced", f"{QUESTION} weather", options={"ladder.rungs": ["initial"]})
    assert ids(answer) and "spelling was not looked at: it takes too long" in answer.trace.notes[0]
