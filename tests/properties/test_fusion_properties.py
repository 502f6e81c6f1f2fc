"""What must hold for every fusion, whatever the lists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect.stages.fusion as fusion
from recollect.domain.ranking import Hit, RankedList
from recollect.stages.fusion import FUSIONS, rrf

ids = st.sampled_from([f"m{number}" for number in range(12)])
raw = st.floats(min_value=-50, max_value=50, allow_nan=False)


@st.composite
def ranked_lists(draw: st.DrawFn) -> list[RankedList]:
    lists: list[RankedList] = []
    for name in draw(st.lists(st.sampled_from(["lexical", "dense", "graph", "recency"]), unique=True, max_size=4)):
        scores = draw(st.dictionaries(ids, raw, max_size=10))
        hits = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        weight = draw(st.sampled_from([0.0, 0.35, 1.0, 5.0]))
        lists.append(RankedList(name, tuple(Hit(id, score) for id, score in hits), weight))
    return lists


@pytest.mark.covers("fusion.order-free")
@given(
    ranked_lists(),
    st.randoms(use_true_random=False),
    st.sampled_from(sorted(FUSIONS)),
    st.sampled_from(["id", "first_seen"]),
)
def test_the_order_of_the_lists_never_matters(lists: list[RankedList], chance: object, kind: str, equal: str) -> None:
    shuffled = list(lists)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert FUSIONS[kind](lists, equal=equal) == FUSIONS[kind](shuffled, equal=equal)


@pytest.mark.covers("fusion.rrf", "fusion.absent")
@given(ranked_lists(), st.floats(min_value=0, max_value=200))
def test_scores_are_the_sums_of_their_contributions_and_sorted(lists: list[RankedList], k: float) -> None:
    fused = rrf(lists, k=k)
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)
    held = {name: {hit.id for hit in hits} for name, hits in ((one.name, one.hits) for one in lists)}
    for one in fused:
        assert one.score == pytest.approx(sum(part.value for part in one.contributions), rel=1e-12)
        assert one.score > 0
        assert {part.list for part in one.contributions} == {
            ranked.name for ranked in lists if ranked.weight > 0 and one.id in held[ranked.name]
        }


@pytest.mark.covers("fusion.one-list")
@given(st.lists(ids, unique=True, min_size=1))
def test_a_single_list_keeps_its_order(order: list[str]) -> None:
    hits = tuple(Hit(id, -float(place)) for place, id in enumerate(order))
    assert [one.id for one in rrf([RankedList("lexical", hits), RankedList("dense", ())])] == order


@pytest.mark.covers("fusion.pure")
def test_fusion_imports_nothing_that_could_do_io() -> None:
    tree = ast.parse(Path(fusion.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    allowed = {"__future__", "collections.abc", "math", "typing"}
    assert {name for name in imported if not name.startswith("recollect.domain")} <= allowed
    assert not {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    } & {"open", "print", "input"}
