"""Three ways to look twice, beside the default: `python -m benchmarks.variants --data SET …` (decision 19).

- *feedback*: the mean of the vectors of the best three is added to the question's vector, and everything asked again.
- *parts*: so is the mean of what the parts of the question mean, cut at commas and at words that join clauses.
- *sessions*: a turn is raised by the best turn of its session among the best forty, or by the mean of its best three.

Every way has a weight. A line tells what it changes, with the 95 % interval over questions; what changes no ranking at
all, as sessions where there are none, is not told.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect import settings
from recollect.domain.recall import RecallHit
from recollect.encoders.wrapped import Wrapped
from recollect.engine import Engine
from recollect.evals.bench import PATIENCE_MS, Bench, Case
from recollect.evals.building import cache_folder
from recollect.evals.measures import Scores, score
from recollect.evals.significance import differences
from recollect.evals.sources import Source, public
from recollect.ports import Embedder, Matrix, Vector

DEFAULT = "balanced"
DEPTH = 40
FED_BACK = 3
LEAST_WORDS = 3
MEASURES = ("recall@5", "recall@10", "ndcg@10")
JOINTS = re.compile(r",\s+|\s+(?:and|but|or|that|which|who|whose|where|when|while|after|before)\s+")

Ranking = list[str]
Floats = NDArray[np.float32]


class Steered(Wrapped):
    """An embedder whose questions are drawn towards something else that is near."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.towards: Floats | None = None
        self.plain = inner

    def embed_query(self, text: str) -> Vector:
        vector = self.plain.embed_query(text)
        return vector if self.towards is None else _unit(vector + self.towards)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self.plain.embed_documents(texts)


@dataclass(frozen=True, slots=True)
class Asking:
    """One question, and what the default answered."""

    case: Case
    engine: Engine
    steered: Steered
    hits: Sequence[RecallHit]

    @property
    def ranking(self) -> Ranking:
        return [hit.id for hit in self.hits]

    def again(self, towards: Floats | None) -> Ranking:
        """The answer when the question is drawn elsewhere; None: the answer stands."""
        if towards is None:
            return self.ranking
        self.steered.towards = towards
        try:
            return [hit.id for hit in ask(self.engine, self.case)]
        finally:
            self.steered.towards = None


def main(arguments: list[str] | None = None) -> int:
    """A table for each set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variants", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, action="append", help="a data set in BEIR layout; repeatable"
    )
    parser.add_argument("--limit-queries", type=int, default=None)
    given = parser.parse_args(arguments)
    chosen = settings.load()
    for folder in given.data:
        with public(folder, Source(chosen, cache_folder(chosen), limit_queries=given.limit_queries)) as bench:
            print(_table(bench), flush=True)
    return 0


def ask(engine: Engine, case: Case) -> Sequence[RecallHit]:
    """The best forty."""
    return engine.recall(
        case.text, limit=DEPTH, scope=case.scope, only=case.only, exclude=case.exclude, now=case.now
    ).hits


def feedback(asking: Asking, weight: float) -> Ranking:
    """Drawn towards the best three."""
    vectors = asking.engine.store.vectors
    assert vectors is not None
    best = vectors.stored(asking.steered.id, asking.ranking[:FED_BACK])
    # The first vector of a memory in passages stands for it: which one was near is not told.
    rows = [one.vectors[0] for one in best if one.vectors is not None]
    return asking.again(weight * _unit(np.mean(rows, axis=0)) if rows else None)


def parts(asking: Asking, weight: float) -> Ranking:
    """Drawn towards its parts, where it has several."""
    pieces = JOINTS.split(asking.case.text.rstrip("?. "))
    asked = [piece for piece in pieces if len(piece.split()) >= LEAST_WORDS]
    if len(pieces) < 2 or not asked:
        return asking.ranking
    return asking.again(weight * np.mean([asking.steered.plain.embed_query(piece) for piece in asked], axis=0))


def sessions(asking: Asking, weight: float, most: int) -> Ranking:
    """Raised by the best `most` of the same session."""
    scores: dict[str, list[float]] = {}
    for hit in asking.hits:
        if hit.memory.scope.session is not None:
            scores.setdefault(hit.memory.scope.session, []).append(hit.score)
    worth = {session: sum(sorted(each, reverse=True)[:most]) / most for session, each in scores.items()}
    best = max(worth.values(), default=1.0) or 1.0
    raised = sorted(
        asking.hits, key=lambda hit: -hit.score - weight * worth.get(hit.memory.scope.session or "", 0) / best
    )
    return [hit.id for hit in raised]


WAYS: Mapping[str, tuple[Callable[[Asking, float], Ranking], tuple[float, ...]]] = {
    "feedback": (feedback, (0.1, 0.25, 0.5)),
    "parts": (parts, (0.25, 0.5, 1.0)),
    "sessions, best turn": (lambda asking, weight: sessions(asking, weight, 1), (0.1, 0.2, 0.4)),
    "sessions, best three": (lambda asking, weight: sessions(asking, weight, 3), (0.1, 0.2, 0.4)),
}


def rankings(bench: Bench) -> dict[str, dict[str, Ranking]]:
    """For the default and each way and weight, the ranking of every question."""
    assert bench.embedder is not None, "run `recollect models fetch` first"
    steered = Steered(bench.embedder)
    engine = Engine(bench.engine.store, bench.engine.settings, steered, background=False, patience_ms=PATIENCE_MS)
    found: dict[str, dict[str, Ranking]] = {}
    for case in bench.of("counted"):
        asking = Asking(case, engine, steered, ask(engine, case))
        found.setdefault(DEFAULT, {})[case.id] = asking.ranking
        for name, (way, weights) in WAYS.items():
            for weight in weights:
                found.setdefault(f"{name} {weight:g}", {})[case.id] = way(asking, weight)
    return found


def _table(bench: Bench) -> str:
    relevant = {case.id: case.relevant for case in bench.of("counted")}
    ranked = rankings(bench)
    told = {name: each for name, each in ranked.items() if name == DEFAULT or each != ranked[DEFAULT]}
    scores = {name: score(relevant, each) for name, each in told.items()}
    lines = [
        f"| {bench.name}, {len(relevant)} questions | " + " | ".join(MEASURES) + " |",
        "|---" * (len(MEASURES) + 1) + "|",
    ]
    for name, one in scores.items():
        cells = [f"{one.of(measure).mean():.3f}{_change(scores[DEFAULT], one, measure)}" for measure in MEASURES]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _change(first: Scores, second: Scores, measure: str) -> str:
    if first is second:
        return ""
    (change,) = differences(first.of(measure)[:, None], second.of(measure)[:, None])
    return f" [{change.low:+.3f}, {change.high:+.3f}]"


def _unit(vector: NDArray[np.floating]) -> Floats:
    return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
