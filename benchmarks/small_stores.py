"""How many answerable questions a floor keeps in small stores: why `balanced` has `unasked_from` (decision 12).

`python -m benchmarks.small_stores --data SET --sizes 3,10,40`: every question is asked of a store of its own, which
holds its evidence and other documents of its namespace, drawn by chance.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path

from recollect import settings
from recollect.adapters import open_store
from recollect.engine import Engine
from recollect.evals import datasets
from recollect.evals.bench import cases_of, chosen_embedder
from recollect.evals.building import drafts
from recollect.evals.datasets import Dataset, Query
from recollect.evals.vectors import RememberingEmbedder

SEED = 7


def main(arguments: list[str] | None = None) -> int:
    """One line for each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_stores", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a data set in BEIR layout")
    parser.add_argument("--sizes", default="3,10,40", help="how many memories a store holds")
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--keep", type=float, default=0.97, help="the share that the floor should keep")
    given = parser.parse_args(arguments)
    dataset = datasets.load(given.data)
    embedder, _ = chosen_embedder(settings.load(), None)
    assert embedder is not None, "run `recollect models fetch` first"
    remembering = RememberingEmbedder(embedder, None)
    asked = datasets.sampled([one for one in dataset.queries if one.kind == "counted"], given.questions)
    for size in map(int, given.sizes.split(",")):
        chance = random.Random(SEED)
        kept = [_is_kept(_small(dataset, one, size, chance), remembering, given.keep) for one in asked]
        print(f"{size} memories: {sum(kept) / len(kept):.3f} of {len(kept)} answerable questions kept", flush=True)
    return 0


def _small(dataset: Dataset, query: Query, size: int, chance: random.Random) -> Dataset:
    """The question's evidence and some other documents of its namespace."""
    near = [one for one in dataset.documents if one.namespace == query.namespace and one.id not in query.relevant]
    drawn = {one.id for one in chance.sample(near, min(len(near), max(0, size - len(query.relevant))))}
    documents = tuple(one for one in dataset.documents if one.id in drawn or one.id in query.relevant)
    return replace(dataset, documents=documents, queries=(replace(query, candidates=None, itself=None),))


def _is_kept(dataset: Dataset, embedder: RememberingEmbedder, keep: float) -> bool:
    """Whether the one question gets an answer."""
    places = {one.id: one.id for one in dataset.documents}
    case = cases_of(dataset, places, dataset.queries)[0]
    chosen = settings.load(store=":memory:")
    with Engine(open_store(":memory:"), chosen, embedder, background=False) as engine:
        engine.remember_many(list(drafts(dataset)), dedupe=False)
        engine.upkeep()
        answer = engine.recall(case.text, scope=case.scope, now=case.now, options={"confidence.keep": keep})
    return not answer.abstained


if __name__ == "__main__":
    sys.exit(main())
