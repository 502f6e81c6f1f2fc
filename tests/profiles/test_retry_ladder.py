"""Seed 003: query language, ladder, modes, unanimity, rerank, intent, time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from recollect import profiles
from recollect.domain.errors import ModelUnavailable
from tests.world import NOW, HandEmbedder, World, ids, scores

RUNGS = ["initial", "strongest_term", "force-refresh", "refreshed_sanitised", "refreshed_strongest", "trigram_fuzzy"]


class Judge:
    """A reranker with opinions; None stays silent about a text."""

    id = "judge"

    def __init__(self, **opinions: float) -> None:
        self.opinions = opinions
        self.asked: list[list[str]] = []

    def score(self, query: str, texts: list[str], budget_ms: float | None = None) -> list[float]:
        self.asked.append(list(texts))
        return [self.opinions.get(text.split()[0], 0.0) for text in texts]


def rungs(answer: Any) -> list[tuple[str, int]]:
    return [(one.rung, one.hits) for one in answer.trace.attempts]


@pytest.mark.covers("ladder.rungs", "ladder.trace")
def test_hits_at_the_first_rung_end_the_ladder() -> None:
    world = World(embedder=None)
    world.remember("a", "deploy notes")
    answer = world.ask("retry-ladder", "deploy")
    assert rungs(answer) == [("initial", 1)]
    assert answer.trace.query


@pytest.mark.covers("ladder.rungs")
def test_the_strongest_term_is_tried_when_the_whole_query_finds_nothing() -> None:
    world = World(embedder=None)
    world.remember("a", "kubernetes upgrade notes")
    answer = world.ask("retry-ladder", "nosuchword AND kubernetes")
    assert ids(answer) == ["a"]
    assert rungs(answer) == [("initial", 0), ("strongest_term", 1)]
    assert [one.query for one in answer.trace.attempts] == ["nosuchword AND kubernetes", "kubernetes"]


@pytest.mark.covers("ladder.strongest")
def test_of_two_words_as_long_the_one_that_fewer_memories_hold_is_the_strongest() -> None:
    world = World(embedder=None)
    for id in "abc":
        world.remember(id, f"database notes {id}")
    world.remember("p", "pipeline notes")
    answer = world.ask("retry-ladder", "database AND pipeline")
    assert (ids(answer), rungs(answer)[-1]) == (["p"], ("strongest_term", 1))


@pytest.mark.covers("ladder.rungs", "ladder.fuzzy")
def test_all_rungs_in_order_and_a_typo_is_caught_by_the_last() -> None:
    world = World(embedder=None)
    world.remember("a", "kubernetes upgrade notes")
    world.remember("b", "kubernetes")
    world.remember("c", "lunch")
    answer = world.ask("retry-ladder", "kubrenetes")
    assert [one.rung for one in answer.trace.attempts] == RUNGS
    assert [one.hits for one in answer.trace.attempts] == [0, 0, 0, 0, 0, 2]
    assert answer.trace.attempts[2].query == "", "the refresh issues no search"
    assert set(ids(answer)) == {"a", "b"}
    raw = {hit.contributions[0].raw for hit in answer}
    assert len(raw) == 1 and 0.3 <= raw.pop() < 1.0, "both are worth the likeness of the same word"


@pytest.mark.covers("ladder.rungs")
def test_an_empty_index_ends_the_ladder_without_an_error() -> None:
    answer = World(embedder=None).ask("retry-ladder", "anything at all")
    assert ids(answer) == [] and [one.hits for one in answer.trace.attempts] == [0] * 6


@pytest.mark.covers("ladder.modes", "ladder.trace")
def test_modes_and_what_they_record() -> None:
    world = World()
    world.remember("word", "deploy notes", degrees=80)
    world.remember("near", "release handbook", degrees=5)
    lists = {
        mode: set(world.ask("retry-ladder", "deploy", mode=mode).trace.lists)
        for mode in ("bm25", "semantic", "hybrid", "auto")
    }
    assert lists == {
        "bm25": {"lexical"},
        "semantic": {"dense"},
        "hybrid": {"lexical", "dense"},
        "auto": {"lexical", "dense"},
    }
    trace = world.ask("retry-ladder", "deploy", mode="hybrid").trace
    assert (trace.mode_asked, trace.mode_used, trace.fell_back_to_bm25) == ("hybrid", "hybrid", False)


@pytest.mark.covers("ladder.modes")
def test_without_an_embedder_hybrid_falls_back_and_says_so_auto_does_not_and_semantic_refuses() -> None:
    world = World(embedder=None)
    world.remember("word", "deploy notes")
    hybrid, auto = world.ask("retry-ladder", "deploy", mode="hybrid"), world.ask("retry-ladder", "deploy", mode="auto")
    assert ids(hybrid) == ids(auto) == ["word"]
    assert (hybrid.trace.mode_used, hybrid.trace.fell_back_to_bm25) == ("bm25", True)
    assert (auto.trace.mode_used, auto.trace.fell_back_to_bm25) == ("bm25", False)
    with pytest.raises(ModelUnavailable):
        world.ask("retry-ladder", "deploy", mode="semantic")


@pytest.mark.covers("ladder.modes")
@pytest.mark.parametrize("profile", profiles.builtin_names())
def test_in_every_profile_hybrid_without_an_embedder_is_a_fallback(profile: str) -> None:
    """Also where the profile ranks by words alone: whoever asked for both must be told that one was not there."""
    world = World(embedder=None)
    world.remember("word", "deploy notes")
    trace = world.ask(profile, "deploy", mode="hybrid").trace
    assert (trace.mode_used, trace.fell_back_to_bm25) == ("bm25", True)
    assert not World().ask("token-budget-lexical", "deploy", mode="hybrid").trace.fell_back_to_bm25


@pytest.mark.covers("ladder.modes")
@pytest.mark.parametrize("profile", ["retry-ladder", "balanced", "two-stage"])
def test_an_embedder_that_fails_while_it_is_asked_is_a_fallback_too(profile: str) -> None:
    world = World(embedder=HandEmbedder(fail=ModelUnavailable("it is down")))
    world.remember("word", "deploy notes", degrees=0)
    told = {mode: world.ask(profile, "deploy", mode=mode) for mode in ("auto", "hybrid", "hybrid-rerank")}
    assert all(ids(answer) == ["word"] for answer in told.values())
    assert all((answer.mode, answer.trace.mode_used) == ("bm25", "bm25") for answer in told.values())
    fell_back = {mode: answer.trace.fell_back_to_bm25 for mode, answer in told.items()}
    assert fell_back == {"auto": False, "hybrid": True, "hybrid-rerank": True}


@pytest.mark.covers("ladder.modes")
def test_an_embedder_that_breaks_in_any_way_is_a_typed_error_where_nobody_else_can_answer() -> None:
    world = World(embedder=HandEmbedder(fail=ZeroDivisionError("what the text was")))
    world.remember("word", "deploy notes")
    with pytest.raises(ModelUnavailable, match="ZeroDivisionError"):
        world.ask("retry-ladder", "deploy", mode="semantic")


@pytest.mark.covers("ladder.parallel")
def test_the_lexical_leg_does_not_wait_for_the_embedding() -> None:
    """The embedding is let go only once the text index has been asked: one after the other would never end."""
    world = World()
    world.remember("a", "deploy notes", degrees=0)
    searched = threading.Event()
    inner = world.store.text
    assert inner is not None and world.embedder is not None

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def match(self, *args: Any, **named: Any) -> Any:
            searched.set()
            return inner.match(*args, **named)

    from dataclasses import replace

    world.store = replace(world.store, text=Watched())  # type: ignore[arg-type]
    seen: list[bool] = []
    world.embedder.before_query = lambda: seen.append(searched.wait(10))
    answer = world.ask("retry-ladder", "deploy")
    assert seen == [True] and set(answer.trace.lists) == {"lexical", "dense"}


@pytest.mark.covers("ladder.unanimity")
def test_heads_that_agree_skip_the_reranker() -> None:
    world = World()
    world.remember("a", "deploy deploy deploy", degrees=2)
    world.remember("b", "deploy deploy notes", degrees=1)
    world.remember("c", "deploy notes of the week", degrees=3)
    world.reranker = Judge()
    answer = world.ask("retry-ladder", "deploy", mode="hybrid-rerank")
    assert answer.trace.rerank.skipped == "unanimity" and answer.trace.unanimity is True
    assert world.reranker.asked == []
    by_place = world.ask("retry-ladder", "deploy", mode="hybrid-rerank", options={"rerank.by": "position"})
    assert by_place.trace.unanimity is False and len(world.reranker.asked) == 1


def disagreeing() -> World:
    world = World()
    for place in range(4):
        world.remember(f"w{place}", f"word{place} deploy " + "deploy " * (4 - place), degrees=None)
        world.remember(f"n{place}", f"near{place} release", degrees=float(place + 1))
    return world


@pytest.mark.covers("ladder.rerank", "ladder.trace")
def test_the_head_is_reordered_and_the_tail_kept() -> None:
    world = disagreeing()
    plain = ids(world.ask("retry-ladder", "deploy"))
    world.reranker = Judge(**{text: float(place) for place, text in enumerate(["near0", "word0", "near1", "word1"])})
    answer = world.ask("retry-ladder", "deploy", mode="hybrid-rerank", options={"rerank.head": 4})
    assert answer.trace.rerank.used and answer.trace.unanimity is False
    assert set(ids(answer)[:4]) == set(plain[:4]) and ids(answer)[:4] == ["w1", "n1", "w0", "n0"]
    assert ids(answer)[4:] == plain[4:]


@pytest.mark.covers("ladder.rerank")
@pytest.mark.parametrize(
    ("trouble", "told"), [("fails", "failed: no memory left"), ("late", "too slow"), ("silent", "too slow")]
)
def test_a_failing_or_late_reranker_leaves_the_fused_order_and_says_so(trouble: str, told: str) -> None:
    world = disagreeing()
    plain = ids(world.ask("retry-ladder", "deploy"))
    release = threading.Event()

    class Bad:
        id = "bad"

        def score(self, query: str, texts: list[str], budget_ms: float | None = None) -> list[float]:
            if trouble == "fails":
                raise RuntimeError("no memory left")
            if trouble == "late":
                release.wait(5)
            return []

    world.reranker = Bad()
    try:
        answer = world.ask("retry-ladder", "deploy", mode="hybrid-rerank", options={"rerank.budget_ms": 20})
    finally:
        release.set()
    assert ids(answer) == plain
    assert not answer.trace.rerank.used and answer.trace.rerank.skipped == told
    assert answer.trace.notes == (f"not reranked: {told}",)
    world.reranker = None
    answer = world.ask("retry-ladder", "deploy", mode="hybrid-rerank")
    assert (ids(answer), answer.trace.rerank.skipped) == (plain, "no reranker")
    assert answer.trace.notes == ("not reranked: no reranker",)


@pytest.mark.covers("ladder.trace")
def test_the_trace_knows_how_long_every_stage_took() -> None:
    trace = disagreeing().ask("retry-ladder", "deploy").trace
    assert list(trace.stages) == [
        "legs", "pool", "fusion", "priors", "rerank", "select", "confidence", "render",
    ]  # fmt: skip
    assert trace.ms > 0 and all(step.ms > 0 for step in trace.legs.values() if step.skipped is None)


@pytest.mark.covers("ladder.intent")
def test_a_preference_question_lifts_preferences_over_better_matching_prose() -> None:
    world = World(embedder=None)
    world.remember("pref", "Tabs are preferred over spaces for editor indentation", type="preference")
    world.remember("raw", "editor indentation editor indentation favourite editor indentation", type="episode")
    answer = world.ask("retry-ladder", "what is my favourite editor indentation?")
    assert ids(answer)[0] == "pref"
    assert any(step.prior == "intent" for hit in answer for step in hit.adjustments)
    german = world.ask("retry-ladder", "editor indentation bitte")
    assert not any(step.prior == "intent" for hit in german for step in hit.adjustments)


@pytest.mark.covers("ladder.temporal")
def test_words_for_a_time_favour_memories_from_it_without_hiding_others() -> None:
    world = World(embedder=None)
    world.remember("then", "incident report about the cache", days=5)
    world.remember("now", "incident report about the cache cache", days=0)
    answer = world.ask("retry-ladder", "incident cache last week", now=NOW)
    assert ids(answer)[0] == "then" and "now" in ids(answer)
    assert scores(answer)["then"] == pytest.approx(1.5 / 62) or scores(answer)["then"] == pytest.approx(1.5 / 61)
    assert ids(world.ask("retry-ladder", "incident cache", now=NOW + timedelta(days=1)))[0] == "now"


@pytest.mark.covers("ladder.aliases")
def test_aliases_reach_the_index() -> None:
    world = World(embedder=None)
    world.remember("a", "kubernetes upgrade notes")
    world.remember("b", "continuous integration is slow")
    assert ids(world.ask("retry-ladder", "k8s", aliases={"k8s": "kubernetes"})) == ["a"]
    assert ids(world.ask("retry-ladder", "ci", aliases={"ci": "continuous integration"})) == ["b"]
    assert rungs(world.ask("retry-ladder", '"k8s"', aliases={"k8s": "kubernetes"}))[0] == ("initial", 0)


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deploy AND staging", {"a"}),
        ("deploy OR lunch", {"a", "b", "c"}),
        ("deploy NOT staging", {"b"}),
        ("deploy -staging", {"b"}),
        ('"deploy to staging"', {"a"}),
        ("stag*", {"a"}),
        ("(deploy OR lunch) NOT staging", {"b", "c"}),
        ("type:gotcha deploy", {"b"}),
        ("tag:food lunch", {"c"}),
        ("project:shop deploy", {"a"}),
    ],
)
def test_the_query_language_finds_what_it_says(query: str, expected: set[str]) -> None:
    from recollect.domain.memory import Scope

    world = World(embedder=None)
    world.remember("a", "deploy to staging first", scope=Scope(project="shop"))
    world.remember("b", "deploy deploy production", type="gotcha")
    world.remember("c", "lunch is at noon", tags=("food",))
    assert set(ids(world.ask("retry-ladder", query))) == expected


@pytest.mark.covers("more.explain")
def test_contributions_add_up_to_the_score_before_the_priors() -> None:
    world = World()
    world.remember("a", "deploy notes", degrees=10)
    world.remember("b", "deploy handbook", degrees=40)
    for hit in world.ask("retry-ladder", "deploy"):
        start = hit.adjustments[0].before if hit.adjustments else hit.score
        assert sum(part.value for part in hit.contributions) == pytest.approx(start, abs=1e-15)
        assert all(one.after == two.before for one, two in zip(hit.adjustments, hit.adjustments[1:], strict=False))


def test_the_text_that_is_embedded_is_the_question_without_its_operators() -> None:
    world = World(embedder=HandEmbedder())
    world.remember("a", "deploy notes", degrees=10)
    world.ask("retry-ladder", "type:fact deploy NOT lunch")
    assert world.embedder is not None
    (asked,) = world.embedder.queries
    assert "type:" not in asked and "NOT" not in asked
