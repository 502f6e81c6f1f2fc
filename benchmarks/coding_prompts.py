"""What coding prompts get from the hooks' way of asking, and how well they are ranked (decision 12).

`python -m benchmarks.coding_prompts`: the memories and prompts of `data/coding`, in two halves of different projects;
look at `dev` while changing anything, and at `heldout` afterwards. Stores smaller than all memories are made for each
prompt: what it should find, and others drawn by chance.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recollect import settings
from recollect.adapters import open_store
from recollect.domain.memory import Scope
from recollect.engine import Engine
from recollect.evals import building, datasets, measures
from recollect.evals.asking import ask_all
from recollect.evals.bench import PATIENCE_MS, Bench, Case, chosen_embedder
from recollect.evals.datasets import Document
from recollect.evals.significance import estimates
from recollect.evals.systems import system
from recollect.evals.vectors import RememberingEmbedder, file_of
from recollect.stages.tokens import estimate
from recollect.writing.drafts import Draft

DATA = Path(__file__).parent / "data" / "coding"
HALVES = ("dev", "heldout")
FLOORS = (0.9, 0.95, 0.97, 0.99, 1.0)
SYSTEMS = ("balanced", "bm25", "dense", "two-stage")
LIMIT = 3
DEPTH = 10
SEED = 7


@dataclass(frozen=True, slots=True)
class Told:
    """What one prompt was given at one floor."""

    ids: tuple[str, ...]
    withheld: bool
    tokens: int


def main(arguments: list[str] | None = None) -> int:
    """A table of what hooks would inject, and one of plain rankings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coding_prompts", description=__doc__)
    parser.add_argument("--half", choices=HALVES, action="append", help="one of the halves; both without it")
    parser.add_argument("--sizes", default="30,70,200", help="how many memories a store holds")
    parser.add_argument("--floors", default=",".join(f"{one:g}" for one in FLOORS), help="keep_unasked")
    parser.add_argument("--as-queries", action="store_true", help="operators in prompts, names as they stand")
    parser.add_argument("--each", action="store_true", help="also tell what each prompt was given")
    given = parser.parse_args(arguments)
    chosen = settings.load(store=":memory:")
    embedder, reason = chosen_embedder(chosen, None)
    assert embedder is not None, reason
    remembering = RememberingEmbedder(embedder, file_of(building.cache_folder(chosen) / "vectors", embedder.id))
    documents = [one for half in HALVES for one in datasets.load(DATA / half).documents]
    floors = [float(one) for one in given.floors.split(",")]
    print("half\tmemories\tfloor\tfound\twithheld\tinjected\ttokens a prompt")
    for half in given.half or HALVES:
        cases = cases_of(half, documents)
        for size in map(int, given.sizes.split(",")):
            told = hooked(documents, cases, size, floors, remembering, prose=not given.as_queries)
            for floor in floors:
                print(f"{half}\t{size}\t{floor:g}\t" + "\t".join(row(cases, told[floor])), flush=True)
            if given.each:
                print(*lines(cases, told[floors[0]]), sep="\n")
    print("\nhalf\tsystem\trecall@3\trecall@10\tmrr@10")
    with filled(documents, remembering) as engine:
        for half in given.half or HALVES:
            answerable = [one for one in cases_of(half, documents) if one.relevant]
            for name in SYSTEMS:
                print(f"{half}\t{name}\t" + "\t".join(ranked(engine, answerable, name)), flush=True)
    return 0


def cases_of(half: str, documents: Sequence[Document]) -> list[Case]:
    """The prompts of a half, asked of all projects, or of the one that a prompt is kept to."""
    projects = {
        str(entry["_id"]): entry["metadata"].get("project")
        for entry in datasets.json_lines(DATA / half / "queries.jsonl")
    }
    latest = max(one.created_at for one in documents if one.created_at is not None)
    return [
        Case(
            one.id, one.text, one.kind, one.stratum, Scope(project=project), latest, relevant=one.relevant,
            only=frozenset(doc.id for doc in documents if doc.metadata["project"] == project) if project else None,
        )
        for one in datasets.load(DATA / half).queries
        for project in [projects[one.id]]
    ]  # fmt: skip


@contextmanager
def filled(documents: Sequence[Document], embedder: RememberingEmbedder) -> Iterator[Engine]:
    """A store of these memories, each in its project. Ids are those of the documents."""
    chosen = settings.load(store=":memory:")
    with Engine(open_store(":memory:"), chosen, embedder, background=False, patience_ms=PATIENCE_MS) as engine:
        ids = iter([one.id for one in documents])
        building.writing.remember_many(
            engine.store, map(draft, documents), new_id=lambda: next(ids), now=datasets.UNDATED, policy=building.POLICY
        )
        engine.upkeep()
        yield engine


def draft(one: Document) -> Draft:
    about = one.metadata
    return Draft(
        one.content, str(about["type"]), about["tags"], scope=Scope(project=str(about["project"])),
        created_at=one.created_at,
    )  # fmt: skip


def hooked(
    documents: Sequence[Document], cases: Sequence[Case], size: int, floors: Sequence[float],
    embedder: RememberingEmbedder, *, prose: bool = True,
) -> dict[float, dict[str, Told]]:  # fmt: skip
    """For each floor what each prompt is given, by its id."""
    found: dict[float, dict[str, Told]] = {floor: {} for floor in floors}
    chance = random.Random(SEED)
    whole = size >= len(documents)
    for group in [cases] if whole else [[case] for case in cases]:
        with filled(documents if whole else _drawn(documents, group[0], size, chance), embedder) as engine:
            for case in group:
                for floor in floors:
                    found[floor][case.id] = _told(engine, case, floor, prose)
    return found


def _drawn(documents: Sequence[Document], case: Case, size: int, chance: random.Random) -> list[Document]:
    """What the prompt should find, and others; all of its project where it is kept to one."""
    others = [one.id for one in documents if one.id not in case.relevant and (case.only is None or one.id in case.only)]
    kept = {*chance.sample(others, min(len(others), size - len(case.relevant))), *case.relevant}
    return [one for one in documents if one.id in kept]


def _told(engine: Engine, case: Case, floor: float, prose: bool) -> Told:
    """As `/recollect` asks."""
    answer = engine.recall(
        case.text, limit=LIMIT, scope=case.scope, now=case.now, unasked=True, prose=prose, without_sensitive=True,
        options={"confidence.keep_unasked": floor, "query.identifiers": prose, "render.kind": "fenced"},
    )  # fmt: skip
    return Told(tuple(hit.id for hit in answer), answer.abstained, estimate(answer.render()) if len(answer) else 0)


def row(cases: Sequence[Case], told: dict[str, Told]) -> list[str]:
    """Of the answerable prompts the share with a judged memory and the share that got nothing by the floor; of the
    others the share that got something; tokens over all."""
    answerable, nothing = ([one for one in cases if bool(one.relevant) is is_so] for is_so in (True, False))
    columns = (
        [any(id in one.relevant for id in told[one.id].ids) for one in answerable],
        [told[one.id].withheld for one in answerable],
        [bool(told[one.id].ids) for one in nothing],
    )
    return [*map(_share, columns), f"{sum(one.tokens for one in told.values()) / len(told):.0f}"]


def ranked(engine: Engine, cases: Sequence[Case], name: str) -> list[str]:
    """How well a profile or a baseline ranks the judged memories, whether anything would be withheld or not."""
    chosen = system(name, {}, None)
    if chosen.profile is None:
        answers = ask_all(Bench(name, engine, tuple(cases), {}), chosen, cases, DEPTH, as_shipped=False)
        rankings = {id: one.ranking for id, one in answers.items()}
    else:
        rankings = {
            one.id: tuple(
                hit.id
                for hit in engine.recall(
                    one.text, profile=chosen.profile, limit=DEPTH, scope=one.scope, now=one.now, prose=True
                )
            )
            for one in cases
        }
    scores = measures.score({one.id: one.relevant for one in cases}, rankings)
    return [_share(scores.of(name).tolist()) for name in ("recall@3", "recall@10", "mrr@10")]


def _share(values: Sequence[float]) -> str:
    (one,) = estimates(np.asarray(values, dtype=np.float64)[:, None])
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"


def lines(cases: Sequence[Case], told: dict[str, Told]) -> list[str]:
    """What each prompt was given: for reading."""
    found: list[str] = []
    for one in cases:
        got = told[one.id]
        right = any(id in one.relevant for id in got.ids)
        word = "withheld" if got.withheld else "found" if right else "missed" if one.relevant else "injected"
        word = word if got.ids or one.relevant else "silent"
        found.append(f"  {word}\t{one.id}\t{one.stratum}\t{' '.join(one.text.split())[:80]}\t{' '.join(got.ids)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
