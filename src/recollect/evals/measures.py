"""How good a ranking is, question by question, through ir-measures.

recall@k is the share of the relevant memories among the first k, any@k whether one of them is there, all@k whether all
are; ndcg@10 takes the grades and the places into account, mrr@10 is one over the place of the first relevant one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect import extras
from recollect.domain.errors import RecollectError

Values: TypeAlias = NDArray[np.float64]

KS = (1, 3, 5, 10, 20)
DEPTH = 10
EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per question, one column per measure."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    values: Values

    def of(self, name: str) -> Values:
        """One measure's values, in the order of the questions."""
        return self.values[:, self.names.index(name)]

    def means(self) -> dict[str, float]:
        """The mean of each measure; nothing without questions."""
        if not self.ids:
            return {}
        return {name: float(mean) for name, mean in zip(self.names, self.values.mean(axis=0), strict=True)}

    def rows(self, wanted: Sequence[bool]) -> Scores:
        """The questions for which `wanted` holds."""
        mask = np.asarray(wanted, dtype=bool)
        kept = tuple(id for id, keep in zip(self.ids, wanted, strict=True) if keep)
        return Scores(kept, self.names, self.values[mask])


def names_of(ks: Sequence[int] = KS) -> tuple[str, ...]:
    """The measures in the order of the columns."""
    each = [f"{kind}@{k}" for kind in ("recall", "any", "all") for k in ks]
    return (*each, f"ndcg@{DEPTH}", f"mrr@{DEPTH}")


def score(
    relevant: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]], ks: Sequence[int] = KS
) -> Scores:
    """Judge rankings (ids, best first) by question id. A question without a ranking scores 0."""
    ids = tuple(relevant)
    names = names_of(ks)
    if not ids:
        return Scores((), names, np.zeros((0, len(names))))
    measures = _measures(ks)
    values = np.zeros((len(ids), len(names)))
    # ir-measures sorts by score: ranks become falling numbers, so that the order given is the order judged. It reads
    # ids as C does, and there are ids that C cannot read: questions and memories go by their number.
    numbers: dict[str, str] = {}
    run = {
        str(row): {_number(one, numbers): float(-place) for place, one in enumerate(rankings[id])}
        for row, id in enumerate(ids)
        if rankings.get(id)
    }
    qrels = {
        str(row): {_number(one, numbers): grade for one, grade in relevant[id].items()} for row, id in enumerate(ids)
    }
    columns = {measure: names.index(name) for name, measure in measures.items()}
    for metric in _ir_measures().iter_calc(list(columns), qrels, run):
        values[int(metric.query_id), columns[metric.measure]] = metric.value
    for k in ks:
        values[:, names.index(f"all@{k}")] = values[:, names.index(f"recall@{k}")] >= 1 - EXACT
    return Scores(ids, names, values)


def _number(id: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(id, str(len(numbers)))


def _measures(ks: Sequence[int]) -> dict[str, Any]:
    library = _ir_measures()
    wanted: dict[str, Any] = {f"recall@{k}": library.R @ k for k in ks}
    wanted |= {f"any@{k}": library.Success @ k for k in ks}
    return {**wanted, f"ndcg@{DEPTH}": library.nDCG @ DEPTH, f"mrr@{DEPTH}": library.RR @ DEPTH}


def _ir_measures() -> Any:
    try:
        import ir_measures
    except ImportError:
        raise RecollectError("measuring needs ir-measures", extras.install("eval")) from None
    return ir_measures
