"""From a folder or the user's own store to an open bench."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.evals import bench as benches
from recollect.evals import building, datasets, unanswerable
from recollect.evals.bench import Bench, Case
from recollect.evals.building import Progress
from recollect.evals.vectors import file_of
from recollect.settings import Settings


@dataclass(frozen=True, slots=True)
class Source:
    """What decides how data become a bench."""

    settings: Settings
    cache: Path
    embedder: str | None = None
    limit_queries: int | None = None
    swapped: bool = False
    """Also ask the questions of one conversation of the next one: they have no answer there."""
    contrasted: bool = False
    """Ask every counted question where its answer is and where it is not, and nothing else."""
    rebuild: bool = False


def names(folders: Sequence[Path]) -> list[str]:
    """Each set by the name of its folder, with those of the folders around it where others are called the same."""
    every = [one.resolve().parts for one in folders]
    return [
        "/".join(
            next(parts[-n:] for n in range(1, len(parts) + 1) if sum(parts[-n:] == one[-n:] for one in every) == 1)
        )
        for parts in every
    ]


@contextmanager
def public(
    folder: Path, source: Source, progress: Progress | None = None, name: str | None = None
) -> Generator[Bench]:  # fmt: skip
    """A data set, its store built or found in the cache."""
    dataset = datasets.load(folder)
    embedder, note = benches.chosen_embedder(source.settings, source.embedder)
    store, places = building.prepared(
        dataset, embedder, source.settings, source.cache, rebuild=source.rebuild, progress=progress
    )
    judged = [one for one in dataset.queries if one.kind != "unjudged"]
    queries = datasets.sampled(judged, source.limit_queries)
    if source.swapped:
        queries = [*queries, *unanswerable.swapped(replace(dataset, queries=tuple(queries)))]
    if source.contrasted:
        queries = unanswerable.contrasted(replace(dataset, queries=tuple(queries)))
    cases = benches.cases_of(dataset, places, queries)
    facts: dict[str, Any] = {
        "hash": dataset.data_hash,
        "documents": len(dataset.documents),
        "empty_documents": dataset.empty,
        "unknown_judgements": dataset.unknown_judgements,
        "questions": len(queries),
        "unjudged": len(dataset.queries) - len(judged),
        "aside": sum(case.kind == "aside" for case in cases),
        "embedder": embedder.id if embedder is not None else None,
        "note": "; ".join([*([note] if note else []), *datasets.remarks(dataset), *_uncounted(cases)]),
    }
    vectors = None if embedder is None else file_of(source.cache / "vectors", embedder.id)
    with benches.opened(
        str(store), source.settings, cases, facts, embedder, name=name or dataset.name, vectors=vectors
    ) as bench:  # fmt: skip
        yield bench


def _uncounted(cases: Sequence[Case]) -> list[str]:
    """Said where measures and comparisons stay empty, for else they would do so without a word."""
    if any(case.kind == "counted" for case in cases):
        return []
    return ["no question counts in the measures: all are unanswerable or adversarial"]


@contextmanager
def own(questions: Path, source: Source, now: datetime) -> Generator[Bench]:
    """The user's own store with a file of questions. Nothing but totals is kept, vectors of questions included."""
    every = benches.own_cases(questions, now)
    judged = [case for case in every if case.kind != "unjudged"]
    cases = datasets.sampled(judged, source.limit_queries)
    if not any(case.relevant for case in cases):
        raise InvalidInput(
            "no question names a relevant memory", 'use {"query": "…", "relevant": ["id"]}', "--questions"
        )
    embedder, note = benches.chosen_embedder(source.settings, source.embedder)
    facts: dict[str, Any] = {
        "questions": len(cases),
        "unjudged": len(every) - len(judged),
        "embedder": embedder.id if embedder is not None else None,
    }
    with benches.opened(
        source.settings.store, source.settings, cases, facts, embedder, name=benches.OWN, private=True
    ) as bench:  # fmt: skip
        wanted = sorted({id for case in cases for id in case.relevant})
        memories = bench.engine.store.records.fetch(wanted)
        homes = {one.id: one.scope.namespace for one in memories}
        times = {one.id: one.created_at for one in memories}
        missing = sum(id not in homes for case in cases for id in case.relevant)
        lost = sum(
            any(homes.get(id, case.scope.namespace) != case.scope.namespace for id in case.relevant) for case in cases
        )
        early = sum(any(datasets.is_after(times.get(id), case.now) for id in case.relevant) for case in cases)
        waiting = bench.engine.embedding_progress()
        unembedded = waiting.pending + waiting.failed if waiting is not None else None
        told = [
            note,
            f"{missing} relevant ids are not in the store" if missing else "",
            f"{lost} questions are asked in another namespace than that of their memories" if lost else "",
            f"{early} {datasets.EARLY}" if early else "",
            f"{unembedded} memories have no embedding yet: run `recollect upkeep`" if unembedded else "",
        ]
        more = {
            "documents": bench.engine.stats().memories,
            "unknown_judgements": missing,
            "waiting_for_embedding": unembedded,
            "note": "; ".join(one for one in told if one),
        }
        yield replace(bench, facts={**facts, **more})
