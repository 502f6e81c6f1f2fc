"""The decision whether a reranker is asked, and what its answer does to the order. The tail is never touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Literal

from recollect.domain.profile import Range
from recollect.domain.recall import Candidate

By = Literal["members", "position"]
Blend = Literal["replace", "zscore"]


@dataclass(frozen=True, slots=True)
class RerankOptions:
    """A profile's [rerank] table: whether a reranker is asked, about how many, and within which time."""

    enabled: bool = False
    head: Annotated[int, Range(2, 100)] = 20
    budget_ms: Annotated[float, Range(1, 60_000)] = 400.0
    blend: Blend = "replace"
    unanimity: bool = True
    """Skip the reranker where the two lists of `between` already agree."""
    by: By = "members"
    between: tuple[str, str] = ("lexical", "dense")


def unanimous(first: Sequence[str], second: Sequence[str], *, top: int = 3, share: int = 2, by: By = "members") -> bool:
    """Whether two heads already agree: at least `share` of their first `top` ids are common.

    by = "position" counts only ids that stand at the same place in both.
    """
    heads = first[:top], second[:top]
    if by == "position":
        return sum(one == other for one, other in zip(*heads, strict=False)) >= share
    return len(set(heads[0]) & set(heads[1])) >= share


def reorder(
    candidates: Sequence[Candidate], scores: Mapping[str, float], *, head: int = 20, blend: Blend = "replace"
) -> list[Candidate]:
    """The head in the reranker's order, then the tail as it was.

    Head items the reranker did not score keep their fused order, below those it scored. "zscore" adds the
    standardised reranker score to the standardised negative first-stage rank: a small model helps only when the
    first stage keeps its say.
    """
    judged = [one for one in candidates[:head] if one.id in scores]
    silent = [one for one in candidates[:head] if one.id not in scores]
    merit = BLENDS[blend]([scores[one.id] for one in judged])
    order = sorted(range(len(judged)), key=lambda place: (-merit[place], place))
    scored = [judged[place]._replace(rerank_score=scores[judged[place].id]) for place in order]
    return [*scored, *silent, *candidates[head:]]


def _replace(scores: Sequence[float]) -> list[float]:
    return list(scores)


def _zscore(scores: Sequence[float]) -> list[float]:
    ranks = [-float(place) for place in range(len(scores))]
    return [one + other for one, other in zip(_standardised(scores), _standardised(ranks), strict=True)]


BLENDS: Mapping[Blend, Callable[[Sequence[float]], list[float]]] = {"replace": _replace, "zscore": _zscore}


def _standardised(values: Sequence[float]) -> list[float]:
    if not values:
        return []
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / spread if spread > 0 else 0.0 for value in values]
