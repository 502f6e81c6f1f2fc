"""What is returned, and the reason for what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.domain.memory import Link, Memory
from recollect.domain.question import Filter, Question
from recollect.domain.ranking import Passage
from recollect.domain.recall import Candidate, Pool
from recollect.stages.selection import budget, chain_head, distinct, floor, redirect, top, withhold

NOW = datetime(2026, 6, 1, tzinfo=UTC)
QUESTION = Question("q", NOW, limit=5)


def candidate(id: str, content: str = "", score: float = 0.5) -> Candidate:
    return Candidate(Memory(id, content or f"text of {id}"), score)


def pool(*memories: Candidate | Memory, links: tuple[Link, ...] = ()) -> Pool:
    every = [one.memory if isinstance(one, Candidate) else one for one in memories]
    return Pool({one.id: one for one in every}, links=links)


def supersedes(newer: str, older: str, days: int = 0) -> Link:
    return Link(newer, "supersedes", older, NOW + timedelta(days=days))


@pytest.mark.covers("prior.links")
def test_a_superseded_memory_gives_its_rank_to_the_head_of_its_chain() -> None:
    old, other, new = candidate("old", score=0.9), candidate("other", score=0.5), Memory("new", "the newest")
    middle = Memory("middle", "in between")
    links = (supersedes("middle", "old"), supersedes("new", "middle"))
    kept, dropped = redirect([old, other], pool(old, other, middle, new, links=links), QUESTION)
    assert [(one.id, one.redirected_from, one.score) for one in kept] == [("new", "old", 0.9), ("other", None, 0.5)]
    assert dropped == []
    solved = pool(old, other, links=(Link("old", "resolved-by", "other"),))
    assert chain_head("other", solved).id == "other", "a solution is not replaced"


@pytest.mark.covers("prior.links")
def test_the_head_is_returned_once_at_its_best_rank() -> None:
    old, new = candidate("old", score=0.9), candidate("new", score=0.8)
    both = pool(old, new, links=(supersedes("new", "old"),))
    for order, reason in (([old, new], "already returned for what it supersedes"), ([new, old], "superseded by new")):
        kept, dropped = redirect(order, both, QUESTION)
        assert [(one.id, one.score) for one in kept] == [("new", order[0].score)]
        assert [(one.id, one.stage, one.reason) for one in dropped] == [(order[1].id, "redirect", reason)]


@pytest.mark.covers("prior.sensitive", "budget.distinct")
def test_what_is_sensitive_takes_no_twin_away_that_a_model_may_see() -> None:
    """The block for a prompt leaves out what is sensitive: it would be left with neither of the two."""
    said = "The vault is opened by two people at noon"
    plain = Candidate(Memory("a", said, created_at=NOW), 0.5)
    secret = Candidate(Memory("b", said, created_at=NOW + timedelta(days=1), sensitive=True), 0.5)
    for latest in (False, True):
        kept, dropped = distinct([secret, plain], pool(), QUESTION, latest=latest)
        assert ([one.id for one in kept], dropped) == (["b", "a"], [])
        kept, dropped = distinct([plain, secret], pool(), QUESTION, latest=latest)
        assert ([one.id for one in kept], [one.id for one in dropped]) == (["a"], ["b"])


@pytest.mark.covers("prior.sensitive")
def test_what_is_sensitive_gives_its_place_to_the_next() -> None:
    plain, secret = candidate("a"), Candidate(Memory("b", "the code", sensitive=True), 0.4)
    kept, dropped = withhold([secret, plain], pool(plain, secret), QUESTION)
    assert (kept, [(one.id, one.stage, one.reason) for one in dropped]) == ([plain], [("b", "withhold", "sensitive")])


@pytest.mark.covers("prior.links")
def test_cycles_and_long_chains_end() -> None:
    ring = [candidate(id) for id in "abc"]
    links = (supersedes("b", "a"), supersedes("c", "b"), supersedes("a", "c"))
    assert chain_head("a", pool(*ring, links=links)).id == "c"
    chain = [Memory(f"m{number:02}", "x") for number in range(30)]
    along = tuple(supersedes(f"m{number + 1:02}", f"m{number:02}") for number in range(29))
    assert chain_head("m00", pool(*chain, links=along)).id == "m10", "depth is at most ten"


@pytest.mark.covers("prior.links")
def test_a_head_outside_the_pool_is_not_followed_and_an_excluded_head_hides_what_it_supersedes() -> None:
    old, new = candidate("old"), candidate("new")
    links = (supersedes("new", "old"),)
    assert [one.id for one in redirect([old], pool(old, links=links), QUESTION)[0]] == ["old"]
    asked = replace(QUESTION, filter=Filter(exclude=frozenset({"new"})))
    kept, dropped = redirect([old], pool(old, new, links=links), asked)
    assert kept == [] and "excluded" in dropped[0].reason


@pytest.mark.covers("prior.links")
def test_a_chain_never_leads_out_of_the_memories_that_were_asked_for() -> None:
    old, new = candidate("old"), candidate("new")
    asked = replace(QUESTION, filter=Filter(only=frozenset({"old"})))
    kept, dropped = redirect([old], pool(old, new, links=(supersedes("new", "old"),)), asked)
    assert kept == [] and (dropped[0].id, dropped[0].stage) == ("old", "redirect")
    assert "not among" in dropped[0].reason
    asked = replace(QUESTION, filter=Filter(only=frozenset({"old", "new"})))
    assert [one.id for one in redirect([old], pool(old, new, links=(supersedes("new", "old"),)), asked)[0]] == ["new"]


@pytest.mark.covers("prior.links")
@pytest.mark.parametrize("order", [1, -1])
def test_of_two_that_supersede_one_memory_the_later_word_counts(order: int) -> None:
    old, first, second = candidate("old"), Memory("z", "corrected"), Memory("a", "corrected again")
    links = (supersedes("z", "old"), supersedes("a", "old", days=1))[::order]
    assert chain_head("old", pool(old, first, second, links=links)).id == "a"


@pytest.mark.covers("prior.links")
def test_resolutions_are_attached_three_at_most() -> None:
    problem = candidate("problem")
    fixes = [Memory(f"fix{number}", "a fix") for number in range(5)]
    links = tuple(Link("problem", "resolved-by", fix.id) for fix in fixes)
    ((only,), _) = redirect([problem], pool(problem, *fixes, links=links), QUESTION)
    assert only.resolved_by == ("fix0", "fix1", "fix2")


@pytest.mark.covers("budget.floor")
def test_below_the_floor_is_dropped_with_its_reason_and_on_it_is_kept() -> None:
    kept, dropped = floor([candidate("a", score=0.05), candidate("b", score=0.0499)], pool(), QUESTION, minimum=0.05)
    assert [one.id for one in kept] == ["a"]
    assert (dropped[0].id, dropped[0].stage, dropped[0].reason) == ("b", "floor", "below 0.05")


@pytest.mark.covers("budget.distinct")
def test_a_near_duplicate_of_a_better_one_is_skipped_and_a_different_fact_is_not() -> None:
    texts = ["SQLite WAL is important", "SQLite WAL mode matters", "SQLite WAL is important on port 5433"]
    kept, dropped = distinct([candidate(f"m{place}", text) for place, text in enumerate(texts)], pool(), QUESTION)
    assert [one.id for one in kept] == ["m0", "m2"]
    assert [(one.id, one.reason) for one in dropped] == [("m1", "near-duplicate of m0")]


@pytest.mark.covers("budget.distinct")
def test_letter_case_makes_no_second_fact() -> None:
    twins = [candidate("a", "sqlite wal is important"), candidate("b", "SQLite WAL Is Important")]
    assert [one.id for one in distinct(twins, pool(), QUESTION)[0]] == ["a"]


@pytest.mark.covers("budget.distinct")
def test_what_stands_below_those_considered_follows_once_and_unread() -> None:
    texts = {"a": "the same words", "b": "the same words", "c": "lunch is at noon", "d": "the same words"}
    every = [candidate(id, text) for id, text in texts.items()]
    assert [one.id for one in distinct(every, pool(), QUESTION, considered=2)[0]] == ["a", "c", "d"]


def test_of_two_that_say_the_same_and_score_the_same_the_newer_one_may_stay() -> None:
    text = "SQLite WAL is important"
    old = Candidate(Memory("m0", text, created_at=NOW - timedelta(days=9)), 0.5)
    new = Candidate(Memory("m1", text, created_at=NOW - timedelta(days=2)), 0.5)
    oldest = Candidate(Memory("m2", text, created_at=NOW - timedelta(days=20)), 0.5)
    assert [one.id for one in distinct([old, new], pool(), QUESTION)[0]] == ["m0"]
    kept, dropped = distinct([old, candidate("x"), new, oldest], pool(), QUESTION, latest=True)
    assert [one.id for one in kept] == ["m1", "x"]
    assert [(one.id, one.reason) for one in dropped] == [
        ("m0", "near-duplicate of m1"),
        ("m2", "near-duplicate of m1"),
    ]
    better = old._replace(score=0.6)
    assert [one.id for one in distinct([better, new], pool(), QUESTION, latest=True)[0]] == ["m0"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_those_that_can_be_returned_are_as_distinct_as_if_all_were_compared(
    made: list[tuple[int, int, int]], limit: int
) -> None:
    texts = ["SQLite WAL is important", "SQLite WAL mode matters", "lunch is at noon", "Lunch is at noon", "tea", "ale"]
    ranked = sorted(
        (
            Candidate(Memory(f"m{place:02}", texts[text], created_at=NOW - timedelta(days=days)), score / 4)
            for place, (text, score, days) in enumerate(made)
        ),
        key=lambda one: -one.score,
    )
    everything, few = replace(QUESTION, limit=len(ranked) + 1), replace(QUESTION, limit=limit)
    wanted = distinct(ranked, pool(), everything, latest=True)[0][:limit]
    kept, dropped = distinct(ranked, pool(), few, latest=True)
    assert kept[:limit] == wanted
    assert sorted(one.id for one in (*kept, *dropped)) == [one.id for one in sorted(ranked, key=lambda one: one.id)]


def test_what_cannot_be_returned_is_not_compared() -> None:
    ranked = [candidate("a", "one thing", 0.9), candidate("b", "another", 0.8), candidate("c", "one thing", 0.7)]
    assert distinct(ranked, pool(), replace(QUESTION, limit=2)) == (ranked, [])


@pytest.mark.covers("budget.tokens", "two-stage.top3")
def test_top_returns_as_many_as_asked() -> None:
    five = [candidate(id) for id in "abcde"]
    kept, dropped = top(five, pool(), replace(QUESTION, limit=3))
    assert [one.id for one in kept] == ["a", "b", "c"]
    assert [one.id for one in dropped] == ["d", "e"]
    assert len(top(five, pool(), QUESTION, most=2)[0]) == 2


@pytest.mark.covers("budget.tokens")
def test_the_budget_stops_at_the_first_that_does_not_fit_or_skips_it() -> None:
    found = [candidate("a", "x" * 1200), candidate("b", "y" * 1200), candidate("c", "z" * 80)]
    kept, dropped = budget(found, pool(), QUESTION, tokens_limit=500)
    assert [one.id for one in kept] == ["a"]
    assert [one.id for one in dropped] == ["b", "c"]
    assert [one.id for one in budget(found, pool(), QUESTION, tokens_limit=500, overflow="skip")[0]] == ["a", "c"]


@pytest.mark.covers("budget.tokens")
def test_the_request_overrides_the_budget_of_the_profile_and_none_means_no_limit() -> None:
    found = [candidate("a", "x" * 400), candidate("b", "y" * 400)]
    assert len(budget(found, pool(), replace(QUESTION, budget_tokens=150), tokens_limit=500)[0]) == 1
    assert len(budget(found, pool(), QUESTION)[0]) == 2


@pytest.mark.covers("budget.tokens")
def test_a_memory_longer_than_the_whole_budget_is_cut_to_its_best_passage() -> None:
    page = "Nothing of note here. " * 60
    found = [candidate("short", "x" * 40), candidate("page", f"{page}The key is under the mat. {page}")]
    found[1] = found[1]._replace(passage=Passage(len(page), len(page) + 26))
    kept, dropped = budget(found, pool(), QUESTION, tokens_limit=30)
    assert [one.id for one in kept] == ["short", "page"] and dropped == []
    assert kept[0].excerpt is None and "The key is under the mat." in (kept[1].excerpt or "")
    full = [candidate("all", "x" * 120), found[1]]
    assert [one.id for one in budget(full, pool(), QUESTION, tokens_limit=30)[0]] == ["all"], "nothing is left for it"
    after = [candidate("most", "x" * 100), candidate("next", "x" * 80), found[1]]
    assert [one.id for one in budget(after, pool(), QUESTION, tokens_limit=30)[0]] == ["most"], "stop means stop"


@pytest.mark.covers("budget.tokens")
@given(st.lists(st.integers(1, 4000), max_size=8), st.integers(1, 600), st.sampled_from(["stop", "skip"]))
def test_nothing_ever_blows_the_budget(lengths: list[int], limit: int, overflow: str) -> None:
    found = [candidate(f"m{place}", ("word " * length)[:length]) for place, length in enumerate(lengths)]
    kept, dropped = budget(found, pool(), QUESTION, tokens_limit=limit, overflow=overflow)
    assert sum(len(one.excerpt if one.excerpt is not None else one.memory.content) / 4 for one in kept) <= limit
    assert {one.id for one in kept} | {one.id for one in dropped} == {one.id for one in found}
