"""The ports of a mirrored store: its own ones, with Qdrant told of every change and asked for candidates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.domain.changes import Change, Erase, Put
from recollect.domain.errors import RecollectError
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import TURNS_BEFORE, Memory, turn_of
from recollect.domain.pages import Behind
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.ports import (
    Care,
    Embedded,
    EmbeddingProgress,
    Finding,
    Graves,
    LinkIndex,
    Pending,
    Records,
    ScanOrder,
    StoreSize,
    StoreStats,
    Vector,
    VectorIndex,
)
from recollect.stores.qdrant.mirror import Mirror
from recollect.stores.qdrant.server import Server

TIES = 32
"""So many more are asked for, because ties are broken by id and what is out of date falls away."""


class MirroredVectors:
    """The VectorIndex port: Qdrant finds, the store's own vectors judge."""

    def __init__(self, records: Records, vectors: VectorIndex, server: Server, mirror: Mirror) -> None:
        self._records = records
        self._vectors = vectors
        self._server = server
        self._mirror = mirror

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        self._vectors.similarities(model, vector, [])  # refuses a vector of another dimension
        if limit <= 0:
            return []
        if filter.only is None:
            found = self._server.nearest(model, vector, filter, limit + TIES)
        else:
            found = sorted(filter.only)
        # Qdrant may be a moment behind: what the store no longer holds or no longer lets through is not an answer.
        seen = [memory.id for memory in self._records.fetch(found) if filter.allows(memory)]
        hits = self._vectors.similarities(model, vector, seen).values()
        close = [hit for hit in hits if minimum is None or hit.score >= minimum]
        return sorted(close, key=lambda hit: (-hit.score, hit.id))[:limit]

    def similarities(self, model: str, vector: Vector, ids: Sequence[str]) -> dict[str, Hit]:
        return self._vectors.similarities(model, vector, ids)

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        self._vectors.put(model, entries)
        self._mirror.follow([entry.id for entry in entries if entry.vectors is not None])

    def missing(self, model: str, limit: int) -> list[Pending]:
        return self._vectors.missing(model, limit)

    def progress(self, model: str) -> EmbeddingProgress:
        return self._vectors.progress(model)

    def models(self) -> list[str]:
        return self._vectors.models()

    def stored(self, model: str, ids: Sequence[str]) -> list[Embedded]:
        return self._vectors.stored(model, ids)

    def forget(self, model: str) -> None:
        self._vectors.forget(model)
        self._mirror.forget(model)


class MirroredRecords:
    """The Records port: what is replaced or erased is brought to Qdrant before the write is acknowledged.

    So are the turns that were embedded together with a turn that comes, changes or goes: a store drops their vectors.
    """

    def __init__(self, records: Records, links: LinkIndex | None, mirror: Mirror) -> None:
        self._records = records
        self._links = links
        self._mirror = mirror

    def write(self, changes: Sequence[Change]) -> None:
        changed = [one.memory.id for one in changes if isinstance(one, Put) and one.expected_version is not None]
        changed += [one.id for one in changes if isinstance(one, Erase)]
        turns = [one.memory.id for one in changes if isinstance(one, Put) and turn_of(one.memory) is not None]
        changed += self._followers(changed)
        self._records.write(changes)
        with suppress(RecollectError):  # the write is durable whatever happens now; a round heals the rest
            changed += self._followers(turns)
        self._mirror.follow(list(dict.fromkeys(changed)))

    def _followers(self, ids: Sequence[str]) -> list[str]:
        if self._links is None or not ids:
            return []
        return [id for near in self._links.neighbours(ids, 0, TURNS_BEFORE).values() for _, id in near]

    def fetch(self, ids: Sequence[str]) -> list[Memory]:
        return self._records.fetch(ids)

    def scan(
        self, filter: Filter, order: ScanOrder = "created_at", limit: int = 100, after: str | Behind | None = None
    ) -> list[Memory]:
        return self._records.scan(filter, order, limit, after)

    def recent(self, filter: Filter, limit: int, embedded: bool) -> list[Hit]:
        return self._records.recent(filter, limit, embedded)

    def lookup(
        self,
        namespace: str,
        *,
        key: str | None = None,
        content: str | None = None,
        project: str | None = None,
        session: str | None = None,
    ) -> Lookup:
        return self._records.lookup(namespace, key=key, content=content, project=project, session=session)

    def lookups(self, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
        return self._records.lookups(namespace, wanted)


class MirroredCare:
    """The Care port: health is the health of both."""

    def __init__(self, care: Care, mirror: Mirror, place: str) -> None:
        self._care = care
        self._mirror = mirror
        self._place = place

    def size(self) -> StoreSize:
        return self._care.size()

    def stats(self) -> StoreStats:
        own = self._care.stats()
        return replace(own, kind=f"{own.kind} + qdrant", location=f"{own.location} + {self._place}")

    def check(self, repair: bool = False) -> list[Finding]:
        return self._care.check(repair) + self._mirror.check(repair)

    def backup(self, path: Path) -> None:
        self._care.backup(path)

    def tidy(self) -> dict[str, int]:
        return {**self._care.tidy(), **self._mirror.step()}

    def settings(self) -> dict[str, Any]:
        return self._care.settings()

    def graves(self) -> Graves:
        return self._care.graves()

    def bury(self, graves: Graves) -> None:
        self._care.bury(graves)
