"""Seed 004: score × confidence × decay, floor, distinct, five within 500 tokens."""

from __future__ import annotations

import math

import apsw
import pytest

from recollect.domain.errors import InvalidInput
from recollect.domain.question import Filter
from recollect.profiles import builtin_names
from tests.world import World, ids, scores


def fts5_bm25(texts: dict[str, str], query: str) -> dict[str, float]:
    """FTS5's own opinion, from a real table."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, content, tags, tokenize='porter unicode61')")
    db.executemany("INSERT INTO t VALUES (?, ?, '')", texts.items())
    return dict(db.execute("SELECT id, bm25(t) FROM t WHERE t MATCH ?", (query,)).fetchall())


TEXTS = {
    "a": "checkpoint the WAL before copying the database file",
    "b": "the WAL grows without a checkpoint",
    "c": "rotate credentials every month",
    "d": "lunch is at noon in the canteen",
    "e": "the standup moved to ten",
    "f": "coffee machine is broken again",
}


@pytest.mark.covers("budget.lexical", "fusion.scaled", "budget.decay")
def test_scaled_bm25_times_confidence_times_decay() -> None:
    world = World(embedder=None)
    ages = {"a": 3.0, "b": 45.0, "c": 1.0, "d": 0.0, "e": 0.0, "f": 0.0}
    for id, text in TEXTS.items():
        world.remember(id, text, days=ages[id], confidence=0.9 if id == "b" else 0.8)
    raw = fts5_bm25(TEXTS, '"WAL" OR "checkpoint" OR "credentials"')
    got = scores(world.ask("token-budget-lexical", "WAL checkpoint credentials", options={"select.floor.minimum": 0}))
    assert set(got) == {"a", "b", "c"}
    for id in got:
        confidence = 0.9 if id == "b" else 0.8
        expected = min(1.0, max(0.0, -raw[id] / 25)) * confidence * 0.5 ** (ages[id] / 30)
        assert got[id] == pytest.approx(expected, abs=1e-9)


@pytest.mark.covers("budget.filters")
def test_terms_are_joined_by_or_and_types_and_tags_filter() -> None:
    world = World(embedder=None)
    world.remember("a", "checkpoint the log", type="gotcha", tags=("db",))
    world.remember("b", "rotate credentials", type="lesson", tags=("db", "ops"))
    for place in range(6):
        world.remember(f"x{place}", f"unrelated number {place}")
    free = {"select.floor.minimum": 0}
    assert set(ids(world.ask("token-budget-lexical", "checkpoint credentials", options=free))) == {"a", "b"}
    assert ids(
        world.ask("token-budget-lexical", "checkpoint credentials", options=free, filter=Filter(types=("gotcha",)))
    ) == ["a"]
    assert ids(
        world.ask("token-budget-lexical", "checkpoint credentials", options=free, filter=Filter(tags=("ops",)))
    ) == ["b"]


@pytest.mark.covers("budget.floor")
def test_the_floors_of_both_forms() -> None:
    world = World()
    world.remember("fresh", "the WAL checkpoint", degrees=5, days=0)
    world.remember("stale", "the WAL checkpoint of an old release", degrees=6, days=120)
    answer = world.ask("token-budget", "WAL checkpoint")
    assert ids(answer) == ["fresh"]
    (gone,) = [one for one in answer.dropped if one.stage == "floor"]
    assert (
        gone.id == "stale" and gone.score == pytest.approx((1 / 62 + 1 / 62) * 0.8 * 0.5**4) and "0.01" in gone.reason
    )


@pytest.mark.covers("budget.hybrid")
def test_rrf_times_confidence_times_decay() -> None:
    world = World()
    world.remember("both", "the WAL checkpoint", degrees=5, days=15, confidence=1.0)
    world.remember("word", "another WAL note with more words", degrees=None, days=0, confidence=0.8)
    world.remember("near", "nothing in common", degrees=2, days=0, confidence=0.8)
    got = scores(world.ask("token-budget", "WAL checkpoint"))
    assert got["both"] == pytest.approx((1 / 61 + 1 / 62) * 1.0 * math.sqrt(0.5), abs=1e-12)
    assert got["word"] == pytest.approx(1 / 62 * 0.8, abs=1e-12)
    assert got["near"] == pytest.approx(1 / 61 * 0.8, abs=1e-12)


@pytest.mark.covers("budget.distinct")
def test_near_duplicates_of_better_results_are_skipped() -> None:
    world = World()
    world.remember("a1", "SQLite WAL is important", degrees=1)
    world.remember("a2", "SQLite WAL mode matters", degrees=2)
    answer = world.ask("token-budget", "SQLite WAL")
    assert ids(answer) == ["a1"]
    assert [(one.id, one.stage) for one in answer.dropped] == [("a2", "distinct")]


@pytest.mark.covers("budget.tokens")
def test_at_most_five_within_500_tokens_of_four_characters() -> None:
    world = World()
    for place in range(7):
        world.remember(f"s{place}", f"checkpoint topic{place} note{place}", degrees=float(place))
    assert len(world.ask("token-budget", "checkpoint")) == 5
    long = World()
    for place in range(4):
        long.remember(f"l{place}", f"checkpoint topic{place} " + f"word{place} " * 85, degrees=float(place))
    answer = long.ask("token-budget", "checkpoint")
    assert len(answer) == 3 and sum(len(hit.content) / 4 for hit in answer) <= 500
    assert [one.stage for one in answer.dropped] == ["budget"]


@pytest.mark.covers("budget.tokens")
@pytest.mark.parametrize("profile", builtin_names())
def test_the_room_that_a_request_gives_holds_in_every_profile(profile: str) -> None:
    world = World()
    for id in ("a", "b", "c"):
        world.remember(id, f"checkpoint the {id * 10} of the database", degrees=10.0)
    assert len(world.ask(profile, "checkpoint", budget_tokens=12)) <= 1


@pytest.mark.covers("budget.tokens")
def test_a_counter_of_ones_own_counts_the_budget() -> None:
    """A tokeniser's own count, where a budget must be exact."""
    world = World()
    for place in range(5):
        world.remember(f"s{place}", f"checkpoint topic{place} note{place}", degrees=float(place))

    def words(text: str) -> int:
        return len(text.split())

    asked = {"select.budget.counter": words, "select.budget.tokens_limit": 6}
    answer = world.ask("token-budget", "checkpoint", options=asked)
    assert len(answer) == 2 and all("3 tokens" in one.reason for one in answer.dropped)
    for wrong in ("words", 5):
        with pytest.raises(InvalidInput, match="must be one of 'quarter', 'estimate'"):
            world.ask("token-budget", "checkpoint", options={"select.budget.counter": wrong})
    with pytest.raises(InvalidInput):
        world.ask("token-budget", "checkpoint", options={"select.budget.overflow": words})


@pytest.mark.covers("budget.render")
def test_the_rendered_block() -> None:
    world = World(embedder=None)
    world.remember("a", "the WAL grows without a checkpoint", days=3, type="gotcha")
    for place in range(6):
        world.remember(f"x{place}", f"unrelated number {place}")
    answer = world.ask("token-budget-lexical", "WAL checkpoint")
    assert answer.render() == (
        "## Relevant Memories\n- [gotcha] the WAL grows without a checkpoint (confidence: 0.8, age: 3d)"
    )


@pytest.mark.covers("budget.decay")
def test_half_life_is_an_option_and_pinned_memories_stay_fresh() -> None:
    world = World()
    world.remember("a", "checkpoint notes", degrees=1, days=30)
    world.remember("p", "checkpoint pinned thing", degrees=2, days=3000, pinned=True)
    got = scores(
        world.ask("token-budget", "checkpoint", options={"priors.decay.half_life_days": 15, "select.floor.minimum": 0})
    )
    assert got["a"] == pytest.approx(2 / 61 * 0.8 * 0.25, abs=1e-12) or got["a"] == pytest.approx(
        (1 / 61 + 1 / 62) * 0.8 * 0.25
    )
    assert got["p"] > got["a"]
