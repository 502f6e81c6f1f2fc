"""Merging by link: the memory that stands supersedes the one that says the same. Nothing is lost, nothing is erased."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recollect.domain.changes import AddLink, Change, Put
from recollect.domain.errors import Conflict, NotFound
from recollect.domain.memory import EPISODE, Link, Memory
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store, Vector, VectorIndex
from recollect.stages import similarity
from recollect.stages.merging import may_be_one, strengthened

log = logging.getLogger(__name__)

NEIGHBOURS = 5


class Limits(Protocol):
    """What upkeep needs to know of the write policy."""

    @property
    def dedupe(self) -> bool: ...
    @property
    def cosine(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Merge:
    """One memory that now stands behind another, and why."""

    kept: str
    merged: str
    reason: str
    overlap: float
    cosine: float | None = None


def merge_into_older(
    store: Store, vectors: VectorIndex, model: str, entries: Sequence[Embedded], now: datetime, policy: Limits
) -> list[Merge]:
    """The second duplicate check, when embeddings arrive: close in meaning, and nothing in the words speaks against."""
    rows = {one.id: one.vectors[0] for one in entries if one.vectors is not None and not one.passages}
    merges: list[Merge] = []
    for memory in store.records.fetch(list(rows)):
        found = _older_twin(store, vectors, model, memory, rows[memory.id], policy.cosine)
        if found is not None and apply(store, found[0], [(memory, found[1])], now):
            merges.append(found[1])
    return merges


def _older_twin(
    store: Store, vectors: VectorIndex, model: str, memory: Memory, vector: Vector, cosine: float
) -> tuple[Memory, Merge] | None:
    if memory.pinned or memory.type == EPISODE or not similarity.comparable(memory.content):
        return None
    wanted = Filter(
        namespace=memory.scope.namespace,
        project=memory.scope.project,
        without_types=(EPISODE,),
        exclude=frozenset((memory.id,)),
    )
    scores = {hit.id: hit.score for hit in vectors.search(model, vector, wanted, NEIGHBOURS, minimum=cosine)}
    for other in store.records.fetch(list(scores)):
        older = (other.created_at, other.id) < (memory.created_at, memory.id)
        if not older or scores[other.id] <= cosine or not may_be_one(memory, other):
            continue
        verdict = similarity.compare(memory.content, other.content, loose=True)
        if verdict.same and not involved(store, [memory.id]) and other.id not in superseded(store, [other.id]):
            score = scores[other.id]
            return other, Merge(other.id, memory.id, f"cosine {score:.2f}", verdict.overlap, score)
    return None


def superseded(store: Store, ids: Sequence[str]) -> set[str]:
    """Which of these memories something else stands in front of."""
    links = store.links.links(ids, ("supersedes",)) if store.links is not None else []
    return {link.target for link in links} & set(ids)


def involved(store: Store, ids: Sequence[str]) -> bool:
    """Whether one of these memories supersedes or is superseded: somebody has decided about it already."""
    return store.links is not None and bool(store.links.links(ids, ("supersedes",)))


def _decided_on_others(store: Store, memories: Sequence[Memory]) -> bool:
    """Whether one of them has changed or been superseded since it was compared, which may be a while ago."""
    versions = {memory.id: memory.version for memory in memories}
    held = {memory.id: memory.version for memory in store.records.fetch(list(versions))}
    return held != versions or bool(superseded(store, list(versions)))


def apply(store: Store, head: Memory, others: Sequence[tuple[Memory, Merge]], now: datetime) -> bool:
    """Let the head supersede the others and take over what they add, in one transaction; False if it lost a race."""
    if _decided_on_others(store, [head, *(other for other, _ in others)]):
        return False
    confirmed = head
    for other, _ in others:
        confirmed = strengthened(confirmed, other, now)
    changes: list[Change] = [AddLink(Link(head.id, "supersedes", other.id, now)) for other, _ in others]
    if confirmed != head:
        changes.insert(0, Put(confirmed, expected_version=head.version))
    try:
        store.records.write(changes)
    except (Conflict, NotFound):
        return False
    for _, merge in others:
        log.info("merged %s into %s: %s", merge.merged, merge.kept, merge.reason)
    return True
