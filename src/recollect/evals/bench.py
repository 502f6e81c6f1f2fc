"""A bench: one store to ask, and the cases to ask it with. Everything downstream speaks of memory ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from recollect.adapters import open_embedder, open_reranker, open_store
from recollect.domain.errors import InvalidInput, RecollectError
from recollect.domain.memory import DEFAULT_NAMESPACE, Scope
from recollect.engine import Engine
from recollect.evals import datasets
from recollect.evals.datasets import Dataset, Kind, Query
from recollect.evals.entries import truth
from recollect.evals.moments import moment
from recollect.evals.vectors import RememberingEmbedder
from recollect.ports import Embedder
from recollect.settings import Settings

NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")
PATIENCE_MS = 60_000.0
MAX_CASES = 200_000
OWN = "own store"


@dataclass(frozen=True, slots=True)
class Case:
    """One question as the engine is asked it, with the ids and grades of the memories that should come back."""

    id: str
    text: str
    kind: Kind = "counted"
    stratum: str | None = None
    scope: Scope = field(default_factory=Scope)
    now: datetime = datasets.UNDATED
    only: frozenset[str] | None = None
    relevant: Mapping[str, int] = field(default_factory=dict[str, int])
    exclude: tuple[str, ...] = ()
    """The memory that is the question itself."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An open engine and its cases. private: nothing but totals may be written about it."""

    name: str
    engine: Engine
    cases: tuple[Case, ...]
    facts: Mapping[str, Any]
    embedder: RememberingEmbedder | None = None
    private: bool = False

    def of(self, *kinds: Kind) -> list[Case]:
        return [case for case in self.cases if case.kind in kinds]


@contextmanager
def opened(
    store: str, settings: Settings, cases: Sequence[Case], facts: Mapping[str, Any], embedder: Embedder | None,
    *, name: str, vectors: Path | None = None, private: bool = False,
) -> Generator[Bench]:  # fmt: skip
    """The store opened to be read only: measuring must not change what the next run measures."""
    remembering = None if embedder is None else RememberingEmbedder(embedder, vectors)
    opened_store = open_store(store, read_only=True)
    engine = Engine(
        opened_store, settings, remembering, open_reranker(settings), background=False, patience_ms=PATIENCE_MS
    )
    try:
        yield Bench(name, engine, tuple(cases), facts, remembering, private)
    finally:
        # What was surfaced cannot be recorded in a store that is only read.
        with suppress(RecollectError):
            engine.close()
        if remembering is not None:
            remembering.close()


def namespace_of(name: str | None) -> str:
    """The set's own name where the grammar of namespaces allows it, else one made from its hash."""
    if name is None:
        return DEFAULT_NAMESPACE
    return name if NAMESPACE.fullmatch(name) else f"eval-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def cases_of(dataset: Dataset, places: Mapping[str, str], queries: Sequence[Query]) -> list[Case]:
    """The set's questions with memory ids instead of document ids, each asked at its own time.

    Without a date a question is asked when the last memory of its namespace was made; where no memory has a time, not
    before they are written.
    """
    latest: dict[str | None, datetime] = {}
    for one in dataset.documents:
        if one.created_at is not None:
            latest[one.namespace] = max(one.created_at, latest.get(one.namespace, one.created_at))
    whole = max(latest.values(), default=datasets.UNDATED)
    found: list[Case] = []
    for one in queries:
        now = one.asked_at or latest.get(one.namespace, whole)
        if not latest and now < datasets.UNDATED:
            now = datasets.UNDATED.astimezone(now.tzinfo)
        found.append(
            Case(
                id=one.id,
                text=one.text,
                kind=one.kind,
                stratum=one.stratum,
                scope=Scope(namespace=namespace_of(one.namespace)),
                now=now,
                only=None if one.candidates is None else frozenset(places[id] for id in one.candidates),
                relevant={places[id]: grade for id, grade in one.relevant.items()},
                exclude=() if one.itself is None else (places[one.itself],),
            )
        )
    return found


def own_cases(questions: Path, now: datetime) -> list[Case]:
    """A user's questions: {"query", "relevant": [ids] or {id: grade}, and optionally "stratum", "namespace",
    "project", "session", "now", "answerable": false}."""
    cases: list[Case] = []
    for number, entry in enumerate(datasets.json_lines(questions), start=1):
        if number > MAX_CASES:
            raise InvalidInput(f"{questions} has more than {MAX_CASES} questions", "split the file")
        text, place = entry.get("query"), f"{questions}: entry {number}"
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"{place} has no query", 'use {"query": "…", "relevant": ["id"]}')
        relevant = _grades(entry.get("relevant"), place)
        answerable = truth(entry.get("answerable")) is not False
        kind: Kind = ("counted" if relevant else "unjudged") if answerable else "unanswerable"
        namespace, project, session, stratum, category = (
            _name(entry, name, place) for name in ("namespace", "project", "session", "stratum", "category")
        )
        scope = Scope(namespace or DEFAULT_NAMESPACE, project, session)
        asked = moment(entry["now"]) if entry.get("now") else now
        if asked is None:
            raise InvalidInput(f"{place}: now is not a time", "write it like 2026-05-01T12:00:00Z")
        cases.append(Case(str(number), text, kind, stratum or category, scope, asked, relevant=relevant))
    return cases


def _name(entry: Mapping[str, Any], name: str, place: str) -> str | None:
    value = entry.get(name)
    if value is None or isinstance(value, str | int):
        return None if value is None else str(value)
    raise InvalidInput(f"{place}: {name} must be text", f'such as "{name}": "a name"')


def chosen_embedder(settings: Settings, name: str | None) -> tuple[Embedder | None, str]:
    """The embedder of the settings or another one, and the reason where there is none."""
    chosen = settings if name is None else replace(settings, embedder=name)
    found, reason = open_embedder(chosen, waited_for=True)
    return found, reason or ("" if found is not None else "by words alone: no embedder is installed")


def _grades(value: Any, place: str) -> dict[str, int]:
    if value is None:
        return {}
    if isinstance(value, list):
        return {str(id): 1 for id in cast(list[Any], value)}
    if isinstance(value, dict):
        graded = cast(dict[str, Any], value)
        if all(type(grade) is int and grade <= datasets.MAX_GRADE for grade in graded.values()):
            return {id: grade for id, grade in graded.items() if grade > 0}
    raise InvalidInput(f"{place}: relevant must be a list of ids or an object of grades", 'such as ["01h…"]')
