"""Seed 001: lexical + dense + graph by weighted RRF, importance as a prior after fusion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect import profiles
from recollect.domain.errors import StoreUnavailable
from recollect.encoders.fake import FakeReranker
from tests.world import HandEmbedder, World, counted, ids, scores


@pytest.mark.covers("prior.weights", "prior.importance")
def test_weighted_rrf_times_the_importance_prior() -> None:
    world = World()
    world.remember("a", "retry budget for uploads", degrees=10, importance=1.0)
    world.remember("b", "something else entirely", degrees=5, importance=0.0)
    world.link("a", "see-also", "b")
    got = scores(world.ask("importance-prior", "retry budget"))
    # anchors: a is first in the lexical list and second in the dense one, b first in the dense one; both are linked.
    graph = {
        part.list: part
        for hit in world.ask("importance-prior", "retry budget")
        for part in hit.contributions
        if part.list == "graph"
    }
    assert graph["graph"].weight == 0.35
    ranks = {
        hit.id: {part.list: part.rank for part in hit.contributions}
        for hit in world.ask("importance-prior", "retry budget")
    }
    for id, factor in (("a", 1.0), ("b", 0.7)):
        expected = sum(
            {"lexical": 1.0, "dense": 1.0, "graph": 0.35}[name] / (60 + rank) for name, rank in ranks[id].items()
        )
        assert got[id] == pytest.approx(expected * factor, abs=1e-12)
    assert ranks["a"]["lexical"] == 1 and ranks["b"]["dense"] == 1 and ranks["a"]["dense"] == 2


@pytest.mark.covers("prior.importance")
def test_sort_by_importance_and_recency() -> None:
    world = World()
    world.remember("x", "retry retry retry", importance=0.2, days=1)
    world.remember("y", "retry once in a while", importance=0.9, days=9)
    world.remember("z", "retry sometimes perhaps", importance=0.5, days=5)
    assert ids(world.ask("importance-prior", "retry", sort_by="importance")) == ["y", "z", "x"]
    assert ids(world.ask("importance-prior", "retry", sort_by="recency")) == ["x", "z", "y"]
    by_importance = world.ask("importance-prior", "retry", sort_by="importance")
    assert all(hit.adjustments == () for hit in by_importance)


@pytest.mark.covers("prior.lexical")
def test_all_terms_first_then_any_term_below_them() -> None:
    world = World(embedder=None)
    world.remember("both", "a very long text about a retry that has some budget somewhere in it " + "filler " * 30)
    world.remember("one", "retry retry retry")
    lexical = world.ask("importance-prior", "retry budget").trace.lists["lexical"]
    assert lexical == ("both", "one")
    assert world.ask("importance-prior", "retry budget", options={"legs.lexical.match": "any"}).trace.lists[
        "lexical"
    ] == (
        "one",
        "both",
    )


@pytest.mark.covers("prior.lexical")
def test_a_field_narrows_and_does_not_change_how_the_words_are_asked_for() -> None:
    world = World(embedder=None)
    world.remember("both", "a very long text about a retry that has some budget somewhere in it " + "filler " * 30)
    world.remember("one", "retry retry retry")
    assert world.ask("importance-prior", "retry budget type:fact").trace.lists["lexical"] == ("both", "one")
    assert world.ask("importance-prior", "retry OR budget").trace.lists["lexical"] == ("one", "both")


@pytest.mark.covers("prior.lexical")
def test_the_broadened_query_is_not_made_when_enough_came_back() -> None:
    world = World(embedder=None)
    for number in range(4):
        world.remember(f"both{number}", f"retry budget {number}")
    world.remember("one", "retry only")
    answer = world.ask("importance-prior", "retry budget", limit=4, options={"legs.lexical.limit": 4})
    assert "one" not in answer.trace.lists["lexical"]


@pytest.mark.covers("prior.degrade")
@pytest.mark.parametrize("trouble", ["no embedder", "no vector port", "failing", "slow", "no link port", "links fail"])
def test_whatever_is_missing_the_same_code_answers_by_words_and_says_so(trouble: str) -> None:
    import threading

    world = World(embedder=None if trouble == "no embedder" else HandEmbedder())
    world.remember("a", "retry budget")
    release = threading.Event()
    if trouble == "no vector port":
        world.store = replace(world.store, vectors=None)
    elif trouble == "failing" and world.embedder:
        world.embedder.fail = RuntimeError("model file is gone")
    elif trouble == "slow" and world.embedder:
        world.embedder.before_query, world.patience_ms = lambda: release.wait(5) or None, 30
    elif trouble == "no link port":
        world.store = replace(world.store, links=None)
    elif trouble == "links fail":

        class Broken:
            def links(self, ids: object, types: object = ()) -> list[object]:
                raise StoreUnavailable("disk is gone")

        world.store = replace(world.store, links=Broken())  # type: ignore[arg-type]
    try:
        answer = world.ask("importance-prior", "retry")
    finally:
        release.set()
    assert ids(answer) == ["a"]
    told = [*answer.trace.notes, *(str(step.skipped or step.error or "") for step in answer.trace.legs.values())]
    assert any(told)


@pytest.mark.covers("live.one-leg")
def test_when_every_leg_fails_the_error_is_raised_not_an_empty_answer() -> None:
    world = World(embedder=None)
    world.remember("a", "retry")

    class Broken:
        def match(self, *args: object, **named: object) -> object:
            raise StoreUnavailable("disk is gone")

    world.store = replace(world.store, text=Broken())  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        world.ask("token-budget-lexical", "retry")


@pytest.mark.covers("prior.links")
def test_a_superseded_hit_comes_back_as_its_newest_version() -> None:
    world = World(embedder=None)
    world.remember("old", "we deploy with jenkins pipelines")
    world.remember("new", "releases are done by github actions")
    world.link("new", "supersedes", "old")
    (hit,) = world.ask("importance-prior", "jenkins")
    assert (hit.id, hit.redirected_from) == ("new", "old")


@pytest.mark.covers("prior.links")
def test_a_head_in_another_scope_is_never_shown() -> None:
    from recollect.domain.memory import Scope
    from recollect.domain.question import Filter

    world = World(embedder=None)
    world.remember("old", "we deploy with jenkins", scope=Scope(project="shop"))
    world.remember("new", "secret of the other project", scope=Scope(project="bank"))
    world.link("new", "supersedes", "old")
    assert ids(world.ask("importance-prior", "jenkins", filter=Filter(project="shop"))) == ["old"]


@pytest.mark.covers("prior.links")
def test_resolutions_ride_along() -> None:
    world = World(embedder=None)
    world.remember("bug", "upload fails with error 502")
    world.remember("fix", "raise the proxy timeout")
    world.link("bug", "resolved-by", "fix")
    hit = world.ask("importance-prior", "upload 502")[0]
    assert (hit.id, hit.resolved_by) == ("bug", ("fix",))


@pytest.mark.covers("prior.sensitive")
def test_a_sensitive_memory_is_not_shown_to_a_reranker() -> None:
    world = World(embedder=None)
    world.remember("a", "retry policy of the bank account", sensitive=True)
    world.remember("b", "retry budget")
    seen: list[str] = []

    class Spy:
        id = "spy"

        def score(self, query: str, texts: list[str], budget_ms: float | None = None) -> list[float]:
            seen.extend(texts)
            return [1.0 for _ in texts]

    world.reranker = Spy()
    answer = world.ask("importance-prior", "retry", options={"rerank.enabled": True})
    assert answer.trace.rerank.used and set(ids(answer)) == {"a", "b"}
    assert "bank" not in " ".join(seen)


@pytest.mark.covers("prior.rerank")
def test_the_reranker_is_off_unless_switched_on() -> None:
    assert profiles.load("importance-prior").rerank is not None
    world = World(embedder=None)
    world.remember("a", "retry")
    world.remember("b", "retry budget")
    world.reranker = object()
    assert world.ask("importance-prior", "retry").trace.rerank.skipped == "off"


@pytest.mark.covers("prior.rerank")
def test_the_reranker_is_behind_its_own_switch_alone() -> None:
    """The shortcut where the legs agree is another system's: whoever switches this reranker on is heard."""
    world = World()
    for place, id in enumerate(("a", "b", "c")):
        world.remember(id, "retry " * (3 - place), degrees=float(place))
    world.reranker = FakeReranker()
    answer = world.ask("importance-prior", "retry", options={"rerank.enabled": True})
    assert answer.trace.unanimity and answer.trace.rerank.used


@pytest.mark.covers("prior.weights", "fusion.zero-weight")
def test_a_graph_weight_of_zero_asks_no_link_port_in_the_graph_leg() -> None:
    world = World()
    world.remember("a", "retry", degrees=0)
    world.store, ports = counted(world.store)
    answer = world.ask("importance-prior", "retry", options={"legs.graph.weight": 0, "legs.dense.weight": 0})
    assert answer.trace.legs["graph"].skipped == "weight 0"
    assert ports["vectors"].calls == []
    assert world.embedder is not None and world.embedder.queries == []
