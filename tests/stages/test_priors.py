"""Each prior by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.domain.memory import Memory, Scope
from recollect.domain.question import Question, TimeWindow
from recollect.stages.priors import (
    PRIORS,
    confidence,
    decay,
    exact,
    freshness,
    importance,
    intent,
    promote,
    stated_words,
    temporal,
    thin,
    types,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
QUESTION = Question("q", NOW)


def memory(**fields: object) -> Memory:
    return replace(Memory("m", "text", created_at=NOW), **fields)  # type: ignore[arg-type]


@pytest.mark.covers("prior.importance")
@pytest.mark.parametrize(("given", "factor"), [(0.0, 0.7), (0.5, 0.85), (1.0, 1.0)])
def test_importance_multiplies_by_07_plus_03_importance(given: float, factor: float) -> None:
    assert importance(2.0, memory(importance=given), QUESTION) == pytest.approx(2.0 * factor, abs=1e-15)


@pytest.mark.covers("prior.importance")
@pytest.mark.parametrize("sort_by", ["importance", "recency"])
def test_importance_acts_only_where_relevance_decides(sort_by: str) -> None:
    asked = replace(QUESTION, sort_by=sort_by)  # type: ignore[arg-type]
    assert importance(2.0, memory(importance=0.1), asked) == 2.0


@pytest.mark.covers("two-stage.boost")
@pytest.mark.parametrize(("given", "added"), [(0.79, 0.0), (0.8, 1 / 61 - 1 / 71), (1.0, 1 / 61 - 1 / 71)])
def test_high_importance_adds_the_worth_of_ten_places(given: float, added: float) -> None:
    assert promote(0.5, memory(importance=given), QUESTION, k=60) == pytest.approx(0.5 + added, abs=1e-15)


@pytest.mark.covers("budget.hybrid", "budget.lexical")
def test_confidence_multiplies() -> None:
    assert confidence(0.5, memory(confidence=0.6), QUESTION) == pytest.approx(0.3)


@pytest.mark.covers("budget.decay")
@pytest.mark.parametrize(("days", "factor"), [(0, 1.0), (30, 0.5), (60, 0.25), (15, 0.5**0.5), (-5, 1.0)])
def test_decay_halves_every_thirty_days_and_the_future_is_not_punished(days: float, factor: float) -> None:
    old = memory(created_at=NOW - timedelta(days=days))
    assert decay(1.0, old, QUESTION) == pytest.approx(factor, abs=1e-15)


@pytest.mark.covers("budget.decay")
def test_half_life_is_a_setting_and_pinned_memories_do_not_decay() -> None:
    old = memory(created_at=NOW - timedelta(days=30))
    assert decay(1.0, old, QUESTION, half_life_days=15) == pytest.approx(0.25)
    assert decay(1.0, replace(old, pinned=True), QUESTION) == 1.0


def test_freshness_takes_at_most_its_share() -> None:
    ancient = memory(created_at=NOW - timedelta(days=36500))
    assert freshness(1.0, ancient, QUESTION, share=0.1) == pytest.approx(0.9)
    assert freshness(1.0, replace(ancient, pinned=True), QUESTION) == 1.0
    assert freshness(1.0, memory(), QUESTION, share=0.1) == 1.0
    half = memory(created_at=NOW - timedelta(days=30))
    assert freshness(1.0, half, QUESTION, share=0.1, half_life_days=30.0) == pytest.approx(0.95)


@pytest.mark.covers("budget.types")
def test_type_weights_are_optional_and_unknown_types_count_one() -> None:
    assert types(1.0, memory(type="gotcha"), QUESTION) == 1.0
    assert types(1.0, memory(type="gotcha"), QUESTION, weights={"gotcha": 1.5}) == 1.5
    assert types(1.0, memory(type="never-heard-of"), QUESTION, weights={"gotcha": 1.5}) == 1.0


@pytest.mark.covers("ladder.temporal")
def test_a_time_window_favours_and_does_not_filter() -> None:
    asked = replace(QUESTION, window=TimeWindow(NOW - timedelta(days=7), NOW))
    assert temporal(1.0, memory(created_at=NOW - timedelta(days=3)), asked, inside=1.5) == 1.5
    assert temporal(1.0, memory(created_at=NOW - timedelta(days=30)), asked, inside=1.5) == 1.0
    assert temporal(1.0, memory(created_at=NOW - timedelta(days=7)), asked, inside=1.5) == 1.5, "its start is inside"
    assert temporal(1.0, memory(created_at=NOW), asked, inside=1.5) == 1.0, "the end is exclusive"
    assert temporal(1.0, memory(), QUESTION, inside=1.5) == 1.0


@pytest.mark.covers("ladder.intent")
def test_intent_changes_nothing_without_an_intent() -> None:
    assert intent(1.0, memory(type="preference"), QUESTION) == 1.0
    wanted = replace(QUESTION, intents=("preference",))
    assert intent(1.0, memory(type="preference"), wanted) > 1.0
    assert intent(1.0, memory(type="preference"), wanted, factors={"preference": {"preference": 3.0}}) == 3.0


@pytest.mark.covers("fusion.exact-bonus")
def test_the_exact_bonus_goes_to_memories_that_hold_the_words_in_a_row() -> None:
    asked = replace(QUESTION, words=("retry", "budget"))
    assert exact(0.1, memory(content="The Retry  budget is 3"), asked, k=60) == pytest.approx(0.1 + 1 / 61)
    assert exact(0.1, memory(content="budget for a retry"), asked, k=60) == 0.1
    assert exact(0.1, memory(content="anything"), replace(QUESTION, words=()), k=60) == 0.1


@pytest.mark.covers("fusion.exact-bonus")
@pytest.mark.parametrize(
    ("word", "content", "held"),
    [
        ("straße", "Die Straße ist gesperrt", True),
        ("straße", "DIE STRASSE IST GESPERRT", True),
        ("café", "the cafe\u0301 at the corner", True),
        ("c++", "we write C++, mostly", True),
        ("日本", "日本語のメモ", True),
        ("日本", "東京のメモ", False),
        ("cat", "concatenate the strings", False),
        ("port 80", "port 8080 is taken", False),
    ],
)
def test_the_exact_bonus_is_for_whole_words_however_they_are_spelt(word: str, content: str, held: bool) -> None:
    asked = replace(QUESTION, words=tuple(word.split()))
    assert (exact(0.1, memory(content=content), asked, k=60) > 0.1) == held


@pytest.mark.covers("fusion.exact-bonus")
def test_the_exact_bonus_is_off_by_default() -> None:
    from recollect import profiles

    assert "exact" in PRIORS
    assert not [
        name for name in profiles.builtin_names() if any(one.kind == "exact" for one in profiles.load(name).priors)
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", 0),
        ("Where is it?", 0),
        ("Wow! Where is it? Do you know?!", 1),
        ("I moved to Oslo. And you?", 4),
        ("I moved to Oslo\nand you？", 4),
        ("我搬到奥斯陆了。你呢？", 7),
        ("هل تعرف؟ نعم", 1),
        ("word " * 1_000, 200),
    ],
)
def test_words_are_stated_that_stand_in_no_question(content: str, words: int) -> None:
    assert stated_words(content) == words


def test_a_turn_that_asks_or_nods_counts_less_than_one_that_tells_something() -> None:
    def turn(content: str) -> Memory:
        return memory(content=content, type="episode", scope=Scope(session="s"))

    asks, nods, tells = "Where did you move?", "Sure thing!", "I moved to Oslo. " * 10
    assert thin(1.0, turn(asks), QUESTION, penalty=0.2, words=7) == pytest.approx(0.8)
    assert thin(1.0, turn(nods), QUESTION, penalty=0.2, words=8) == pytest.approx(0.9)  # log 3 is half of log 9
    assert thin(1.0, turn(tells), QUESTION, penalty=0.2, words=40) == pytest.approx(1.0)


@pytest.mark.parametrize("fields", [{"type": "fact", "scope": Scope(session="s")}, {"type": "episode"}])
def test_what_is_no_turn_of_a_conversation_may_be_short(fields: dict[str, object]) -> None:
    assert thin(1.0, memory(content="Why?", **fields), QUESTION) == 1.0
