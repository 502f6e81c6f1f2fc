"""The same questions under other conditions: every combination of options, two systems side by side, with typos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.evals import significance
from recollect.evals.asking import Tick, ask_all
from recollect.evals.bench import Bench
from recollect.evals.judging import Plan, judge
from recollect.evals.measures import Scores
from recollect.evals.running import Result, evaluate, macro
from recollect.evals.significance import Difference
from recollect.evals.systems import System
from recollect.evals.typos import misspelt_case

MAX_COMBINATIONS = 2_000


@dataclass(frozen=True, slots=True)
class Combination:
    """One point of the grid: its options, its results by set, their macro average, and what it changes."""

    options: Mapping[str, Any]
    system: System
    results: tuple[Result, ...]
    macro: Mapping[str, float]
    change: Mapping[str, Mapping[str, Difference]]
    """By set and measure, against the profile as it is."""


def grid(options: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, the first option turning slowest."""
    size = 1
    for path, values in options.items():
        if not values:
            raise InvalidInput(f"{path} has no values", "such as fusion.k=1,10,60", "--set")
        size *= len(values)
    if size > MAX_COMBINATIONS:
        raise InvalidInput(f"{size} combinations are more than {MAX_COMBINATIONS}", "sweep fewer options", "--set")
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]


def sweep(
    benches: Sequence[Bench], base: System, options: Mapping[str, Sequence[Any]], plan: Plan, by: str,
    tick: Tick | None = None,
) -> tuple[list[Result], list[Combination]]:  # fmt: skip
    """The profile as it is on every set, and every combination, best macro average of `by` first."""
    points = grid(options)
    total = (len(points) + 1) * len(benches)
    done = 0

    def measured(system: System) -> tuple[Result, ...]:
        nonlocal done
        results: list[Result] = []
        for bench in benches:
            results.append(evaluate(bench, system, plan))
            done += 1
            if tick is not None:
                tick(done, total)
        return tuple(results)

    plain = measured(base)
    combinations: list[Combination] = []
    for point in points:
        system = base.varied(point)
        results = measured(system)
        change = {
            one.data["name"]: compared(before.scores, one.scores, plan.seed)
            for before, one in zip(plain, results, strict=True)
        }
        combinations.append(Combination(point, system, results, macro(results), change))
    return list(plain), sorted(combinations, key=lambda one: (-one.macro.get(by, 0.0), str(one.options)))


def compared(first: Scores, second: Scores, seed: int) -> dict[str, Difference]:
    """Second minus first, question by question, for every measure."""
    if first.ids != second.ids:
        raise InvalidInput("the two runs did not ask the same questions", "measure both on the same data")
    return dict(zip(first.names, significance.differences(first.values, second.values, seed), strict=False))


def typos(bench: Bench, result: Result, plan: Plan, edits: int, tick: Tick | None = None) -> dict[str, Any]:
    """The same questions misspelt by rule: each measure's mean, and what is kept of the clean one."""
    cases = [misspelt_case(case, plan.seed, edits) for case in bench.of("counted")]
    answers = ask_all(bench, result.system, cases, plan.limit, as_shipped=False, tick=tick)
    means = judge(cases, answers, plan).means()
    clean = result.scores.means()
    kept = {name: means[name] / clean[name] if clean[name] else None for name in means}
    return {"edits": edits, "means": means, "kept": kept}
