"""Turning several ranked lists into one: weighted Reciprocal Rank Fusion, convex combination, scaled scores.

Every fusion takes named lists and returns all memories best first, each with what every list gave it. Lists are
known by name: the order in which they are handed over changes nothing, sums included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, inf
from typing import Annotated, Literal, get_args

from recollect.domain.errors import InvalidInput
from recollect.domain.profile import Range
from recollect.domain.question import several, table
from recollect.domain.ranking import Contribution, Fused, Hit, RankedList

Fusion = Callable[..., list[Fused]]

Ties = Literal["ordinal", "dense", "competition"]
Equal = Literal["id", "first_seen"]
Norm = Literal["tm2c2", "minmax", "raw"]
K = Annotated[float, Range(0, 10_000)]
Share = Annotated[float, Range(0, 1)]
Epsilon = Annotated[float, Range(0, 1e9)]

GAP_PLACE = 10
LEAST_GAP = 0.05

# The least that a list's scores can be, by its usual name: cosines go down to -1, all others to 0.
THEORETICAL: Mapping[str, float] = {"dense": -1.0, "similarity": -1.0}


def ranks(hits: Sequence[Hit], ties: Ties = "ordinal", tie_epsilon: float = 0.0) -> list[int]:
    """1-based ranks of a list that is already in order.

    Neighbours whose scores differ by at most tie_epsilon are equal: "dense" gives 1,1,2, "competition" 1,1,3,
    "ordinal" ignores ties.
    """
    if ties == "ordinal":
        return list(range(1, len(hits) + 1))
    given: list[int] = []
    for position, hit in enumerate(hits, start=1):
        tied = position > 1 and abs(hits[position - 2].score - hit.score) <= tie_epsilon
        if not given:
            given.append(position)
        elif tied:
            given.append(given[-1])
        else:
            given.append(given[-1] + 1 if ties == "dense" else position)
    return given


def rrf(
    lists: Iterable[RankedList],
    *,
    k: K = 60.0,
    ties: Ties = "ordinal",
    tie_epsilon: Epsilon = 0.0,
    equal: Equal = "id",
) -> list[Fused]:
    """Reciprocal Rank Fusion: score(d) = Σ weight / (k + rank), over the lists that hold d."""
    if k < 0:
        raise InvalidInput(f"k must not be negative, got {k}", "the usual value is 60", "k")
    given: dict[str, list[Contribution]] = {}
    for ranked in _voting(lists):
        for hit, rank in zip(ranked.hits, ranks(ranked.hits, ties, tie_epsilon), strict=True):
            value = ranked.weight / (k + rank)
            given.setdefault(hit.id, []).append(Contribution(ranked.name, rank, hit.score, ranked.weight, value))
    return _order(given, equal)


def convex(
    lists: Iterable[RankedList],
    *,
    norm: Norm = "tm2c2",
    norms: Mapping[str, Norm] | None = None,
    minimums: Mapping[str, float] | None = None,
    ranges: Mapping[str, float] | None = None,
    gaps: Mapping[str, float] | None = None,
    alpha: Share | None = None,
    alpha_of: str = "dense",
    ties: Ties = "ordinal",
    tie_epsilon: Epsilon = 0.0,
    equal: Equal = "id",
) -> list[Fused]:
    """Convex combination: score(d) = Σ weight · normalised score, over the lists that hold d.

    "tm2c2" scales from the list's theoretical minimum (`minimums`; where not given, -1 for the lists "dense" and
    "similarity" and 0 for all others) to its maximum in this query, so that the best has 1, or to its ceiling where it
    knows one (likenesses of spelling); "minmax" from its smallest to its largest score; "raw" takes scores that lie
    between 0 and 1 as they are. `norms` chooses for single lists. `ranges` gives a list the least distance that may be
    stretched to 1, so that a list that cannot decide does not pretend to; half of it where most hits are the best
    passages of long memories. `gaps` tells for lists how far their best usually stands above their tenth: a list that
    is clearer than usual counts more in this query, the others less. alpha, where given, is the share of the list
    `alpha_of`; the others divide the rest in the proportion of their
    weights.
    """
    floors, chosen, least = {**THEORETICAL, **(minimums or {})}, norms or {}, ranges or {}
    voting = _voting(lists)
    if alpha is not None:
        voting = _voting(_shared(voting, alpha, alpha_of))
    shares: dict[str, list[float]] = {}
    for ranked in voting:
        scores = [hit.score for hit in ranked.hits]
        kind = chosen.get(ranked.name, norm)
        known = {"raw": 1.0, "tm2c2": ranked.ceiling}.get(kind)
        high = max(scores) if known is None else known
        low = {"minmax": min(scores), "raw": 0.0}.get(kind, floors.get(ranked.name, 0.0))
        spread = max(high - low, least.get(ranked.name, 0.0) * _variation(ranked.hits))
        shares[ranked.name] = [1.0 + (score - high) / spread if spread > 0 else 1.0 for score in scores]
    given: dict[str, list[Contribution]] = {}
    for ranked in _by_gap(voting, shares, gaps or {}):
        name, weight, places = ranked.name, ranked.weight, ranks(ranked.hits, ties, tie_epsilon)
        for (id, score, _), rank, share in zip(ranked.hits, places, shares[name], strict=True):
            given.setdefault(id, []).append(Contribution(name, rank, score, weight, weight * share))
    return _order(given, equal)


def scaled(
    lists: Iterable[RankedList], *, divisor: Annotated[float, Range(1e-6, 1e6)] = 25.0, equal: Equal = "id"
) -> list[Fused]:
    """Scores taken as they are: score(d) = Σ weight · min(1, max(0, raw / divisor)), raw higher-is-better."""
    given: dict[str, list[Contribution]] = {}
    for ranked in _voting(lists):
        for rank, hit in enumerate(ranked.hits, start=1):
            value = ranked.weight * min(1.0, max(0.0, hit.score / divisor))
            given.setdefault(hit.id, []).append(Contribution(ranked.name, rank, hit.score, ranked.weight, value))
    return _order(given, equal)


FUSIONS: Mapping[str, Fusion] = {"rrf": rrf, "convex": convex, "scaled": scaled}


def fuse(
    lists: Mapping[str, Sequence[str]],
    weights: Mapping[str, float] | None = None,
    k: float = 60.0,
    equal: Equal = "id",
) -> list[Fused]:
    """Reciprocal Rank Fusion of plain lists of ids, best first. Lists without a weight count 1."""
    lists, given = table(lists, "lists"), table(weights, "weights")
    if unknown := sorted(set(given) - set(lists)):
        raise InvalidInput(f"a weight is given for {unknown[0]!r}, which is no list", f"lists: {', '.join(lists)}")
    if equal not in (allowed := get_args(Equal)):
        raise InvalidInput(f"unknown equal {equal!r}", f"allowed: {', '.join(allowed)}", "equal")
    for name, number in (*given.items(), ("k", k)):
        if not isinstance(number, int | float) or not 0 <= number < inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{name} must be a number of at least 0, not {number!r}", "weights are usually 1, k 60")
    if unordered := [name for name, ids in lists.items() if isinstance(ids, set | frozenset)]:
        raise InvalidInput(f"{unordered[0]} must be in order, best first; a set has none", "give a list", unordered[0])
    ranked = [
        RankedList(name, tuple(Hit(id, 0.0) for id in dict.fromkeys(several(ids, name))), given.get(name, 1.0))
        for name, ids in lists.items()
    ]
    return rrf(ranked, k=k, equal=equal)


def reachable(weights: Mapping[str, float], k: float, top: int) -> dict[str, bool]:
    """Whether each list's best hit, found by no other list, can reach the first `top` places.

    The rivals are the `top` best hits that all other lists agree on: list l reaches when
    weight_l / (k + 1) beats the place `top` of the strongest other list alone, weight / (k + top).
    """
    verdict: dict[str, bool] = {}
    for name, weight in weights.items():
        rivals = [other for rival, other in weights.items() if rival != name and other > 0]
        bar = max(rivals, default=0.0) / (k + top)
        verdict[name] = weight > 0 and weight / (k + 1) >= bar
    return verdict


def _voting(lists: Iterable[RankedList]) -> list[RankedList]:
    """Lists that have a say, by name: neither empty lists nor weight 0 may let anything in with score 0."""
    return sorted((one for one in lists if one.weight > 0 and one.hits), key=lambda one: one.name)


def _shared(lists: list[RankedList], alpha: float, alpha_of: str) -> list[RankedList]:
    rest = fsum(one.weight for one in lists if one.name != alpha_of)
    shares = [alpha if one.name == alpha_of else (1 - alpha) * one.weight / rest for one in lists]
    return [
        RankedList(one.name, one.hits, share, one.flattened, one.ceiling)
        for one, share in zip(lists, shares, strict=True)
    ]


def _variation(hits: Sequence[Hit]) -> float:
    """How much scores vary, against those of whole memories: the best of a dozen passages varies half as much."""
    return 0.5 if 2 * [passage for _, _, passage in hits].count(None) < len(hits) else 1.0


def _by_gap(
    lists: list[RankedList], shares: Mapping[str, Sequence[float]], usual: Mapping[str, float]
) -> list[RankedList]:
    """The lists of `usual` divide their weights anew by how clear each is, against how clear it usually is.

    A list that is flat by making does not tell how clear it is: then all weights stay.
    """
    if any(one.flattened and one.name in usual for one in lists):
        return lists
    clear = {
        one.name: one.weight * _gap(shares[one.name]) / usual[one.name] for one in lists if usual.get(one.name, 0) > 0
    }
    if len(clear) < 2:
        return lists
    scale = fsum(one.weight for one in lists if one.name in clear) / fsum(clear.values())
    return [RankedList(one.name, one.hits, clear[one.name] * scale) if one.name in clear else one for one in lists]


def _gap(shares: Sequence[float]) -> float:
    """How far the best stands above the tenth, or the last of a shorter list; a single hit stands alone."""
    return max(shares[0] - shares[min(GAP_PLACE, len(shares)) - 1], LEAST_GAP) if len(shares) > 1 else 1.0


def _order(given: Mapping[str, list[Contribution]], equal: Equal) -> list[Fused]:
    """Best first. Equal scores: by id, or by first appearance (lists in the order of their names)."""
    fused = [
        Fused(id, parts[0].value if len(parts) == 1 else fsum([one.value for one in parts]), tuple(parts))
        for id, parts in given.items()
    ]
    if equal == "first_seen":
        return sorted(fused, key=lambda one: -one.score)
    return sorted(fused, key=lambda one: (-one[1], one[0]))
