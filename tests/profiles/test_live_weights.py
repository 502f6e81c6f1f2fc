"""Seed 002: two weights, changed at run time, scoped to a session or project."""

from __future__ import annotations

import math

import pytest

from recollect.domain.errors import ModelUnavailable, StoreUnavailable
from recollect.domain.question import Filter
from tests.world import World, counted, ids, scores

BOTH = {"legs.lexical.weight": 1.0}


def world_of_two() -> World:
    world = World()
    world.remember("near", "nothing in common", degrees=1)
    world.remember("word", "the hello message", degrees=60)
    return world


@pytest.mark.covers("live.short-circuit", "fusion.zero-weight")
def test_keyword_weight_zero_makes_no_full_text_call() -> None:
    world = world_of_two()
    world.store, ports = counted(world.store)
    answer = world.ask("live-weights", "hello")
    assert ports["text"].calls == []
    assert answer.trace.legs["lexical"].skipped == "weight 0"
    assert ids(answer) == ["near", "word"]


@pytest.mark.covers("live.short-circuit")
@pytest.mark.parametrize(
    ("mode", "weights", "told"),
    [
        ("auto", {}, "nothing was searched (dense: no embedder, lexical: weight 0)"),
        ("bm25", {}, "nothing was searched (dense: mode bm25, lexical: weight 0)"),
        ("auto", {"legs.dense.weight": 0}, "nothing was searched (dense: weight 0, lexical: weight 0)"),
    ],
)
def test_where_no_leg_may_search_the_answer_says_why_it_is_empty(mode: str, weights: dict[str, int], told: str) -> None:
    world = World(embedder=None)
    world.remember("word", "the hello message")
    answer = world.ask("live-weights", "hello", mode=mode, options=weights)
    assert (ids(answer), answer.trace.notes) == ([], (told,))
    assert world.ask("live-weights", "hello", options=BOTH).trace.notes == ()


@pytest.mark.covers("fusion.zero-weight")
def test_semantic_weight_zero_embeds_nothing_and_lets_nothing_in() -> None:
    world = world_of_two()
    answer = world.ask("live-weights", "hello", options={"legs.dense.weight": 0, **BOTH})
    assert ids(answer) == ["word"]
    assert world.embedder is not None and world.embedder.queries == []


@pytest.mark.covers("fusion.rrf", "fusion.ties")
def test_the_sums_and_first_seen_ties_of_the_seed() -> None:
    world = World()
    world.remember("zz", "nothing in common", degrees=1)
    world.remember("aa", "hello hello", degrees=None)
    answer = world.ask("live-weights", "hello", options=BOTH)
    assert scores(answer) == {"zz": 1 / 61, "aa": 1 / 61}
    assert ids(answer) == ["zz", "aa"], "equal scores: the semantic list was seen first"
    heavier = world.ask("live-weights", "hello", options={"legs.dense.weight": 0.5, "legs.lexical.weight": 2.0})
    assert scores(heavier) == {"aa": 2 / 61, "zz": 0.5 / 61}


@pytest.mark.covers("live.recent")
def test_recent_ids_are_excluded_from_both_legs_and_the_keyword_leg_asks_for_twice_the_limit() -> None:
    world = World()
    for number in range(12):
        world.remember(f"m{number:02}", f"hello number {number}", degrees=number)
    world.store, ports = counted(world.store)
    recent = frozenset({"m00", "m01"})
    answer = world.ask("live-weights", "hello", options=BOTH, limit=4, filter=Filter(exclude=recent))
    assert len(answer) == 4 and not recent & set(ids(answer))
    assert not recent & {id for one in answer.trace.lists.values() for id in one}
    ((words, _),) = ports["text"].named("match")
    ((meaning, _),) = ports["vectors"].named("search")
    assert words[2] == 8 and meaning[3] == 4


@pytest.mark.covers("live.threshold")
def test_a_minimum_cosine_holds_for_the_dense_leg_only() -> None:
    world = world_of_two()
    bar = math.cos(math.radians(30))
    answer = world.ask("live-weights", "hello", options={"legs.dense.minimum": bar, **BOTH})
    assert answer.trace.lists == {"dense": ("near",), "lexical": ("word",)}
    assert "minimum" not in world.ask("live-weights", "hello").trace.lists


@pytest.mark.covers("live.one-leg", "ladder.trace")
def test_one_leg_failing_falls_back_to_the_other_and_is_recorded() -> None:
    from dataclasses import replace

    class Broken:
        def match(self, *args: object, **named: object) -> object:
            raise StoreUnavailable("index is gone")

    world = world_of_two()
    whole = world.store
    world.store = replace(whole, text=Broken())  # type: ignore[arg-type]
    answer = world.ask("live-weights", "hello", options=BOTH)
    assert ids(answer) == ["near", "word"] and answer.trace.legs["lexical"].error == "index is gone"
    world.store = whole
    assert world.embedder is not None
    world.embedder.fail = OSError("socket closed")
    answer = world.ask("live-weights", "hello", options=BOTH)
    assert ids(answer) == ["word"] and answer.trace.legs["dense"].error == "socket closed"


@pytest.mark.covers("live.short-circuit")
@pytest.mark.parametrize(("mode", "step"), [("auto", "try again, or see the log"), ("semantic", "ask with mode auto")])
def test_where_the_only_leg_fails_the_error_names_a_step_that_is_left(mode: str, step: str) -> None:
    world = world_of_two()
    assert world.embedder is not None
    world.embedder.fail = OSError("socket closed")
    with pytest.raises(ModelUnavailable) as told:
        world.ask("live-weights", "hello", mode=mode)
    assert told.value.hint.startswith(step)


@pytest.mark.covers("live.scope")
def test_both_legs_search_the_same_scope() -> None:
    from recollect.domain.memory import Scope

    world = World()
    world.remember("in", "hello there", degrees=50, scope=Scope(project="p", session="1"))
    world.remember("out", "hello hello", degrees=0, scope=Scope(project="q", session="2"))
    world.store, ports = counted(world.store)
    answer = world.ask("live-weights", "hello", options=BOTH, filter=Filter(project="p"))
    assert answer.trace.lists == {"dense": ("in",), "lexical": ("in",)}
    assert ports["text"].named("match")[0][0][1] == ports["vectors"].named("search")[0][0][2]
