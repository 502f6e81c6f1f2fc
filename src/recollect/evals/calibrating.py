"""Fitting what the signs of an answer are worth: a logistic, judged on scopes it was not fitted on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.domain.confidence import Calibration, Point
from recollect.domain.errors import InvalidInput
from recollect.evals.abstention import auc, injected_at
from recollect.evals.bench import Bench
from recollect.evals.significance import SEED, Estimate
from recollect.evals.systems import System
from recollect.stages.confidence import LANGUAGE_SIGNS, MEANING_SIGNS, WORD_SIGNS

Numbers = NDArray[np.float64]
Tick = Callable[[int, int], None]

ALL_SIGNS = (*WORD_SIGNS, *MEANING_SIGNS, *LANGUAGE_SIGNS)
KEPT = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)
STATED = (0.9, 0.95, 0.97, 0.99)
RIDGE = 3.0
STEPS = 50
FOLDS = 5
RESAMPLES = 2_000
LEAST = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """The signs of every question of one set: a row each, whether it has an answer, and the scope it was asked in."""

    name: str
    rows: Numbers
    answerable: NDArray[np.bool_]
    scopes: tuple[str, ...]
    model: str = ""
    """The embedder's name, where every row has the signs of meaning."""
    unknown: int = 0
    """Answers whose signs could not be seen, such as questions without words."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A calibration and how it does on scopes it has not seen; `tests` are whole sets it has not seen."""

    calibration: Calibration
    answerable: int
    unanswerable: int
    auc: float
    injected_at: dict[str, Estimate]
    curve: list[tuple[float, float]]
    tests: dict[str, dict[str, float]]


def collect(bench: Bench, system: System, tick: Tick | None = None) -> Sample:
    """Ask every case and note the signs, whatever the profile's own calibrations say."""
    probes = [
        {"name": name, "intercept": 0.0, "weights": dict.fromkeys(signs, 0.0)}
        for name, signs in (("meaning", ALL_SIGNS), ("words", (*WORD_SIGNS, *LANGUAGE_SIGNS)))
    ]
    options = {**system.options, "confidence.calibrations": probes}
    cases = bench.of("counted", "unanswerable")
    rows: list[list[float]] = []
    known: list[tuple[bool, str]] = []
    for number, case in enumerate(cases, start=1):
        answer = bench.engine.recall(
            case.text, profile=system.profile, options=options, scope=case.scope, only=case.only,
            exclude=case.exclude, now=case.now,
        )  # fmt: skip
        evidence = answer.trace.evidence
        if evidence is not None:
            seen = {one.name: one.value for one in evidence.signs}
            rows.append([seen.get(name, math.nan) for name in ALL_SIGNS])
            known.append((case.kind == "counted", f"{bench.name}/{case.scope.namespace}"))
        if tick is not None:
            tick(number, len(cases))
    values = np.asarray(rows, dtype=np.float64).reshape(-1, len(ALL_SIGNS))
    answerable = np.asarray([one for one, _ in known], dtype=bool)
    model = str(bench.facts["embedder"] or "").partition("@")[0] if not np.isnan(values).any() else ""
    return Sample(bench.name, values, answerable, _scopes(known), model, len(cases) - len(rows))


def _scopes(known: Sequence[tuple[bool, str]]) -> tuple[str, ...]:
    """The namespaces; a set with a single one is divided into as many parts as there are folds."""
    if len({scope for _, scope in known}) > 1:
        return tuple(scope for _, scope in known)
    return tuple(f"{scope}#{place % FOLDS}" for place, (_, scope) in enumerate(known))


def fits(
    samples: Sequence[Sample], tests: Sequence[Sample], seed: int = SEED, *, cross_lingual: bool = False
) -> list[Fit]:
    """One calibration with the embedder, where there is one, and one by words alone. cross_lingual: the embedder finds
    from one language to another, so that words which no memory holds may be of another language."""
    found = [fit(samples, tests, WORD_SIGNS, "words", "", seed)]
    models = {one.model for one in (*samples, *tests)}
    if len(models) == 1 and "" not in models:
        model = models.pop()
        signs = (*WORD_SIGNS, *(LANGUAGE_SIGNS if cross_lingual else ()), *MEANING_SIGNS)
        found.insert(0, fit(samples, tests, signs, model, model, seed))
    return found


def fit(
    samples: Sequence[Sample], tests: Sequence[Sample], signs: Sequence[str], name: str, model: str, seed: int = SEED
) -> Fit:
    """The logistic on all samples, each set counting alike; every figure from scopes left out in turn."""
    columns = [ALL_SIGNS.index(one) for one in signs]
    values = np.concatenate([one.rows[:, columns] for one in samples])
    truth = np.concatenate([one.answerable for one in samples])
    scopes = np.asarray([scope for one in samples for scope in one.scopes])
    weights = np.concatenate([balance(one.answerable) for one in samples])
    if min(int(truth.sum()), int((~truth).sum())) < LEAST:
        raise InvalidInput(
            f"a calibration needs at least {LEAST} answerable and {LEAST} unanswerable questions",
            "use a larger set, or several",
        )
    blind = next((one.name for one in tests if one.answerable.all() or not one.answerable.any()), None)
    if blind is not None:
        raise InvalidInput(f"{blind} has no answerable, or no unanswerable questions to test with", "use another set")
    held_out = np.zeros(len(truth))
    for scope in sorted(set(scopes.tolist())):
        rest = scopes != scope
        held_out[~rest] = _apply(logistic_fit(values[rest], truth[rest], weights[rest]), values[~rest])
    whole = logistic_fit(values, truth, weights)
    typical = (values * weights[:, None]).sum(axis=0) / weights.sum()
    known, unknown = held_out[truth], held_out[~truth]
    points = tuple(_point(known, unknown, kept) for kept in KEPT)
    return Fit(
        calibration=Calibration(
            name=name,
            intercept=round(float(_apply(whole, typical)), 4),
            weights={one: round(float(weight), 4) for one, weight in zip(signs, whole[1:], strict=True)},
            typical={one: round(float(value), 4) for one, value in zip(signs, typical, strict=True)},
            curve=points,
            model=model,
            fitted="by `recollect eval abstain` on " + ", ".join(one.name for one in samples),
        ),
        answerable=len(known),
        unanswerable=len(unknown),
        auc=auc(known.tolist(), unknown.tolist()),
        injected_at={f"{kept:g}": _interval(known, unknown, kept, seed) for kept in STATED},
        curve=[(kept, injected_at(known.tolist(), unknown.tolist(), kept)) for kept in np.linspace(0, 1, 101).tolist()],
        tests={one.name: _tested(one, columns, whole, points) for one in tests},
    )


def balance(answerable: NDArray[np.bool_]) -> Numbers:
    """Weights under which both kinds count the same, and every set as much as any other."""
    yes = max(int(answerable.sum()), 1)
    no = max(len(answerable) - yes, 1)
    return np.where(answerable, 0.5 / yes, 0.5 / no) * 1000.0


def logistic_fit(values: Numbers, truth: NDArray[np.bool_], weights: Numbers, ridge: float = RIDGE) -> Numbers:
    """Intercept and weights by Newton's method; the ridge holds standardised weights small, not the intercept."""
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    design: Numbers = np.column_stack([np.ones(len(values)), (values - mean) / spread])
    held = np.full(values.shape[1] + 1, ridge)
    held[0] = 0.0
    scaled: Numbers = weights * (len(values) / float(weights.sum()))
    solution = np.zeros(len(held))
    for _ in range(STEPS):
        step = _newton(design, truth.astype(np.float64), scaled, held, solution)
        solution += step
        if float(np.abs(step).max()) < 1e-9:
            break
    slopes = solution[1:] / spread
    return np.concatenate([[solution[0] - float(slopes @ mean)], slopes])


def _newton(design: Numbers, truth: Numbers, weights: Numbers, held: Numbers, solution: Numbers) -> Numbers:
    chance = 1 / (1 + np.exp(-np.clip(design @ solution, -30, 30)))
    slope = design.T @ (weights * (truth - chance)) - held * solution
    certain = weights * np.maximum(chance * (1 - chance), 1e-9)
    curvature = (design * certain[:, None]).T @ design + np.diag(held)
    return np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)


def _apply(solution: Numbers, values: Numbers) -> Numbers:
    return solution[0] + values @ solution[1:]


def _point(known: Numbers, unknown: Numbers, kept: float) -> Point:
    threshold = float(np.sort(known)[::-1][math.ceil(kept * len(known) - 1e-9) - 1])
    return Point(kept, round(threshold, 4), round(float((unknown >= threshold).mean()), 4))


def _interval(known: Numbers, unknown: Numbers, kept: float, seed: int) -> Estimate:
    """Both kinds of question drawn anew, so that the threshold varies too."""
    chance = np.random.default_rng(seed)
    drawn = [
        _point(chance.choice(known, len(known)), chance.choice(unknown, len(unknown)), kept).injected
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Estimate(_point(known, unknown, kept).injected, float(low), float(high))


def _tested(sample: Sample, columns: list[int], solution: Numbers, points: Sequence[Point]) -> dict[str, float]:
    """On a set that was not fitted on: what each stated floor keeps and injects there."""
    scores = _apply(solution, sample.rows[:, columns])
    known, unknown = scores[sample.answerable], scores[~sample.answerable]
    found: dict[str, float] = {"answerable": len(known), "unanswerable": len(unknown)}
    found["auc"] = auc(known.tolist(), unknown.tolist())
    for one in points:
        if one.kept in STATED:
            found[f"kept at {one.kept:g}"] = float((known >= one.log_odds).mean())
            found[f"injected at {one.kept:g}"] = float((unknown >= one.log_odds).mean())
    return found


def as_toml(fits: Sequence[Fit]) -> str:
    """The calibrations as they stand in a profile."""
    parts: list[str] = []
    for one in fits:
        found = one.calibration
        weights, typical = (
            ", ".join(f"{name} = {value:g}" for name, value in table.items())
            for table in (found.weights, found.typical)
        )
        curve = "\n".join(f"  [{point.kept:g}, {point.log_odds:g}, {point.injected:g}]," for point in found.curve)
        parts.append(
            f"[[confidence.calibrations]]\nname = {_quoted(found.name)}\nmodel = {_quoted(found.model)}\n"
            f"fitted = {_quoted(found.fitted)}\n"
            f"intercept = {found.intercept:g}\nweights = {{ {weights} }}\ntypical = {{ {typical} }}\n"
            f"# kept, log-odds, injected\ncurve = [\n{curve}\n]\n"
        )
    return "\n".join(parts)


def _quoted(text: str) -> str:
    """As TOML writes a text, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False)


def fit_to_dict(one: Fit) -> dict[str, Any]:
    found = one.calibration
    return {
        "name": found.name,
        "model": found.model,
        "intercept": found.intercept,
        "weights": found.weights,
        "typical": found.typical,
        "points": found.curve,
        "answerable": one.answerable,
        "unanswerable": one.unanswerable,
        "auc": one.auc,
        "injected_at": one.injected_at,
        "curve": one.curve,
        "tests": one.tests,
    }
