"""How far abstention could get if somebody read the candidates without ever erring (decision 12).

`python -m benchmarks.perfect_reader --data SET --first 5,10,20,30`: every question is asked where its answer is and
where it is not. The reader sees whether the first candidates hold evidence and is never wrong; where they hold none,
the confidence that the profile computes decides alone. No reader of so many candidates can inject less.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recollect import settings
from recollect.evals.abstention import injected_at
from recollect.evals.bench import Bench
from recollect.evals.building import cache_folder
from recollect.evals.sources import Source, public

KEPT = (0.9, 0.95, 0.97, 0.99)
CERTAIN = 2.0
"""Above every chance."""


def main(arguments: list[str] | None = None) -> int:
    """One row for each number of candidates that are read; 0 is the confidence as it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perfect_reader", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a data set in BEIR layout")
    parser.add_argument("--first", default="5,10,20,30", help="how many candidates are read")
    parser.add_argument("--limit-queries", type=int, default=None)
    given = parser.parse_args(arguments)
    numbers = [0, *map(int, given.first.split(","))]
    chosen = settings.load()
    source = Source(chosen, cache_folder(chosen), limit_queries=given.limit_queries, contrasted=True)
    with public(given.data, source) as bench:
        known, unknown = asked(bench, max(numbers))
    print(f"{len(known)} answerable, {len(unknown)} unanswerable questions; injected at the share kept\n")
    print("| read | hold evidence | " + " | ".join(map(str, KEPT)) + " |\n" + "|---" * (len(KEPT) + 2) + "|")
    for number in numbers:
        held = [place < number for _, place in known]
        chances = [CERTAIN if seen else chance for seen, (chance, _) in zip(held, known, strict=True)]
        figures = [injected_at(chances, unknown, kept) for kept in KEPT]
        print(f"| {number} | {sum(held) / len(held):.3f} | " + " | ".join(f"{one:.3f}" for one in figures) + " |")
    return 0


def asked(bench: Bench, depth: int) -> tuple[list[tuple[float, int]], list[float]]:
    """Of each answerable question the chance, and how many candidates stand before the evidence; of others the
    chance."""
    known: list[tuple[float, int]] = []
    unknown: list[float] = []
    for case in bench.of("counted", "unanswerable"):
        answer = bench.engine.recall(
            case.text, limit=depth, scope=case.scope, only=case.only, exclude=case.exclude, now=case.now
        )
        chance = 0.0 if answer.trace.evidence is None else answer.trace.evidence.chance
        if case.kind == "unanswerable":
            unknown.append(chance)
        else:
            known.append((chance, next((n for n, hit in enumerate(answer) if hit.id in case.relevant), depth)))
    return known, unknown


if __name__ == "__main__":
    sys.exit(main())
