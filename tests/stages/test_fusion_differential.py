"""Reciprocal Rank Fusion against an independent implementation: the one in Qdrant's client.

Qdrant counts positions from 0 and lets its constant absorb the difference, so its k is ours + 1. Its weights enter
inside the fraction; a whole-number weight is therefore checked as that many copies of a list, and any weight at k = 0,
where both forms are weight / rank.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client.http.models import ScoredPoint
from qdrant_client.hybrid.fusion import reciprocal_rank_fusion

from recollect.domain.ranking import Hit, RankedList
from recollect.stages.fusion import rrf

Orders = list[list[int]]

orders = st.lists(st.lists(st.integers(0, 40), unique=True, max_size=30), min_size=1, max_size=5)


def ours(lists: Orders, k: int, weights: list[float]) -> list[tuple[int, float]]:
    named = [
        RankedList(f"list{number}", tuple(Hit(str(id), float(-place)) for place, id in enumerate(ids)), weight)
        for number, (ids, weight) in enumerate(zip(lists, weights, strict=True))
    ]
    return [(int(one.id), one.score) for one in rrf(named, k=k)]


def theirs(lists: Orders, k: int, weights: list[float] | None = None) -> list[tuple[int, float]]:
    points = [[ScoredPoint(id=id, version=0, score=float(-place)) for place, id in enumerate(ids)] for ids in lists]
    fused = reciprocal_rank_fusion(points, limit=1000, ranking_constant_k=k + 1, weights=weights)
    return [(int(point.id), point.score) for point in fused]


def assert_same(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> None:
    """The same memories with the same scores, in the same order wherever the scores tell them apart."""
    assert dict(found) == pytest.approx(dict(expected), abs=1e-12)
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-12)


@pytest.mark.covers("fusion.rrf", "fusion.absent")
@given(orders, st.integers(0, 100))
def test_unweighted_fusion_is_that_of_an_independent_library(lists: Orders, k: int) -> None:
    assert_same(ours(lists, k, [1.0] * len(lists)), theirs(lists, k))


@pytest.mark.covers("fusion.rrf")
@given(orders, st.integers(0, 100), st.data())
def test_a_whole_weight_is_that_many_copies_of_a_list(lists: Orders, k: int, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(lists), max_size=len(lists)))
    copies = [ids for ids, weight in zip(lists, weights, strict=True) for _ in range(weight)]
    assert_same(ours(lists, k, [float(weight) for weight in weights]), theirs(copies, k))


@pytest.mark.covers("fusion.rrf")
@given(orders, st.data())
def test_any_weight_agrees_where_both_forms_are_weight_over_rank(lists: Orders, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.floats(0.01, 10.0), min_size=len(lists), max_size=len(lists)))
    assert_same(ours(lists, 0, weights), theirs(lists, 0, weights))
