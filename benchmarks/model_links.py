"""What links made by a language model are worth where memories are plain sentences (decision 13).

`python -m benchmarks.model_links --data SET --language-model http://127.0.0.1:11434/v1 --name qwen2.5:3b`: the texts of
a multi-hop set lose their titles, so that no rule knows what they are about. Every question is asked before the model
has read them and after; a third row shows what the titles would have given.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from recollect import settings
from recollect.adapters import open_extractor, open_store
from recollect.engine import Engine
from recollect.evals import datasets
from recollect.evals.bench import cases_of, chosen_embedder
from recollect.evals.building import drafts
from recollect.evals.datasets import Dataset, Document
from recollect.evals.significance import Values, differences, estimates
from recollect.evals.vectors import RememberingEmbedder

SEED = 7
FIRST = 5


def main(arguments: list[str] | None = None) -> int:
    """One row each for plain texts, the model's links and titles."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_links", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a data set in BEIR layout")
    parser.add_argument("--language-model", required=True, help="an OpenAI-shaped endpoint")
    parser.add_argument("--name", default="", help="the model's name there")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--memories", type=int, default=300)
    given = parser.parse_args(arguments)
    small = _some(datasets.load(given.data), given.questions, given.memories)
    plain = replace(small, documents=tuple(_without_title(one) for one in small.documents))
    chosen = settings.load(
        store=":memory:", language_model=given.language_model, language_model_name=given.name, extract_concepts=True
    )
    embedder, _ = chosen_embedder(chosen, None)
    assert embedder is not None, "run `recollect models fetch` first"
    remembering = RememberingEmbedder(embedder, None)
    titled, _ = _asked(small, Engine(open_store(":memory:"), chosen, remembering, background=False))
    engine = Engine(open_store(":memory:"), chosen, remembering, None, open_extractor(chosen), background=False)
    before, again = _asked(plain, engine)
    report = engine.extract_concepts()
    if report.stopped is not None:
        # Without links the row would say that they are worth nothing.
        print(f"the language model did not read everything: {report.stopped}", file=sys.stderr)
        return 1
    after = again()
    print(f"{len(small.queries)} questions, {len(small.documents)} memories; recall@{FIRST}")
    print(f"read {report.extracted}, nothing usable {report.failed}, links {report.linked}\n")
    for name, values in (("plain texts", before), ("and the model's links", after), ("titles instead", titled)):
        own, gain = estimates(values)[0], differences(before, values)[0]
        told = f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], {gain.wins} better, {gain.losses} worse"
        print(f"| {name} | {own.mean:.3f} [{own.low:.3f}, {own.high:.3f}] | {told} |")
    return 0


def _some(dataset: Dataset, questions: int, memories: int) -> Dataset:
    """Some questions, all their evidence, and other documents drawn by chance."""
    asked = datasets.sampled([one for one in dataset.queries if one.kind == "counted"], questions)
    needed = {id for one in asked for id in one.relevant}
    others = [one.id for one in dataset.documents if one.id not in needed]
    drawn = set(random.Random(SEED).sample(others, min(len(others), max(0, memories - len(needed)))))
    documents = tuple(one for one in dataset.documents if one.id in needed | drawn)
    return replace(dataset, documents=documents, queries=tuple(replace(one, candidates=None) for one in asked))


def _without_title(document: Document) -> Document:
    first, _, rest = document.content.partition("\n")
    return replace(document, content=rest if rest.strip() and len(first) < 100 else document.content, metadata={})


def _asked(dataset: Dataset, engine: Engine) -> tuple[Values, Callable[[], Values]]:
    """The recall of every question in a fresh store, and a way to ask again."""
    receipts = engine.remember_many(list(drafts(dataset)), dedupe=False, now=datasets.UNDATED)
    engine.upkeep()
    places = {one.id: receipt.id for one, receipt in zip(dataset.documents, receipts, strict=True)}
    cases = cases_of(dataset, places, dataset.queries)

    def ask() -> Values:
        found: list[list[float]] = []
        for case in cases:
            hits = engine.recall(case.text, limit=FIRST, scope=case.scope, now=case.now)
            found.append([len({hit.id for hit in hits} & set(case.relevant)) / len(case.relevant)])
        return np.array(found)

    return ask(), ask


if __name__ == "__main__":
    sys.exit(main())
