"""Fusion by hand: small lists whose sums can be checked with a pencil."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import recollect
from recollect.domain.ranking import Hit, Passage, RankedList
from recollect.stages.fusion import FUSIONS, convex, fuse, ranks, reachable, rrf, scaled


def ranked(name: str, *ids: str, weight: float = 1.0) -> RankedList:
    return RankedList(name, tuple(Hit(id, 1.0 - place / 10) for place, id in enumerate(ids)), weight)


def scored(name: str, weight: float = 1.0, **scores: float) -> RankedList:
    hits = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return RankedList(name, tuple(Hit(id, score) for id, score in hits), weight)


@pytest.mark.covers("fusion.rrf")
def test_score_is_the_sum_of_weight_over_k_plus_rank() -> None:
    fused = {one.id: one for one in rrf([ranked("lexical", "a", "b"), ranked("dense", "b", "c", weight=0.5)])}
    assert fused["a"].score == pytest.approx(1 / 61, abs=1e-15)
    assert fused["b"].score == pytest.approx(1 / 62 + 0.5 / 61, abs=1e-15)
    assert fused["c"].score == pytest.approx(0.5 / 62, abs=1e-15)


@pytest.mark.covers("fusion.rrf")
def test_ranks_are_one_based_so_the_zero_based_form_of_seed_003_is_the_same_number() -> None:
    (only,) = rrf([ranked("lexical", "a")], k=60)
    assert only.score == 1 / (60 + 0 + 1)


@pytest.mark.covers("fusion.rrf")
def test_k_is_an_argument() -> None:
    (only,) = rrf([ranked("lexical", "a")], k=10)
    assert only.score == 1 / 11
    with pytest.raises(recollect.InvalidInput):
        rrf([ranked("lexical", "a")], k=-1)


@pytest.mark.covers("fusion.absent")
def test_absent_from_a_list_contributes_exactly_nothing() -> None:
    alone = rrf([ranked("lexical", "a")])
    beside = {one.id: one for one in rrf([ranked("lexical", "a"), ranked("dense", "b", "c", "d")])}
    assert beside["a"].score == alone[0].score
    assert [one.list for one in beside["a"].contributions] == ["lexical"]


@pytest.mark.covers("fusion.one-list")
def test_one_non_empty_list_keeps_its_order() -> None:
    fused = rrf([ranked("lexical", "z", "a", "m"), RankedList("dense", ())])
    assert [one.id for one in fused] == ["z", "a", "m"]


@pytest.mark.covers("fusion.ties")
@pytest.mark.parametrize(
    ("ties", "expected"), [("dense", [1, 1, 2, 3]), ("competition", [1, 1, 3, 4]), ("ordinal", [1, 2, 3, 4])]
)
def test_equal_scores_share_ranks_as_the_profile_says(ties: str, expected: list[int]) -> None:
    hits = [Hit("a", 0.9), Hit("b", 0.9), Hit("c", 0.5), Hit("d", 0.4)]
    assert ranks(hits, ties) == expected  # type: ignore[arg-type]


@pytest.mark.covers("fusion.ties")
def test_near_ties_count_as_ties_only_within_epsilon() -> None:
    hits = [Hit("a", 0.9), Hit("b", 0.8999), Hit("c", 0.5)]
    assert ranks(hits, "dense") == [1, 2, 3]
    assert ranks(hits, "dense", 0.001) == [1, 1, 2]


@pytest.mark.covers("fusion.ties")
def test_equal_fused_scores_go_by_id_or_by_first_appearance() -> None:
    lists = [ranked("dense", "z"), ranked("lexical", "a")]
    assert [one.id for one in rrf(lists, equal="id")] == ["a", "z"]
    assert [one.id for one in rrf(lists, equal="first_seen")] == ["z", "a"]
    assert [one.id for one in rrf(lists[::-1], equal="first_seen")] == ["z", "a"]


@pytest.mark.covers("fusion.zero-weight")
@pytest.mark.parametrize("kind", sorted(FUSIONS))
def test_weight_zero_lets_nothing_in_on_either_side(kind: str) -> None:
    silent, heard = ranked("dense", "a", "b", weight=0.0), ranked("lexical", "b", "c")
    for lists in ([silent, heard], [heard, silent]):
        fused = FUSIONS[kind](lists)
        assert {one.id for one in fused} == {"b", "c"}
        assert all(part.list == "lexical" for one in fused for part in one.contributions)


@pytest.mark.covers("fusion.convex")
def test_tm2c2_scales_from_the_theoretical_minimum_to_the_maximum_of_the_query() -> None:
    lists = [scored("lexical", 0.8, a=10.0, b=5.0), scored("dense", 0.2, a=0.5, c=0.0)]
    fused = {one.id: one.score for one in convex(lists, norm="tm2c2", minimums={"lexical": 0.0, "dense": -1.0})}
    assert fused["a"] == pytest.approx(0.8 * 1 + 0.2 * 1)
    assert fused["b"] == pytest.approx(0.8 * 0.5)
    assert fused["c"] == pytest.approx(0.2 * (1 / 1.5))


@pytest.mark.covers("fusion.convex")
@pytest.mark.parametrize("name", ["dense", "similarity"])
def test_the_theoretical_minimum_of_a_cosine_is_minus_one_unless_told_otherwise(name: str) -> None:
    lists = [scored("lexical", a=10.0, b=5.0), scored(name, a=0.5, c=0.0, d=-0.4)]
    fused = {one.id: one.score for one in convex(lists)}
    assert fused == {"a": 2.0, "b": 0.5, "c": pytest.approx(1 / 1.5), "d": pytest.approx(0.6 / 1.5)}
    told = {one.id: one.score for one in convex(lists, minimums={name: -0.4})}
    assert (told["c"], told["d"]) == (pytest.approx(0.4 / 0.9), pytest.approx(0.0))


@pytest.mark.covers("fusion.convex")
def test_minmax_gives_the_worst_of_a_list_nothing_and_a_lone_hit_everything() -> None:
    fused = {one.id: one.score for one in convex([scored("lexical", a=10.0, b=6.0, c=2.0)], norm="minmax")}
    assert fused == {"a": 1.0, "b": 0.5, "c": 0.0}
    assert [one.score for one in convex([scored("lexical", a=3.0)], norm="minmax")] == [1.0]
    assert [one.score for one in convex([scored("dense", a=0.6, b=0.5)], norm="minmax")] == [1.0, 0.0], "however near"


@pytest.mark.covers("fusion.convex")
def test_alpha_is_the_share_of_one_list_and_the_others_divide_the_rest() -> None:
    lists = [scored("lexical", 3.0, a=1.0), scored("context", 1.0, a=1.0), scored("dense", 9.0, a=1.0)]
    (only,) = convex(lists, alpha=0.2, alpha_of="dense")
    assert {part.list: pytest.approx(part.value) for part in only.contributions} == {
        "context": 0.2,
        "dense": 0.2,
        "lexical": 0.6,
    }


@pytest.mark.parametrize(("alpha", "heard"), [(0.0, "lexical"), (1.0, "dense")])
def test_a_share_of_nothing_lets_nothing_in(alpha: float, heard: str) -> None:
    fused = convex([scored("lexical", a=2.0), scored("dense", b=1.0)], alpha=alpha)
    assert [part.list for one in fused for part in one.contributions] == [heard]


def test_a_list_that_is_flat_by_making_is_so_whatever_its_share() -> None:
    lists = [replace(scored("lexical", a=2.0, b=1.0), flattened=True), scored("dense", a=0.9, b=0.1)]
    assert convex(lists, alpha=0.5, gaps={"lexical": 0.5, "dense": 0.5}) == convex(lists, alpha=0.5)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.5}], ids=str)
def test_the_best_of_a_list_that_knows_its_ceiling_counts_as_what_it_is(options: dict[str, Any]) -> None:
    likenesses = replace(scored("lexical", a=0.4, b=0.3), weight=0.5, ceiling=1.0)
    fused = {one.id: one for one in convex([likenesses, replace(scored("dense", c=0.9), weight=0.5)], **options)}
    assert fused["a"].score == pytest.approx(0.2) and fused["b"].score == pytest.approx(0.15)
    assert fused["c"].score == pytest.approx(0.5)


@pytest.mark.covers("fusion.scaled")
@pytest.mark.parametrize(("raw", "expected"), [(-3.0, 0.0), (0.0, 0.0), (5.0, 0.2), (25.0, 1.0), (40.0, 1.0)])
def test_scaled_is_the_raw_score_over_25_between_0_and_1(raw: float, expected: float) -> None:
    (only,) = scaled([RankedList("lexical", (Hit("a", raw),))])
    assert only.score == pytest.approx(expected)


@pytest.mark.covers("fusion.reach")
def test_the_graph_of_seed_001_cannot_reach_the_top_50_and_at_weight_1_it_can() -> None:
    weights = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
    assert reachable(weights, k=60, top=50) == {"lexical": True, "dense": True, "graph": False}
    assert reachable({**weights, "graph": 1.0}, k=60, top=50)["graph"]
    assert not reachable({**weights, "graph": 0.0}, k=60, top=50)["graph"]


@pytest.mark.covers("fusion.reach")
def test_a_list_must_beat_the_strongest_of_the_others_and_one_without_weight_reaches_nothing() -> None:
    assert not reachable({"lexical": 1.0, "dense": 0.1, "graph": 0.35}, k=60, top=50)["graph"]
    assert reachable({"lexical": 0.0}, k=60, top=5) == {"lexical": False}


@pytest.mark.covers("fusion.rrf", "fusion.pure")
def test_fuse_takes_plain_ids_and_returns_reasons() -> None:
    fused = fuse({"lexical": ["a", "b"], "dense": ["b"]}, weights={"dense": 2.0}, k=10)
    assert [one.id for one in fused] == ["b", "a"]
    best = fused[0]
    assert best.score == pytest.approx(1 / 12 + 2 / 11)
    assert {(part.list, part.rank, part.weight) for part in best.contributions} == {
        ("dense", 1, 2.0),
        ("lexical", 2, 1.0),
    }
    with pytest.raises(recollect.InvalidInput):
        fuse({"lexical": ["a"]}, weights={"lexcial": 1.0})


@pytest.mark.covers("fusion.convex")
def test_lists_can_have_norms_of_their_own_and_a_least_range() -> None:
    lists = [scored("lexical", 0.3, a=4.0, b=1.0), scored("dense", 0.7, a=0.6, b=0.5), scored("bridge", 0.2, b=0.5)]
    fused = convex(lists, norms={"dense": "minmax", "bridge": "raw"}, ranges={"dense": 0.4})
    got = {one.id: {part.list: part.value for part in one.contributions} for one in fused}
    assert got["a"] == pytest.approx({"lexical": 0.3, "dense": 0.7})
    assert got["b"] == pytest.approx({"lexical": 0.075, "dense": 0.7 * (1 - 0.1 / 0.4), "bridge": 0.1})


@pytest.mark.covers("fusion.convex")
@pytest.mark.parametrize(("in_passages", "least"), [(0, 0.4), (1, 0.4), (2, 0.2), (3, 0.2)])
def test_the_least_range_of_best_passages_is_half_as_wide(in_passages: int, least: float) -> None:
    hits = [
        Hit(id, score, Passage(0, 9) if place < in_passages else None)
        for place, (id, score) in enumerate({"a": 0.6, "b": 0.55, "c": 0.5}.items())
    ]
    fused = convex([RankedList("dense", tuple(hits), 1.0)], norms={"dense": "minmax"}, ranges={"dense": 0.4})
    assert {one.id: one.score for one in fused} == pytest.approx({"a": 1, "b": 1 - 0.05 / least, "c": 1 - 0.1 / least})


@pytest.mark.covers("fusion.convex")
def test_a_list_that_is_clearer_than_usual_takes_weight_from_the_others() -> None:
    lexical, dense = scored("lexical", 0.3, a=4.0, b=1.0), scored("dense", 0.7, a=0.9, b=0.8)
    bridge = scored("bridge", 0.2, b=0.5)
    options: dict[str, Any] = {"norms": {"dense": "minmax", "bridge": "raw"}, "ranges": {"dense": 0.4}}
    usual = {"lexical": 0.5, "dense": 0.5}
    fused = convex([lexical, dense, bridge], **options, gaps=usual)
    weights = {part.list: part.weight for one in fused for part in one.contributions}
    # The words stand 0.75 apart, the meanings 0.25: three to one, in the proportion of their weights.
    assert weights == pytest.approx({"lexical": 0.3 * 3 / (0.9 + 0.7), "dense": 0.7 / (0.9 + 0.7), "bridge": 0.2})
    for alone in ([lexical, bridge], [dense]):
        assert convex(alone, **options, gaps=usual) == convex(alone, **options), "nobody to take from or give to"
    single = scored("lexical", 0.3, a=4.0)
    assert convex([single, dense], **options, gaps=usual)[0].contributions[1].weight == pytest.approx(0.3 * 4 / 1.9)
    level = scored("lexical", 0.3, a=4.0, b=4.0)
    assert convex([level, dense], **options, gaps=usual)[0].contributions[1].weight > 0, "undecided is not mute"
    mixed = [replace(lexical, flattened=True), dense, bridge]
    assert convex(mixed, **options, gaps=usual) == convex(mixed, **options), "flat by making is not undecided"


@pytest.mark.parametrize(
    "asked",
    [
        {"lists": {"a": "xyz"}},
        {"lists": {"a": {"x", "y"}}},
        {"lists": {"a": ["x"]}, "weights": {"a": -1.0}},
        {"lists": {"a": ["x"]}, "weights": {"a": float("nan")}},
        {"lists": {"a": ["x"]}, "weights": {"a": float("inf")}},
        {"lists": {"a": ["x"]}, "weights": {"a": "1"}},
        {"lists": {"a": ["x"]}, "k": "60"},
        {"lists": {"a": ["x"]}, "k": -1},
    ],
)
def test_fusion_refuses_what_would_silently_mean_something_else(asked: dict[str, Any]) -> None:
    with pytest.raises(recollect.InvalidInput) as refused:
        fuse(**asked)
    assert refused.value.hint
