"""How to measure, and the verdict on a system's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.evals import measures, significance
from recollect.evals.asking import Asked
from recollect.evals.bench import Case
from recollect.evals.measures import Scores


@dataclass(frozen=True, slots=True)
class Plan:
    """Cut-offs, the seed of the bootstrap, and whether answers are also asked and timed as a user gets them."""

    ks: tuple[int, ...] = measures.KS
    seed: int = significance.SEED
    as_shipped: bool = True

    @property
    def limit(self) -> int:
        """How deep a ranking must be for every measure."""
        return max(*self.ks, measures.DEPTH)


def judge(cases: Sequence[Case], answers: Mapping[str, Asked], plan: Plan) -> Scores:
    """The measures of each case."""
    rankings = {case.id: answers[case.id].ranking for case in cases}
    return measures.score({case.id: case.relevant for case in cases}, rankings, plan.ks)
