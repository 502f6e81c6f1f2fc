"""`python -m benchmarks`: build stores of several sizes, measure, compare, and write results/*.json and a page."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpus, daily, machine, meaning, reading, report, startup, steps, stores, writes
from benchmarks.rivals import measure_rivals
from recollect.adapters import open_embedder
from recollect.ports import Embedder
from recollect.settings import Settings, load
from recollect.stores.sqlite import open_sqlite

SIZES = (10_000, 100_000, 1_000_000)
PLANS: dict[str, dict[str, Any]] = {
    "quick": {"sizes": SIZES, "sample": 1_500, "questions": 60, "of a million": 30, "writes": 1_600},
    "full": {"sizes": SIZES, "sample": 6_000, "questions": 200, "of a million": 200, "writes": 4_000},
}
MILLION = 1_000_000
COMPARED, RIVALS_ASKED = 100_000, 30
"""So many memories the rivals hold, and so many questions they are asked."""
IMPORTED = 2_000
"""So many more are imported as a user imports them, in a store of every size."""


def main(arguments: list[str] | None = None) -> int:
    """Run a plan; returns 0 even where a promise is not kept: the page tells."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="with more questions and writes, up to an hour")
    parser.add_argument("--quick", action="store_true", help="every promise, in about seven minutes")
    parser.add_argument("--sizes", help="other sizes, as 10000,100000")
    parser.add_argument("--questions", type=int, help="how many questions are asked")
    parser.add_argument("--sample", type=int, help="how many real sentences are embedded")
    parser.add_argument("--no-model", action="store_true", help="synthetic vectors only")
    parser.add_argument("--no-rivals", action="store_true", help="only the plain baseline")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args(arguments)
    kind = "full" if given.full else "quick"
    plan = dict(PLANS[kind])
    if given.sizes:
        plan["sizes"] = tuple(int(size) for size in given.sizes.split(","))
        plan["writes"] = min(plan["writes"], *plan["sizes"])
    if given.questions:
        plan["questions"] = plan["of a million"] = given.questions
    plan["sample"] = given.sample or plan["sample"]
    folder = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
    try:
        results = run(kind, plan, folder, model=not given.no_model, rivals=not given.no_rivals)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{kind}.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    (given.out / f"{kind}.md").write_text(report.page(results), "utf-8")
    print(report.page(results))
    return 0


def run(kind: str, plan: dict[str, Any], folder: Path, *, model: bool, rivals: bool) -> dict[str, Any]:
    """All measures of a plan."""
    settings = load(home=folder / "home", store=":memory:")
    embedder = open_embedder(load(store=":memory:"))[0] if model else None
    results: dict[str, Any] = {"kind": kind, "machine": machine.facts(), "sizes": {}}
    for size in plan["sizes"]:
        say(f"{size}: vectors")
        asked = plan["of a million"] if size >= MILLION else plan["questions"]
        made = meaning.make(size, asked, embedder, plan["sample"], folder)
        results["vectors"] = made.kind
        place = folder / str(size)
        place.mkdir()
        results["sizes"][str(size)] = measure(place, settings, made, asked, embedder)
        shutil.rmtree(place)
    say("writes")
    results["writes"] = writes.measure_writes(folder, plan["writes"])
    say("command line")
    results["command line"] = startup.measure_startup()
    if rivals and COMPARED in plan["sizes"]:  # last: what they load and start stays in the process
        say(f"{COMPARED}: rivals")
        made = meaning.make(COMPARED, plan["questions"], embedder, plan["sample"], folder)
        texts = corpus.make(COMPARED, made.topics)
        results["sizes"][str(COMPARED)]["rivals"] = measure_rivals(texts, made, texts.questions(RIVALS_ASKED))
    return results


def measure(
    place: Path, settings: Settings, made: meaning.Meaning, questions: int, embedder: Embedder | None
) -> dict[str, Any]:
    """One size: fill, open, ask."""
    size = len(made.vectors)
    texts = corpus.make(size, made.topics)
    asked = texts.questions(questions)
    projects = np.array([PROJECTS.get(corpus.memory(number, "").scope.project or "", 0) for number in range(size)])
    say(f"{size}: import")
    store, bare = open_sqlite(place / "store.db"), stores.open_bare(place / "bare.db")
    rows, plain = stores.write_side_by_side(store, bare, texts)
    vectors = stores.write_vectors(store, texts, made.vectors)
    results: dict[str, Any] = {
        "import": {
            "per_s": round(size / rows.wall),
            "with_given_vectors_per_s": round(size / (rows.wall + vectors.wall)),
            "bare_per_s": round(size / plain.wall),
            "ratio_wall": round(plain.wall / rows.wall, 3),
            "ratio_cpu": round(plain.cpu / rows.cpu, 3),
        }
    }
    store.close()
    say(f"{size}: open")
    results["open_cold"] = reading.measure_open(place / "store.db")
    store = open_sqlite(place / "store.db")
    assert store.vectors is not None
    store.vectors.search(stores.MODEL, made.questions[0], reading.Filter(), 1)
    store.care.tidy()
    results["open_warm"] = reading.measure_open(place / "store.db")
    held = sum(file.stat().st_size for file in place.glob("store.db*"))
    results["bytes_per_memory"] = round(held / size)
    say(f"{size}: recall")
    results["finders"] = reading.measure_legs(store, made, asked)
    results["recall"] = reading.measure_recall(store, settings, made, asked)
    say(f"{size}: plain baseline")
    results["plain"] = reading.measure_plain(bare, made, asked, projects)
    if embedder is not None:
        say(f"{size}: with embedding")
        results["whole_recall"] = reading.measure_whole_recall(store, settings, made, asked, embedder)
    say(f"{size}: rightness")
    results["rightness"] = reading.measure_rightness(store, bare, made, asked[:40], projects)
    say(f"{size}: second steps")
    results["steps"] = steps.measure_steps(store, size, questions)
    say(f"{size}: daily life")
    results["daily"] = daily.measure_daily(store, settings, made, asked, size)
    say(f"{size}: import as users do")
    results["import"] |= writes.measure_library(store, settings, size, min(IMPORTED, size))
    store.close()
    bare.close()
    return results


PROJECTS = {"tenth": 1, "thousandth": 2}


def say(what: str) -> None:
    """Progress, away from the page."""
    print(f"· {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
