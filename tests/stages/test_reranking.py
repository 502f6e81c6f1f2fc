"""The gate and the reordering of the head."""

from __future__ import annotations

import pytest

from recollect.domain.memory import Memory
from recollect.domain.recall import Candidate
from recollect.stages.reranking import reorder, unanimous


def candidates(*ids: str) -> list[Candidate]:
    return [Candidate(Memory(id, id), 1.0 - place / 100) for place, id in enumerate(ids)]


@pytest.mark.covers("ladder.unanimity")
@pytest.mark.parametrize(
    ("first", "second", "members", "position"),
    [
        (["a", "b", "c"], ["b", "a", "x"], True, False),
        (["a", "b", "c"], ["a", "b", "x"], True, True),
        (["a", "b", "c"], ["a", "x", "y"], False, False),
        (["a", "b", "c", "d"], ["d", "x", "y", "a"], False, False),
        (["a", "b", "c", "d", "e"], ["d", "e", "x"], False, False),
        (["d", "e", "x"], ["a", "b", "c", "d", "e"], False, False),
        ([], ["a"], False, False),
    ],
)
def test_two_of_the_first_three_ids_make_unanimity(
    first: list[str], second: list[str], members: bool, position: bool
) -> None:
    assert unanimous(first, second) is members
    assert unanimous(first, second, by="position") is position


@pytest.mark.covers("ladder.rerank")
def test_only_the_head_is_reordered_and_the_tail_follows_unchanged() -> None:
    ordered = reorder(candidates("a", "b", "c", "d", "e"), {"a": 0.1, "b": 0.9, "c": 0.5, "e": 99.0}, head=3)
    assert [one.id for one in ordered] == ["b", "c", "a", "d", "e"]
    assert [one.rerank_score for one in ordered] == [0.9, 0.5, 0.1, None, None]


@pytest.mark.covers("ladder.rerank")
def test_head_items_the_reranker_does_not_return_keep_their_fused_order() -> None:
    ordered = reorder(candidates("a", "b", "c", "d"), {"d": 1.0, "b": 2.0}, head=4)
    assert [one.id for one in ordered] == ["b", "d", "a", "c"]


@pytest.mark.covers("ladder.rerank")
def test_equal_judgements_keep_the_fused_order() -> None:
    assert [one.id for one in reorder(candidates("c", "a", "b"), {"a": 1.0, "b": 1.0, "c": 1.0})] == ["c", "a", "b"]


@pytest.mark.covers("prior.rerank")
def test_zscore_lets_the_first_stage_keep_its_say() -> None:
    near = {"a": 0.50, "b": 0.52, "c": 0.51, "d": -5.0}
    assert [one.id for one in reorder(candidates("a", "b", "c", "d"), near, blend="replace")] == ["b", "c", "a", "d"]
    assert [one.id for one in reorder(candidates("a", "b", "c", "d"), near, blend="zscore")] == ["a", "b", "c", "d"]
    # Of four places each is 0.9 of a deviation from the next: a verdict that stands out more than that moves a memory.
    sure = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 1.0}
    for shift in (0.0, 100.0):
        judged = {id: score + shift for id, score in sure.items()}
        assert [one.id for one in reorder(candidates("a", "b", "c", "d"), judged, blend="zscore")] == list("adbc")
    level = dict.fromkeys("abcd", 0.7)
    assert [one.id for one in reorder(candidates("d", "c", "b", "a"), level, blend="zscore")] == list("dcba")


def test_no_judgement_changes_nothing() -> None:
    for blend in ("replace", "zscore"):
        assert [one.id for one in reorder(candidates("b", "a"), {}, blend=blend)] == ["b", "a"]  # type: ignore[arg-type]
