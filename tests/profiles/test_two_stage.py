"""Seed 000: keyword hits widen a recency pool, four lists are fused, three are recollected."""

from __future__ import annotations

import math

import pytest

from recollect.domain.question import Filter
from tests.world import World, angle, counted, ids, scores


def rrf(weight: float, rank: int) -> float:
    return weight / (60 + rank)


@pytest.mark.covers("two-stage.lists", "fusion.ties")
def test_four_lists_with_dense_ties_and_their_weights() -> None:
    world = World()
    world.remember("a", "deploy failed on staging", degrees=10, days=1, access_count=3)
    world.remember("b", "lunch menu of the week", degrees=20, days=2, access_count=3)
    world.remember("c", "deploy deploy runbook", degrees=30, days=3, access_count=0)
    got = scores(world.ask("two-stage", "deploy"))
    # BM25: c holds the word twice in three words and leads; cosine and created_at: a, b, c; access: a and b tie.
    assert got["a"] == pytest.approx(rrf(1, 2) + rrf(1, 1) + rrf(0.6, 1) + rrf(0.4, 1), abs=1e-12)
    assert got["b"] == pytest.approx(rrf(1, 2) + rrf(0.6, 2) + rrf(0.4, 1), abs=1e-12)
    assert got["c"] == pytest.approx(rrf(1, 1) + rrf(1, 3) + rrf(0.6, 3) + rrf(0.4, 2), abs=1e-12)


@pytest.mark.covers("two-stage.bm25", "two-stage.pool")
def test_an_old_keyword_hit_outside_the_recency_pool_joins_it() -> None:
    world = World()
    for number in range(205):
        world.remember(f"new{number:03}", f"note number {number}", degrees=80, days=number / 100)
    world.remember("old", "the kerberos keytab lives on the bastion", degrees=89, days=400)
    assert "old" not in world.ask("two-stage", "breakfast").trace.lists["similarity"]
    answer = world.ask("two-stage", "kerberos keytab")
    assert ids(answer)[0] == "old"
    assert answer.trace.pool == 201


@pytest.mark.covers("two-stage.pool")
def test_the_pool_is_the_200_most_recently_accessed_that_have_a_vector() -> None:
    world = World()
    for number in range(210):
        world.remember(f"m{number:03}", f"note {number}", degrees=80, days=number)
    world.remember("bare", "no vector yet", degrees=None, days=0)
    answer = world.ask("two-stage", "breakfast", limit=200)
    assert set(ids(answer)) == {f"m{number:03}" for number in range(200)}


@pytest.mark.covers("two-stage.bm25")
def test_the_best_fifty_by_bm25_never_an_arbitrary_fifty() -> None:
    world = World()
    for number in range(80):
        world.remember(f"m{number:02}", "deploy " + "filler " * (80 - number), days=number)
    lexical = world.ask("two-stage", "deploy").trace.lists["lexical"]
    assert lexical == tuple(f"m{number:02}" for number in range(79, 29, -1))


@pytest.mark.covers("two-stage.cosine-once")
def test_one_cosine_per_candidate_in_one_call() -> None:
    world = World()
    for number in range(20):
        world.remember(f"m{number}", f"deploy note {number}", degrees=number)
    world.store, ports = counted(world.store)
    world.ask("two-stage", "deploy")
    ((args, _),) = ports["vectors"].named("similarities")
    assert sorted(args[2]) == sorted({f"m{number}" for number in range(20)})
    assert ports["vectors"].named("search") == []
    assert len(ports["records"].named("fetch")) == 1


@pytest.mark.covers("two-stage.boost")
def test_high_importance_is_boosted_by_the_worth_of_ten_places() -> None:
    world = World()
    world.remember("plain", "deploy notes", degrees=10, importance=0.5)
    world.remember("vital", "deploy notes again", degrees=20, importance=0.8)
    answer = world.ask("two-stage", "deploy")
    vital = next(hit for hit in answer if hit.id == "vital")
    (step,) = vital.adjustments
    assert (step.prior, step.after - step.before) == ("promote", pytest.approx(1 / 61 - 1 / 71, abs=1e-15))
    assert next(hit for hit in answer if hit.id == "plain").adjustments == ()


@pytest.mark.covers("two-stage.boost")
def test_the_boost_follows_the_k_of_the_fusion() -> None:
    world = World()
    world.remember("vital", "deploy notes", importance=0.9)
    (hit,) = world.ask("two-stage", "deploy", options={"fusion.k": 10})
    assert hit.adjustments[0].after - hit.adjustments[0].before == pytest.approx(1 / 11 - 1 / 21)


@pytest.mark.covers("two-stage.top3")
def test_three_are_returned() -> None:
    world = World()
    for number in range(9):
        world.remember(f"m{number}", "deploy", degrees=number)
    answer = world.ask("two-stage", "deploy")
    assert len(answer) == 3
    assert {one.stage for one in answer.dropped} == {"top"} and len(answer.dropped) == 6


@pytest.mark.covers("two-stage.null-vector", "prior.degrade")
def test_a_prompt_that_cannot_be_embedded_leaves_the_cosine_list_absent() -> None:
    world = World()
    world.remember("a", "deploy notes", degrees=90, days=1)
    world.remember("b", "deploy notes too", degrees=0, days=2)
    assert world.embedder is not None
    world.embedder.fail = RuntimeError("out of memory")
    answer = world.ask("two-stage", "deploy")
    assert "similarity" not in {part.list for hit in answer for part in hit.contributions}
    assert any("out of memory" in note for note in answer.trace.notes)


@pytest.mark.covers("two-stage.lists")
def test_raw_scores_are_what_each_list_measured() -> None:
    world = World()
    memory = world.remember("a", "deploy notes", degrees=60, days=1, access_count=7)
    (hit,) = world.ask("two-stage", "deploy")
    raw = {part.list: part.raw for part in hit.contributions}
    assert raw["similarity"] == pytest.approx(math.cos(math.radians(60)), abs=1e-6)
    assert raw["recency"] == memory.created_at.timestamp()
    assert raw["access"] == 7.0


@pytest.mark.covers("two-stage.pool")
def test_the_pool_obeys_the_scope() -> None:
    from recollect.domain.memory import Scope

    world = World()
    world.remember("mine", "deploy", degrees=5, scope=Scope(project="shop"))
    world.remember("other", "deploy", degrees=0, scope=Scope(project="blog"))
    assert ids(world.ask("two-stage", "deploy", filter=Filter(project="shop"))) == ["mine"]
    assert angle(0)[0] == 1.0
