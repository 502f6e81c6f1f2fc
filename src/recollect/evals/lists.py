"""What each list is good for: leave it out and see what is lost; can its best hit alone reach the top at all?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.evals import significance
from recollect.evals.asking import Asked, Tick, ask_all
from recollect.evals.bench import Bench, Case
from recollect.evals.judging import Plan, judge
from recollect.evals.measures import Scores
from recollect.evals.systems import System, voting_lists
from recollect.stages.fusion import reachable

DEFAULT_K = 60.0


def reach(system: System, folder: Path | None, answers: Sequence[Asked], ks: Sequence[int]) -> dict[str, Any]:
    """For each list: what the weights allow (RRF only), and how often a best hit that no other list has got there.

    seen[k] counts, of the `alone` answers whose list had a best hit of its own, those with it among the first k.
    """
    if system.profile is None:
        return {}
    profile, lists = voting_lists(system, folder)
    votes = {one.name: one.weight for one in lists.values() if one.votes}
    k = float(profile.fusion.options.get("k", DEFAULT_K))
    ranked = profile.fusion.kind == "rrf"
    found: dict[str, Any] = {}
    for name, weight in votes.items():
        alone = [best for one in answers if (best := _best_alone(one, name)) is not None]
        found[name] = {
            "weight": weight,
            "allowed": {str(top): reachable(votes, k, top)[name] for top in ks} if ranked else None,
            "alone": len(alone),
            "seen": {str(top): sum(place < top for place in alone) for top in ks},
        }
    return found


def _best_alone(answer: Asked, name: str) -> float | None:
    """The place of the list's best hit in the ranking (infinite where it is not), if no other list holds it."""
    mine = answer.lists.get(name, ())
    if not mine or any(mine[0] in ids for other, ids in answer.lists.items() if other != name):
        return None
    return answer.ranking.index(mine[0]) if mine[0] in answer.ranking else float("inf")


def ablation(
    bench: Bench, system: System, whole: Mapping[str, Asked], scores: Scores, plan: Plan, tick: Tick | None = None
) -> dict[str, Any]:
    """Each list left out by weight 0: the change of every measure, and which relevant memories come and go.

    only_with[k] counts relevant memories among the first k only because of the list, only_without[k] those that it
    pushes out; sole[k] those that no other list contributed to.
    """
    cases = bench.of("counted")
    _, lists = voting_lists(system, bench.engine.settings.profiles)
    if len(lists) < 2:
        return {}
    found: dict[str, Any] = {}
    for path in lists:
        without = system.varied({f"{path}.weight": 0.0})
        answers = ask_all(bench, without, cases, plan.limit, as_shipped=False, tick=tick)
        changes = significance.differences(scores.values, judge(cases, answers, plan).values, plan.seed)
        found[path] = {
            "without": dict(zip(scores.names, changes, strict=False)),
            "only_with": {str(k): _kept(cases, whole, answers, k) for k in plan.ks},
            "only_without": {str(k): _kept(cases, answers, whole, k) for k in plan.ks},
            "sole": {str(k): _sole(cases, whole, lists[path].name, k) for k in plan.ks},
        }
    return found


def _kept(cases: Sequence[Case], here: Mapping[str, Asked], there: Mapping[str, Asked], k: int) -> int:
    """Relevant memories among the first k here that are not among the first k there."""
    return sum(
        id in case.relevant and id not in there[case.id].ranking[:k]
        for case in cases
        for id in here[case.id].ranking[:k]
    )


def _sole(cases: Sequence[Case], answers: Mapping[str, Asked], name: str, k: int) -> int:
    return sum(
        id in case.relevant and answers[case.id].sole.get(id) == name
        for case in cases
        for id in answers[case.id].ranking[:k]
    )
