"""Asking a system every case of a bench, and keeping what the measures need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from recollect.domain.question import Filter
from recollect.domain.recall import Recall, Trace
from recollect.evals.bench import Bench, Case
from recollect.evals.bm25 import PlainBm25
from recollect.evals.systems import System
from recollect.stages.cleaning import clean
from recollect.stages.tokens import estimate

Tick = Callable[[int, int], None]

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What one case brought. The ranking is as deep as asked; times and tokens are those of the answer as a hook gets
    it, at the profile's own limit."""

    ranking: tuple[str, ...]
    ms: float
    stages: dict[str, float] = field(default_factory=dict[str, float])
    tokens: int = 0
    injects: bool = True
    confidence: float | None = None
    best_score: float | None = None
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    sole: dict[str, str] = field(default_factory=dict[str, str])
    """Memories in the ranking that a single list alone contributed to, with that list."""
    degraded: bool = False
    reranked: bool = False


def ask_all(
    bench: Bench, system: System, cases: Sequence[Case], limit: int, *, as_shipped: bool, tick: Tick | None = None
) -> dict[str, Asked]:
    """The answers by case id. as_shipped: each case is asked a second time, at the profile's own limit, and timed."""
    if system.profile is None:
        ask = _plain(bench, limit)
    else:
        ask = _engine(bench, system, limit, as_shipped)
        _embed_questions(bench, cases, tick)
    if cases:
        # The first answer also pays for opening indexes and loading vectors: it is asked twice and timed once.
        ask(cases[0])
    answers: dict[str, Asked] = {}
    for number, case in enumerate(cases, start=1):
        answers[case.id] = ask(case)
        if tick is not None:
            tick(number, len(cases))
    return answers


def _embed_questions(bench: Bench, cases: Sequence[Case], tick: Tick | None) -> None:
    """Before the clock runs, so that times do not depend on which questions were asked in an earlier run."""
    if bench.embedder is None:
        return
    for number, case in enumerate(cases, start=1):
        bench.embedder.embed_query(clean(case.text))
        if tick is not None:
            tick(number, len(cases))


def _engine(bench: Bench, system: System, limit: int, as_shipped: bool) -> Callable[[Case], Asked]:
    def recall(case: Case, limit: int | None, unasked: bool = False) -> Recall:
        return bench.engine.recall(
            case.text,
            profile=system.profile,
            options=system.options or None,
            limit=limit,
            scope=case.scope,
            only=case.only,
            exclude=case.exclude,
            now=case.now,
            unasked=unasked,
        )

    def ask(case: Case) -> Asked:
        # What hooks would put before a model: here a profile may say nothing.
        shipped = recall(case, None, unasked=True) if as_shipped else None
        return _asked(recall(case, limit), shipped)

    return ask


def _asked(deep: Recall, shipped: Recall | None) -> Asked:
    timed = shipped or deep
    trace = timed.trace
    sole: dict[str, str] = {}
    for hit in deep:
        givers = [one.list for one in hit.contributions if one.value > 0]
        if len(givers) == 1:
            sole[hit.id] = givers[0]
    steps: dict[str, float] = {**trace.stages, **{f"{name} (list)": one.ms for name, one in trace.legs.items()}}
    return Asked(
        ranking=tuple(hit.id for hit in deep),
        ms=trace.ms,
        stages=steps,
        tokens=estimate(shipped.rendered) if shipped is not None and len(shipped) else 0,
        injects=len(timed) > 0 and not timed.abstained,
        confidence=None if trace.evidence is None else trace.evidence.chance,
        best_score=timed[0].score if len(timed) else None,
        lists=dict(deep.trace.lists),
        sole=sole,
        degraded=_lacks_a_part(deep.trace),
        reranked=trace.rerank.used,
    )


def _lacks_a_part(trace: Trace) -> bool:
    """Whether a list failed, or a model that was asked for was not there, failed or was late."""
    return trace.rerank.is_lacking or trace.fell_back_to_bm25 or any(one.error for one in trace.legs.values())


def _plain(bench: Bench, limit: int) -> Callable[[Case], Asked]:
    index = PlainBm25(_texts(bench))

    def ask(case: Case) -> Asked:
        began = perf_counter()
        found = index.search(case.text, case.scope.namespace, case.only, limit + len(case.exclude))
        found = [id for id in found if id not in case.exclude][:limit]
        return Asked(tuple(found), round((perf_counter() - began) * 1000, 3), injects=bool(found))

    return ask


def _texts(bench: Bench) -> Any:
    """Every memory of the store: id, namespace, content."""
    records = bench.engine.store.records
    for namespace in sorted(bench.engine.store.care.size().namespaces):
        after: str | None = None
        while page := records.scan(Filter(namespace=namespace), order="id", limit=PAGE, after=after):
            yield from ((one.id, namespace, one.content) for one in page)
            after = page[-1].id
