"""Orders of the pool by what memories are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.domain.memory import Memory
from recollect.domain.question import Question
from recollect.domain.ranking import Hit
from recollect.domain.recall import Pool
from recollect.stages.signals import access, recency, similarity, subject

NOW = datetime(2026, 6, 1, tzinfo=UTC)
QUESTION = Question("who built the Eiffel Tower", NOW)


def pool_of(*memories: Memory) -> Pool:
    return Pool({one.id: one for one in memories})


def test_what_has_no_vector_stands_between_the_cosines_as_its_leg_ranks_it() -> None:
    memories = {id: Memory(id, "text") for id in ("near", "far", "best", "half", "below")}
    cosines = {"near": Hit("near", 0.8), "far": Hit("far", 0.4)}
    found = {"best": 10.0, "far": 9.0, "half": 5.0, "gone": 4.0, "below": -1.0}
    words = tuple(Hit(id, score) for id, score in found.items())
    pool = Pool(memories, cosines, found={"lexical": words})
    hits = similarity(pool, QUESTION, estimated_by="lexical")
    assert [hit.id for hit in hits] == ["best", "near", "half", "below", "far"]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.8, 0.6, 0.4, 0.4])
    assert [hit.id for hit in similarity(pool, QUESTION)] == ["near", "far"], "unless asked for, nothing speaks for it"
    assert similarity(Pool(memories, found={"lexical": words}), QUESTION, estimated_by="lexical") == ()


def test_a_leg_that_is_worth_nothing_estimates_the_least() -> None:
    memories = {id: Memory(id, "text") for id in "abc"}
    pool = Pool(memories, {"a": Hit("a", 0.8), "b": Hit("b", 0.4)}, found={"lexical": (Hit("c", 0.0),)})
    assert dict(hit[:2] for hit in similarity(pool, QUESTION, estimated_by="lexical"))["c"] == 0.4


def test_a_subject_that_many_share_says_less() -> None:
    tower, twin, lone = (
        Memory(id, "text", metadata={"title": title})
        for id, title in {"a": "The Eiffel Tower", "b": "Eiffel Tower (film)", "c": "Who Built"}.items()
    )
    other = Memory("d", "text", metadata={"title": "The Louvre"})
    hits = subject(pool_of(tower, twin, lone, other), QUESTION)
    assert [hit.id for hit in hits] == ["c", "a", "b"]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5, 0.5**0.5])


def test_a_subject_counts_by_how_much_of_the_question_it_is() -> None:
    tower, word, stop = (
        Memory(id, "text", metadata={"title": title})
        for id, title in {"a": "The Eiffel Tower", "b": "Built", "c": "Who"}.items()
    )
    hits = subject(pool_of(tower, word, stop), QUESTION, share=0.8)  # of built, eiffel and tower: 2.4 words
    assert dict(hit[:2] for hit in hits) == pytest.approx({"a": 2 / 2.4, "b": 1 / 2.4, "c": 1 / 2.4})
    assert {hit.score for hit in subject(pool_of(tower, word), QUESTION, share=0.3)} == {1.0}
    assert [hit.score for hit in subject(pool_of(stop), Question("who", NOW), share=1.0)] == [1.0]


def test_ties_go_by_id_whatever_the_order_of_the_pool() -> None:
    old, new = NOW - timedelta(days=9), NOW
    memories = [
        Memory("c", "text", created_at=old, accessed_at=new, access_count=2),
        Memory("a", "text", created_at=new, accessed_at=old, access_count=2),
        Memory("b", "text", created_at=new, accessed_at=old, access_count=3),
    ]
    for pool in (pool_of(*memories), pool_of(*memories[::-1])):
        assert [hit.id for hit in recency(pool, QUESTION)] == ["a", "b", "c"]
        assert [hit.id for hit in recency(pool, QUESTION, by="accessed_at")] == ["c", "a", "b"]
        assert [hit.id for hit in access(pool, QUESTION)] == ["b", "a", "c"]
