"""One system on one bench: measures with intervals, strata, times, tokens, bytes, reach, abstention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from recollect.evals import abstention, significance
from recollect.evals.asking import Asked, Tick, ask_all
from recollect.evals.bench import Bench, Case
from recollect.evals.judging import Plan, judge
from recollect.evals.lists import reach
from recollect.evals.measures import Scores
from recollect.evals.significance import Estimate
from recollect.evals.systems import System

NO_STRATUM = "(none)"


@dataclass(frozen=True, slots=True)
class Stratum:
    """The measures of one kind of question."""

    questions: int
    measures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything measured about one system on one set; `scores` and `answers` stay in memory."""

    system: System
    data: Mapping[str, Any]
    private: bool
    scores: Scores
    answers: Mapping[str, Asked]
    measures: Mapping[str, Estimate]
    strata: Mapping[str, Stratum]
    milliseconds: Mapping[str, Any]
    tokens: Mapping[str, float]
    bytes: int
    degraded: int
    reranked: int
    reach: Mapping[str, Any]
    abstention: Mapping[str, Any] | None
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was asked for beside: ablation, typos."""


def evaluate(bench: Bench, system: System, plan: Plan, tick: Tick | None = None) -> Result:
    """Ask every judged and every unanswerable case, and measure."""
    judged, unanswerable = bench.of("counted", "aside"), bench.of("unanswerable")
    answers = ask_all(
        bench, system, [*judged, *unanswerable], plan.limit, as_shipped=plan.as_shipped, tick=tick
    )  # fmt: skip
    counted = [case for case in judged if case.kind == "counted"]
    scores = judge(judged, answers, plan)
    overall = scores.rows([case.kind == "counted" for case in judged])
    ours = [answers[case.id] for case in judged]
    return Result(
        system=system,
        data={**bench.facts, "name": bench.name, "counted": len(counted), "unanswerable": len(unanswerable)},
        private=bench.private,
        scores=overall,
        answers=answers,
        measures=_estimates(overall, plan.seed),
        strata=_strata(judged, scores, plan.seed),
        milliseconds=_milliseconds(ours, bench),
        tokens=_spread([float(one.tokens) for one in ours]) if plan.as_shipped and system.profile else {},
        bytes=bench.engine.stats().bytes,
        degraded=sum(one.degraded for one in answers.values()),
        reranked=sum(one.reranked for one in answers.values()),
        reach=reach(system, bench.engine.settings.profiles, [answers[case.id] for case in counted], plan.ks),
        abstention=abstention.curve(
            [answers[case.id] for case in counted], [answers[case.id] for case in unanswerable]
        ),
    )


def macro(results: Sequence[Result]) -> dict[str, float]:
    """The mean over data sets of each measure's mean: a large set counts no more than a small one."""
    means = [one.scores.means() for one in results if one.scores.ids]
    names = means[0] if means else {}
    return {name: fmean(one[name] for one in means) for name in names}


def _estimates(scores: Scores, seed: int) -> dict[str, Estimate]:
    return dict(zip(scores.names, significance.estimates(scores.values, seed), strict=False))


def _strata(cases: Sequence[Case], scores: Scores, seed: int) -> dict[str, Stratum]:
    """Every stratum with its own interval; nothing where the set knows none."""
    names = [case.stratum or NO_STRATUM for case in cases]
    if set(names) <= {NO_STRATUM}:
        return {}
    found: dict[str, Stratum] = {}
    for name in sorted(set(names)):
        part = scores.rows([one == name for one in names])
        found[name] = Stratum(len(part.ids), _estimates(part, seed))
    return found


def _milliseconds(answers: Sequence[Asked], bench: Bench) -> dict[str, Any]:
    """Of whole answers, of each stage and list, and of the model for one question (which runs beside the words)."""
    stages: dict[str, list[float]] = {}
    for one in answers:
        for name, ms in one.stages.items():
            stages.setdefault(name, []).append(ms)
    return {
        **significance.quantiles([one.ms for one in answers]),
        "stages": {name: significance.quantiles(values) for name, values in stages.items()},
        "embedding a question": significance.quantiles(bench.embedder.query_ms if bench.embedder else []),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": round(fmean(values), 2), **significance.quantiles(values)} if values else {}
