"""A small world for pipeline tests: memories with vectors chosen by hand, and ports that count their calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from recollect import pipeline, profiles
from recollect.domain.changes import AddLink, Put
from recollect.domain.memory import Link, Memory, content_hash
from recollect.domain.question import Filter
from recollect.domain.recall import Recall
from recollect.legs.running import Tools
from recollect.ports import Embedded, Matrix, Store, Vector
from recollect.stages.parse import parse
from recollect.stores.memory import open_memory

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def angle(degrees: float) -> Vector:
    """A unit vector in the plane: the cosine of two of them is the cosine of the angle between."""
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=np.float32)


@dataclass
class HandEmbedder:
    """An embedder whose vectors the test wrote down; what it does not know lies at 90 degrees."""

    vectors: dict[str, Vector] = field(default_factory=dict[str, Vector])
    id: str = "by-hand"
    dimension: int = 2
    max_tokens: int = 512
    queries: list[str] = field(default_factory=list[str])
    fail: Exception | None = None
    before_query: Callable[[], None] | None = None

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self.vectors.get(text, angle(90)) for text in texts])

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        if self.before_query is not None:
            self.before_query()
        if self.fail is not None:
            raise self.fail
        return self.vectors.get(text, angle(0))


class Counting:
    """Passes every call on to a port and writes down which method was called with what."""

    def __init__(self, inner: object) -> None:
        self.inner = inner
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((name, args, named))
            return method(*args, **named)

        return call

    def named(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, named) for called, args, named in self.calls if called == name]


@dataclass
class World:
    """A store, an embedder and the shortest way to ask a profile something."""

    store: Store = field(default_factory=open_memory)
    embedder: HandEmbedder | None = field(default_factory=HandEmbedder)
    reranker: Any = None
    patience_ms: float = 5000.0

    def remember(self, id: str, content: str, degrees: float | None = None, days: float = 0, **fields: Any) -> Memory:
        """Put a memory that is `days` old, with a vector at an angle from the question's (None: no vector)."""
        made = NOW - timedelta(days=days)
        memory = replace(Memory(id, content, created_at=made, updated_at=made, accessed_at=made), **fields)
        self.store.records.write([Put(memory)])
        if degrees is not None and self.store.vectors is not None and self.embedder is not None:
            entry = Embedded(id, content_hash(content), angle(degrees)[None, :])
            self.store.vectors.put(self.embedder.id, [entry])
        return memory

    def link(self, source: str, type: str, target: str) -> None:
        self.store.records.write([AddLink(Link(source, type, target, NOW))])

    def ask(
        self,
        profile: str,
        text: str,
        *,
        options: Mapping[str, Any] | None = None,
        limit: int | None = None,
        mode: Any = "auto",
        sort_by: Any = "relevance",
        filter: Filter | None = None,
        aliases: Mapping[str, Any] | None = None,
        budget_tokens: int | None = None,
        now: datetime = NOW,
    ) -> Recall:
        recipe = profiles.load(profile, overrides=options)
        question = parse(
            text,
            now=now,
            filter=filter or Filter(),
            limit=limit or recipe.limit,
            mode=mode,
            sort_by=sort_by,
            budget_tokens=budget_tokens,
            aliases=aliases or {},
            **recipe.query.options,
        )
        with ThreadPoolExecutor(4) as executor:
            tools = Tools(self.store, executor, self.embedder, self.reranker, self.patience_ms)
            return pipeline.recall(question, recipe, tools)


def counted(store: Store) -> tuple[Store, dict[str, Counting]]:
    """The same store with every port counted."""
    ports = {name: Counting(getattr(store, name)) for name in ("records", "text", "vectors", "links")}
    return replace(store, **ports), ports  # type: ignore[arg-type]


def scores(recall: Recall) -> dict[str, float]:
    return {hit.id: hit.score for hit in recall}


def ids(recall: Recall) -> list[str]:
    return [hit.id for hit in recall]
