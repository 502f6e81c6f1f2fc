"""`python -m benchmarks.quality --data DIR`: every profile on every data set, and the page that tells what came out.

Measured sets are kept as JSON in benchmarks/results/quality, so that sets can be measured one by one; the page is made
from all that are there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.evals import lists, results, significance, sources, variations
from recollect.evals.building import cache_folder
from recollect.evals.datasets import sampled
from recollect.evals.judging import Plan
from recollect.evals.running import evaluate
from recollect.evals.sources import Source
from recollect.evals.systems import BASELINES, system
from recollect.settings import load

HERE = Path(__file__).parent
KEPT = HERE / "results" / "quality"
PAGE = HERE / "quality.md"
LEGS = BASELINES
SEEDS = ("two-stage", "importance-prior", "live-weights", "retry-ladder", "token-budget")
DEFAULT = "balanced"
SAMPLE = 100

# What is quoted for a set by its name; all others are quoted by recall@5.
HEADLINES = {
    "locomo": ("recall@10",),
    "longmemeval_dev_turn": ("recall@5",),
    "longmemeval": ("all@5", "any@5"),
    "scifact": ("ndcg@10",),
    "cranfield": ("ndcg@10",),
    "cacm": ("ndcg@10",),
}
TYPO_MEASURE = "recall@10"
NEEDED = {"data", "measures", "questions", "ablation", "typos", "sample"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder of data sets in BEIR layout; without it, the page alone")
    parser.add_argument("--set", action="append", help="only this one of them; repeatable")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="questions of a set for all but legs and default")
    chosen = parser.parse_args(arguments)
    if chosen.data is not None:
        folders = sorted(one.parent for one in chosen.data.glob("*/corpus.jsonl"))
        for folder in folders:
            if not chosen.set or folder.name in chosen.set:
                measure(folder, chosen.sample)
    documents = kept(KEPT)
    if not documents:
        parser.error("nothing is measured yet, the page stays as it is: give --data")
    PAGE.write_text(page(documents), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
    return 0


def measure(folder: Path, sample: int) -> None:
    """Legs and default on every question; seed profiles, ablation and typing errors on a sample, evenly spread."""
    settings, plan = load(), Plan(as_shipped=False)
    with sources.public(folder, Source(settings, cache_folder(settings))) as bench:
        every = bench.of("counted")
        part = replace(bench, cases=tuple(sampled(every, sample)))
        found = [evaluate(bench, system(name, {}, None), plan) for name in (*LEGS, DEFAULT)]
        ours = found[-1]
        found += [evaluate(part, system(name, {}, None), plan) for name in SEEDS]
        again = ours if len(part.cases) == len(every) else evaluate(part, ours.system, plan)
        ours.more["ablation"] = lists.ablation(part, again.system, again.answers, again.scores, plan)
        ours.more["typos"] = {**variations.typos(part, again, plan, edits=1), "clean": again.scores.means()}
        ours.more["sample"] = len(part.cases)
    KEPT.mkdir(parents=True, exist_ok=True)
    document = results.run_document(found, {"k": plan.ks, "seed": plan.seed})
    (KEPT / f"{folder.name}.json").write_text(json.dumps(document), encoding="utf-8")
    sys.stdout.write(f"{folder.name} measured\n")


def kept(folder: Path) -> list[Mapping[str, Any]]:
    """What was measured; results that an older version wrote, or nobody did, are named and left out."""
    found: list[Mapping[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            by_name = {one["system"]: one for one in document["results"]}
            whole = by_name.keys() >= {*LEGS, DEFAULT, *SEEDS} and by_name[DEFAULT].keys() >= NEEDED
        except (ValueError, KeyError, TypeError, AttributeError):
            document, whole = {}, False
        if whole:
            found.append(document)
        else:
            sys.stderr.write(f"{path.name} has another form and is left out: measure it again (--set {path.stem})\n")
    return found


def headlines(name: str) -> tuple[str, ...]:
    """The measures a set is quoted by: those of the longest known beginning of its name."""
    known = sorted((start for start in HEADLINES if name.startswith(start)), key=len)
    return HEADLINES[known[-1]] if known else ("recall@5",)


def page(documents: Sequence[Mapping[str, Any]]) -> str:
    """Three tables: the systems, what each list is good for, and typing errors."""
    titles = ("set", "measure", "questions", *LEGS, DEFAULT, "against the best leg", "of the seeds", *SEEDS)
    table = [_row(*titles), _row(*["---"] * len(titles))]
    ablated = [_row("set", "measure", "list left out", "change", "only because of it", "only without it")]
    ablated.append(_row(*["---"] * 6))
    typos = [_row("set", f"{TYPO_MEASURE}, clean", "one error in each question", "kept"), _row(*["---"] * 4)]
    for document in documents:
        by_name = {one["system"]: one for one in document["results"]}
        ours = by_name[DEFAULT]
        name = ours["data"]["name"]
        for measure in headlines(name):
            legs, seeds = ([_mean(by_name[one], measure) for one in names] for names in (LEGS, SEEDS))
            best = (_estimate(ours["measures"][measure]), _gain(by_name, measure))
            table.append(_row(name, measure, ours["data"]["counted"], *legs, *best, ours["sample"], *seeds))
            cut = measure.partition("@")[2]
            for path, one in ours["ablation"].items():
                gone, alone, shadowed = one["without"][measure], one["only_with"][cut], one["only_without"][cut]
                if gone["mean"] or alone or shadowed:
                    ablated.append(_row(name, measure, path, _signed(gone), alone, shadowed))
        clean, wrong = (ours["typos"][kind][TYPO_MEASURE] for kind in ("clean", "means"))
        typos.append(_row(name, f"{clean:.3f}", f"{wrong:.3f}", f"{100 * wrong / clean:.0f} %" if clean else ""))
    return TEXT.format(systems="\n".join(table), lists="\n".join(ablated), typos="\n".join(typos))


def _gain(by_name: Mapping[str, Mapping[str, Any]], measure: str) -> str:
    """The default minus the best of the single legs, question by question."""
    best = max(LEGS, key=lambda name: by_name[name]["measures"][measure]["mean"])
    column = by_name[DEFAULT]["questions"]["measures"].index(measure)
    ours, theirs = (by_name[name]["questions"]["values"] for name in (DEFAULT, best))
    values = [np.array([[one[id][column]] for id in ours], dtype=np.float64) for one in (theirs, ours)]
    (difference,) = significance.differences(values[0], values[1])
    return f"{_signed(asdict(difference))} ({best})"


def _mean(one: Mapping[str, Any], measure: str) -> str:
    return f"{one['measures'][measure]['mean']:.3f}"


def _estimate(one: Mapping[str, float]) -> str:
    return f"**{one['mean']:.3f}** [{one['low']:.3f}, {one['high']:.3f}]"


def _signed(one: Mapping[str, float]) -> str:
    return f"{one['mean']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


TEXT = """# Retrieval quality

Written by `make quality DATA=DIR`, where DIR holds data sets in BEIR layout (`docs/evals.md`).
`bm25` is the package bm25s (Lucene's form, English stems), `lexical` and `dense` are the engine's legs alone, then the
default with its paired difference to the best of the three. Intervals are 95 %, from 10,000 bootstrap resamples of the
questions. The seed profiles stand behind, as they are, and so do the tables below: they were asked a sample of the
questions, evenly spread (`--sample`), as many as the column before them says.

{systems}

## What each list is good for

`balanced` with one list left out: the change of the measure, how many relevant memories are within the cut-off only
because of the list, and how many only without it. A list that changes nothing on a set is not told there.

{lists}

## Typing errors

One random error in a word of every question.

{typos}
"""

if __name__ == "__main__":
    sys.exit(main())
