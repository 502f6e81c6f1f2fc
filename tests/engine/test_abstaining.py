"""Saying nothing when there is nothing: rates, notes and doors."""

from __future__ import annotations

import pytest

from recollect import profiles
from recollect.domain.errors import InvalidInput
from recollect.engine import Engine
from recollect.stages.confidence import logistic
from tests.engine.conftest import Open

SEEDS = ("two-stage", "importance-prior", "live-weights", "retry-ladder", "token-budget", "token-budget-lexical")
KNOWN = "when does the ferry leave the harbour"
UNKNOWN = "which famous sculptor carved the marble cathedral fountain with golden dolphins beside the harbour"


@pytest.fixture
def town(opened: Open) -> Engine:
    engine = opened(embedder="none")
    for text in (
        "The ferry leaves the harbour at noon.",
        "Anna keeps bees behind the old barn.",
        "The bakery sells rye bread on Fridays.",
        "Rain closed the mountain road for a week.",
    ):
        engine.remember(text)
    for number in range(unasked_from()):
        engine.remember(f"Invoice {number} was paid in time.", dedupe=False)
    return engine


def unasked_from() -> int:
    recipe = profiles.load("balanced").confidence
    assert recipe is not None
    return recipe.unasked_from


@pytest.mark.covers("more.abstain")
def test_every_recall_says_how_sure_it_is(town: Engine) -> None:
    sure, unsure = town.recall(KNOWN), town.recall(UNKNOWN)
    assert sure.trace.confidence is not None and unsure.trace.confidence is not None
    assert sure.trace.confidence > 0.5 > unsure.trace.confidence
    assert len(unsure) and not unsure.abstained, "who asks gets an answer"
    evidence = sure.trace.evidence
    assert evidence is not None and evidence.calibration == "words"
    total = evidence.base + sum(one.adds for one in evidence.signs)
    assert logistic(total) == pytest.approx(sure.trace.confidence)


def test_who_asks_is_told_when_probably_nothing_fits(town: Engine) -> None:
    (note,) = town.recall(UNKNOWN).trace.notes
    assert note.startswith("probably nothing here fits: the chance is ")
    assert town.recall(KNOWN).trace.notes == ()
    assert town.recall(UNKNOWN, options={"confidence.keep_unasked": 1.0}).trace.notes == (), "no floor, no doubt"
    assert not any("probably" in note for note in town.recall(UNKNOWN, unasked=True).trace.notes), "nothing is here"


@pytest.mark.covers("more.abstain")
def test_unasked_and_unsure_returns_nothing_and_says_why(town: Engine) -> None:
    answer = town.recall(UNKNOWN, unasked=True)
    assert answer.abstained and len(answer) == 0 and answer.render() == ""
    assert any("nothing relevant enough" in note and "97 %" in note for note in answer.trace.notes)
    nearest = answer.dropped[0]
    assert nearest.stage == "confidence" and nearest.id == town.recall(UNKNOWN)[0].id
    known = town.recall(KNOWN, unasked=True)
    assert len(known) and not known.abstained


@pytest.mark.parametrize("embedder", ["none", "fake"])
def test_a_handful_of_memories_is_never_withheld_from_a_prompt(opened: Open, embedder: str) -> None:
    engine = opened(embedder=embedder)
    for number in range(unasked_from() - 1):
        engine.remember(f"Invoice {number} was paid at the harbour.", dedupe=False)
    engine.upkeep()
    assert len(engine.recall(UNKNOWN, unasked=True))
    assert engine.recall(UNKNOWN, options={"confidence.keep": 0.97}).abstained, "a rate that was asked for"
    engine.remember("Invoices are paid at the harbour.", dedupe=False)
    engine.upkeep()
    assert engine.recall(UNKNOWN, unasked=True).abstained


def test_of_a_handful_nobody_says_how_sure_it_is(opened: Open) -> None:
    engine = opened(embedder="none")
    for number in range(unasked_from() - 1):
        engine.remember(f"Invoice {number} was paid at the harbour.", dedupe=False)
    answer = engine.recall("who pays for the ferries?")
    assert answer.trace.confidence is None and answer.trace.evidence is not None
    assert answer.trace.evidence.is_handful and answer.trace.notes == ()
    rated = engine.recall(UNKNOWN, options={"confidence.keep": 0.97})
    assert rated.abstained and rated.trace.confidence is not None, "a rate that was asked for rests on it"
    engine.remember("Invoices are paid at the harbour.", dedupe=False)
    assert engine.recall("who pays for the ferries?").trace.confidence is not None


@pytest.mark.covers("more.abstain")
def test_the_floor_is_a_rate_that_a_request_may_set(town: Engine) -> None:
    strict = town.recall(UNKNOWN, options={"confidence.keep": 0.97})
    assert strict.abstained and strict.trace.evidence is not None and strict.trace.evidence.keep == 0.97
    assert not town.recall(UNKNOWN, unasked=True, options={"confidence.keep_unasked": 1.0}).abstained
    floors: list[float] = []
    for keep in (0.6, 0.8, 0.9, 0.97, 0.99):
        evidence = town.recall(KNOWN, options={"confidence.keep": keep}).trace.evidence
        assert evidence is not None and evidence.floor is not None
        floors.append(evidence.floor)
    assert floors == sorted(floors, reverse=True)
    with pytest.raises(InvalidInput, match=r"between 0\.5 and 1"):
        town.recall(KNOWN, options={"confidence.keep": 97})


@pytest.mark.covers("more.abstain")
def test_a_hook_is_told_nothing_unless_it_insists(town: Engine) -> None:
    silent, _ = town.recollect(UNKNOWN, "s1", profile="balanced")
    assert silent.text == "" and silent.ids == ()
    insisted, _ = town.recollect(UNKNOWN, "s1", profile="balanced", force=True)
    assert insisted.ids


def test_words_that_stand_in_tags_count(town: Engine) -> None:
    town.remember("Olaf repairs it every spring.", tags=["lighthouse", "lamp"])
    answer = town.recall("lighthouse lamp", unasked=True)
    assert [hit.content for hit in answer] == ["Olaf repairs it every spring."]
    assert answer.trace.confidence is not None and answer.trace.confidence > 0.5


def test_with_meaning_the_models_own_calibration_is_used(opened: Open) -> None:
    engine = opened(embedder="fake")
    engine.remember("The ferry leaves the harbour at noon.")
    engine.upkeep()
    evidence = engine.recall(KNOWN).trace.evidence
    assert evidence is not None and evidence.calibration == "words", "nobody calibrated the fake embedder"
    assert engine.recall("harbour", mode="semantic").trace.confidence is None


def test_an_empty_store_is_unsure_of_nothing(opened: Open) -> None:
    answer = opened().recall(KNOWN, unasked=True)
    assert len(answer) == 0 and not answer.abstained and answer.trace.confidence is None
    assert opened().recall("", unasked=True).trace.confidence is None


@pytest.mark.parametrize("name", SEEDS)
def test_the_seeds_know_no_confidence(town: Engine, name: str) -> None:
    assert profiles.load(name).confidence is None
    answer = town.recall(UNKNOWN, profile=name, unasked=True)
    assert answer.trace.confidence is None and not answer.abstained
