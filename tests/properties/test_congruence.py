"""Random histories on the memory store and on a real one: both must give the same answers to every question."""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put, SetSetting, Touch
from recollect.domain.errors import Conflict, RecollectError
from recollect.domain.memory import Link, Memory, Scope, content_hash
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store, TextMatches
from recollect.stores.memory import open_memory
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.sqlite import open_sqlite
from tests.postgres_server import shared_server

HISTORIES = int(os.environ.get("HISTORIES", "12"))
"""So many on PostgreSQL: `make test-postgres HISTORIES=1000`."""
START = datetime(2026, 3, 1, tzinfo=UTC)
IDS = list("abcde")
NAMESPACES = ["default", "other"]
PROJECTS = [None, "p", "q"]
SESSIONS = [None, "s1", "s2"]
TYPES = ["fact", "decision", "episode"]
TAGS = ["x", "Deploy", "two words"]
MODELS = ["one", "two"]
WORDS = [
    "run",
    "running",
    "Run",
    "deploy",
    "deployment",
    "foo-bar",
    "café",
    "the",
    "of",
    "日本語",
    "zebra",
    "...",
    "bar",
]
# Vectors that either are the same or clearly differ, so that rounding decides no order.
VECTORS = [(row / np.linalg.norm(row)).astype(np.float32) for row in np.random.default_rng(11).normal(size=(4, 5))]

ids = st.sampled_from(IDS)
moments = st.integers(0, 12).map(lambda ticks: START + timedelta(microseconds=ticks * 400))
texts = st.one_of(
    st.sampled_from(["run", "Run", "deploy the zebra"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
)
tags = st.lists(st.sampled_from(TAGS), max_size=3).map(tuple)
scopes = st.builds(
    Scope,
    namespace=st.sampled_from([*NAMESPACES, "default", "default"]),
    project=st.sampled_from(PROJECTS),
    session=st.sampled_from(SESSIONS),
)
memories = st.builds(
    Memory,
    id=ids,
    content=texts,
    type=st.sampled_from(TYPES),
    tags=tags,
    confidence=st.floats(0, 1),
    scope=scopes,
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    created_at=moments,
    updated_at=moments,
    accessed_at=moments,
    access_count=st.integers(0, 3),
    pinned=st.booleans(),
    sensitive=st.sampled_from([False, False, False, True]),
    metadata=st.dictionaries(st.sampled_from(["path", "deep"]), st.lists(st.integers(), max_size=2)),
    version=st.integers(1, 3),
)
puts = st.builds(
    Put,
    memory=memories,
    # -1 stands for whatever version is stored when the history gets there.
    expected_version=st.sampled_from([None, -1, -1, -1, -1, 1]),
    once=st.sampled_from([False, False, True]),
    revive=st.sampled_from([False, False, True]),
)
links = st.builds(
    Link,
    source=st.sampled_from(IDS[:2]),
    type=st.sampled_from(["supersedes", "see-also"]),
    target=st.sampled_from(IDS[1:3]),
    created_at=moments,
)
changes = st.one_of(
    puts,
    puts,
    puts,
    st.builds(Erase, id=ids, tombstone=st.booleans()),
    st.builds(Touch, ids=st.lists(ids, max_size=3).map(tuple), accessed_at=moments, count=st.integers(0, 2)),
    st.builds(AddLink, links),
    st.builds(DropLink, links),
    st.builds(SetSetting, name=st.sampled_from(["s", "t"]), value=st.sampled_from([None, 1, 0.5, "x", [1, 2]])),
)
some = st.lists(ids, max_size=5).map(frozenset)
restrictions: dict[str, st.SearchStrategy[Any]] = {
    "project": st.sampled_from(PROJECTS),
    "sessions": st.lists(st.sampled_from(["s1", "s2"]), max_size=2).map(tuple),
    "types": st.lists(st.sampled_from(TYPES), max_size=2).map(tuple),
    "tags": tags,
    "without_types": st.lists(st.sampled_from(TYPES), max_size=1).map(tuple),
    "without_tags": st.lists(st.sampled_from(TAGS), max_size=1).map(tuple),
    "after": moments,
    "before": moments,
    "exclude": some,
    "only": some,
}
restriction = st.one_of([st.tuples(st.just(name), values) for name, values in restrictions.items()])
filters = st.builds(
    lambda namespace, chosen: Filter(namespace, **dict(chosen)),
    st.sampled_from([*NAMESPACES, "default", "default"]),
    st.lists(restriction, max_size=3),
)
units = st.one_of(
    st.sampled_from(WORDS).map(Term),
    st.lists(st.sampled_from(WORDS), max_size=3).map(lambda words: Phrase(tuple(words))),
    st.sampled_from(["ru", "de", "deploy", "foo-ba", "日本", "-"]).map(Prefix),
)
queries: st.SearchStrategy[Node] = st.recursive(
    units,
    lambda parts: st.one_of(
        st.lists(parts, max_size=4).map(lambda nodes: Or(tuple(nodes))),
        st.lists(parts, max_size=3).map(lambda nodes: And(tuple(nodes))),
        st.builds(Not, parts, parts),
    ),
    max_leaves=6,
)
limits = st.sampled_from([0, 1, 2, 3, 100])


def outcome(store: Store, written: list[Change]) -> tuple[str, str | None]:
    """How a write ended: the kind of error, and the memory it names."""
    try:
        store.records.write(written)
    except RecollectError as error:
        return type(error).__name__, error.existing_id if isinstance(error, Conflict) else None
    return "written", None


def attempt(question: Any, *arguments: Any, **named: Any) -> Any:
    """The answer, or the kind of error."""
    try:
        return question(*arguments, **named)
    except RecollectError as error:
        return type(error).__name__


def scores(found: TextMatches, weights: tuple[float, float]) -> dict[str, float]:
    """FTS5's BM25, rounded so that equal scores are equal."""
    result: dict[str, float] = {}
    for row, id in enumerate(found.ids):
        norm = 1.2 * (0.25 + 0.75 * found.lengths[row] / found.average_length)
        counts = found.counts[row] @ np.array(weights)
        idfs = [math.log((found.documents - n + 0.5) / (n + 0.5)) for n in found.frequencies]
        parts = (max(idf, 1e-6) * f * 2.2 / (f + norm) for idf, f in zip(idfs, counts, strict=True))
        result[id] = round(math.fsum(parts), 12)
    return result


def plain(found: TextMatches) -> dict[str, Any]:
    """Everything that must be equal; the order of the candidates means nothing."""
    rows = {id: (found.lengths[row], found.counts[row].tolist()) for row, id in enumerate(found.ids)}
    assert len(rows) == len(found.ids)
    return {
        "rows": rows,
        "units": found.units,
        "frequencies": found.frequencies.tolist(),
        "documents": found.documents,
        "average_length": found.average_length,
    }


class Congruence(RuleBasedStateMachine):
    """One history, two stores. Every rule asks both and compares."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.oracle = open_memory()
        self.real = self.opened()

    def opened(self) -> Store:
        """The real store, the same one again when it is opened again."""
        return open_sqlite(Path(self.folder.name) / "real.db")

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.real.close()
            self.folder.cleanup()

    def both(self, port: str, question: str, *arguments: Any, **named: Any) -> tuple[Any, Any]:
        """The oracle's answer and the real store's."""
        return tuple(
            attempt(getattr(getattr(store, port), question), *arguments, **named) for store in (self.oracle, self.real)
        )

    def agree(self, port: str, question: str, *arguments: Any, **named: Any) -> Any:
        expected, got = self.both(port, question, *arguments, **named)
        assert got == expected, (port, question, arguments, named)
        return expected

    @rule(drawn=st.lists(changes, min_size=1, max_size=4))
    def write(self, drawn: list[Change]) -> None:
        written = [self.resolved(change) for change in drawn]
        assert outcome(self.real, written) == outcome(self.oracle, written), written

    @rule(drawn=st.lists(memories, min_size=1, max_size=5, unique_by=lambda memory: memory.id))
    def fill(self, drawn: list[Memory]) -> None:
        """Writes that nearly always succeed: whatever is in the way goes first."""
        written: list[Change] = []
        for memory in (replace(memory, key=None) for memory in drawn):
            if self.oracle.records.fetch([memory.id]):
                written.append(Erase(memory.id, tombstone=False))
            written.append(Put(memory, revive=True))
        assert outcome(self.real, written) == outcome(self.oracle, written) == ("written", None)

    def resolved(self, change: Change) -> Change:
        if isinstance(change, Put) and change.expected_version == -1:
            stored = self.oracle.records.fetch([change.memory.id])
            if not stored:
                return replace(change, expected_version=None)
            return Put(
                replace(change.memory, scope=replace(change.memory.scope, namespace=stored[0].scope.namespace)),
                stored[0].version,
                change.once,
                change.revive,
            )
        return change

    @rule(
        model=st.sampled_from(MODELS),
        drawn=st.lists(
            st.tuples(ids, st.lists(st.integers(0, 3), max_size=2), st.integers(0, 5)), min_size=2, max_size=5
        ),
    )
    def embed(self, model: str, drawn: list[tuple[str, list[int], int]]) -> None:
        entries: list[Embedded] = []
        for id, chosen, age in drawn:
            contents = [memory.content for memory in self.oracle.records.fetch([id])] or ["nobody's text"]
            hashed = content_hash("an older text" if age == 5 else contents[0])
            passages = tuple((number, number + 3) for number in range(len(chosen)))
            matrix = np.array([VECTORS[number] for number in chosen]) if chosen else None
            entries.append(Embedded(id, hashed, matrix, passages, None if chosen else "no answer"))
        self.agree("vectors", "put", model, entries)

    @rule(
        several=st.lists(filters, min_size=2, max_size=6),
        order=st.sampled_from(["created_at", "accessed_at", "id"]),
        limit=limits,
        after=st.one_of(st.none(), ids),
        embedded=st.booleans(),
        asked=st.lists(ids, max_size=4),
    )
    def records(
        self, several: list[Filter], order: str, limit: int, after: str | None, embedded: bool, asked: list[str]
    ) -> None:
        for wanted in several:
            self.agree("records", "scan", wanted, order)
            self.agree("records", "scan", wanted, order, limit, after)
            self.agree("records", "recent", wanted, limit, embedded)
        self.agree("records", "fetch", asked)
        self.agree("links", "links", asked)

    @rule(namespace=st.sampled_from(NAMESPACES), project=st.sampled_from(PROJECTS), content=texts)
    def look_up(self, namespace: str, project: str | None, content: str) -> None:
        self.agree("records", "lookup", namespace, content=content.upper(), project=project, key="k1", session="s1")
        for memory in self.oracle.records.scan(Filter(namespace)):
            self.agree("records", "lookup", namespace, content=memory.content, project=project)

    @rule(
        query=queries,
        wanted=filters,
        limit=limits,
        weights=st.sampled_from([(1.0, 1.0), (1.0, 5.0), (2.0, 0.0)]),
        minimum=st.sampled_from([0.0, 0.2, 0.3, 0.5]),
        word=st.sampled_from([*WORDS, "runing", "deplyment"]),
    )
    def words(
        self, query: Node, wanted: Filter, limit: int, weights: tuple[float, float], minimum: float, word: str
    ) -> None:
        expected, got = self.both("text", "match", query, wanted, 100, weights)
        assert plain(got) == plain(expected), (query, wanted)
        rank = scores(expected, weights)
        best = sorted(rank, key=lambda id: (-rank[id], id))[:limit]
        few = self.real.text.match(query, wanted, limit, weights)
        assert set(best) <= set(few.ids) <= set(rank)
        self.agree("text", "similar", word, minimum, limit)
        terms = self.agree("text", "tokens", " ".join(WORDS))
        self.agree("text", "frequencies", terms)

    @rule(
        model=st.sampled_from([*MODELS, "three"]),
        number=st.integers(0, 3),
        several=st.lists(filters, min_size=1, max_size=4),
        limit=limits,
        minimum=st.sampled_from([None, None, 0.0, 0.3]),
    )
    def vectors(self, model: str, number: int, several: list[Filter], limit: int, minimum: float | None) -> None:
        for wanted in (Filter(), *several):
            expected, got = self.both("vectors", "search", model, VECTORS[number], wanted, limit, minimum)
            assert [(hit.id, hit.passage) for hit in got] == [(hit.id, hit.passage) for hit in expected]
            assert [hit.score for hit in got] == pytest.approx([hit.score for hit in expected], abs=1e-12, rel=0)
        expected, got = self.both("vectors", "similarities", model, VECTORS[number], IDS)
        assert {id: hit.passage for id, hit in got.items()} == {id: hit.passage for id, hit in expected.items()}
        for id, hit in got.items():
            assert hit.score == pytest.approx(expected[id].score, abs=1e-12, rel=0)
        self.agree("vectors", "progress", model)
        expected, got = self.both("vectors", "missing", model, 100)
        assert [work for work in got if not work.attempts] == [work for work in expected if not work.attempts]
        # A failed one may rest for a while in the real store.
        retried = [work for work in got if work.attempts]
        assert retried == [work for work in expected if work.attempts and work in retried]

    @rule(reopen=st.booleans(), repair=st.booleans())
    def care(self, reopen: bool, repair: bool) -> None:
        if reopen:
            self.real.close()
            self.real = self.opened()
        assert [finding for finding in self.real.care.check(repair) if finding.severity != "info"] == []
        self.real.care.tidy()

    @invariant()
    def same_contents(self) -> None:
        if not hasattr(self, "real"):
            return
        for namespace in NAMESPACES:
            self.agree("records", "scan", Filter(namespace), "id")
        self.agree("care", "settings")
        expected, got = self.both("care", "stats")
        for fact in ("memories", "tombstones", "links", "vectors", "types", "projects"):
            assert getattr(got, fact) == getattr(expected, fact), fact


class LongCongruence(Congruence):
    """The same, for longer than anyone wants to wait every time."""


class PostgresCongruence(Congruence):
    """PostgreSQL, as an owner whom row-level security binds."""

    def opened(self) -> Store:
        return open_postgres(shared_server().kept(self.folder.name))

    def teardown(self) -> None:
        super().teardown()
        shared_server().end_of_test()


Congruence.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
LongCongruence.TestCase.settings = settings(
    max_examples=400, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
PostgresCongruence.TestCase.settings = settings(
    max_examples=HISTORIES, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
covered = pytest.mark.covers("two-stage.bm25", "more.model-change", "more.forget")
TestCongruence = covered(Congruence.TestCase)
TestLongCongruence = pytest.mark.slow(pytest.mark.timeout(3600)(covered(LongCongruence.TestCase)))
TestPostgresCongruence = pytest.mark.postgres(
    pytest.mark.timeout(300 + 20 * HISTORIES)(covered(PostgresCongruence.TestCase))
)
