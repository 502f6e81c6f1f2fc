"""Consolidation: what write-time checks missed is merged by real similarity. It has a dry run and loses nothing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.domain.changes import SetSetting
from recollect.domain.errors import ModelUnavailable
from recollect.domain.memory import DEFAULT_NAMESPACE, EPISODE, Memory, same_text
from recollect.domain.question import Filter, check_amount
from recollect.legs.lookalikes import candidates
from recollect.ports import Embedder, Store
from recollect.stages import similarity
from recollect.stages.merging import may_be_one, worth
from recollect.stages.wording import read
from recollect.upkeep.merging import Merge, apply, superseded

MARK = "consolidated_to"
"""The live setting that tells how far a namespace, named behind it, has been looked at."""
PAGE = 500
MAX_ALIKE = 200
"""Of memories with the same words, so many at a time are compared with one another."""

Buckets: TypeAlias = dict[bytes, dict[str, None]]
Cluster: TypeAlias = tuple[Memory, list[tuple[Memory, Merge]]]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Every merge that was made (or would be, in a dry run). `cursor`: the last id, where there is more behind it."""

    merges: tuple[Merge, ...] = ()
    examined: int = 0
    dry_run: bool = False
    cursor: str | None = None
    lost_races: int = 0


def consolidate(
    store: Store,
    embedder: Embedder | None = None,
    *,
    now: datetime,
    dry_run: bool = False,
    limit: int = 10_000,
    namespace: str = DEFAULT_NAMESPACE,
    cosine: float = similarity.COSINE,
    progress: Callable[[int, int], None] | None = None,
) -> Consolidation:
    """Merge memories of one namespace that say the same: the best of them supersedes the others.

    The best is pinned, else the most trusted, else the newest; a pinned memory never steps behind another. At most
    `limit` memories are looked at and compared with one another and, if there are more, with the few of the whole
    namespace that share their rarest words; the next run goes on behind them, and begins anew after the end. With an
    embedder, word families and acronyms are bridged where cosine agrees.
    """
    check_amount(limit)
    mark = f"{MARK} {namespace}"
    start: str | None = store.care.settings().get(mark)
    buckets, examined, cursor = _look(store, namespace, limit, start)
    if start is not None and not examined:  # all that was behind the mark is gone
        buckets, examined, cursor = _look(store, namespace, limit, None)
    alike = [
        list(ids)[at : at + MAX_ALIKE]
        for ids in buckets.values()
        if len(ids) > 1
        for at in range(0, len(ids), MAX_ALIKE)
    ]
    merges: list[Merge] = []
    lost = 0
    for place, ids in enumerate(alike, start=1):
        for head, others in _clusters(store.records.fetch(ids), embedder, cosine):
            if dry_run or apply(store, head, others, now):
                merges += [merge for _, merge in others]
            else:
                lost += 1
        if progress is not None:
            progress(place, len(alike))
    if not dry_run and cursor != start:  # last: what was not merged is looked at again
        store.records.write([SetSetting(mark, cursor)])
    return Consolidation(tuple(merges), examined, dry_run, cursor, lost)


def _look(store: Store, namespace: str, limit: int, cursor: str | None) -> tuple[Buckets, int, str | None]:
    """The ids of up to `limit` memories by what they may say, how many were looked at, and where to go on."""
    buckets: Buckets = defaultdict(dict)
    examined = 0
    in_parts = cursor is not None or store.care.size().namespaces.get(namespace, 0) > limit
    # One more than the limit is asked for, to know whether there is anything to go on with.
    while page := store.records.scan(Filter(namespace=namespace), "id", min(PAGE, limit - examined) or 1, cursor):
        if examined == limit:
            return buckets, examined, cursor
        examined, cursor = examined + len(page), page[-1].id
        gone = superseded(store, [memory.id for memory in page])
        facts = [memory for memory in page if memory.id not in gone and memory.type != EPISODE]
        outside = {memory.id: _outside(store, memory) for memory in facts} if in_parts else {}
        gone = superseded(store, sorted({id for ids in outside.values() for id in ids}))
        for memory in facts:
            others = [id for id in outside.get(memory.id, ()) if id not in gone]
            buckets[_bucket(memory)].update(dict.fromkeys([memory.id, *others]))
    return buckets, examined, None


def _outside(store: Store, memory: Memory) -> list[str]:
    """Who may become one with a memory, wherever in the namespace: a few, so that a run stays bounded."""
    if not similarity.comparable(memory.content):
        scope = memory.scope
        same = store.records.lookup(scope.namespace, content=memory.content, project=scope.project).content_id
        found = store.records.fetch([] if same is None else [same])
    else:
        found = [] if store.text is None else candidates(store, store.text, memory)
    own = _bucket(memory)
    return [other.id for other in found if may_be_one(memory, other) and _bucket(other) == own]


def _bucket(memory: Memory) -> bytes:
    """Memories in different buckets cannot become one: this keeps the work linear."""
    if similarity.comparable(memory.content):
        words = similarity.signature(read(memory.content))
    else:
        words = same_text(memory.content)
    scope = memory.scope
    session = scope.session if scope.project is None else None  # as in `may_be_one`
    return hashlib.sha256(repr((scope.project, session, memory.sensitive, words)).encode()).digest()


def _clusters(memories: Sequence[Memory], embedder: Embedder | None, cosine: float) -> Iterator[Cluster]:
    """Best first, each memory joins the first better one that says the same, itself and not through others."""
    heads: list[Cluster] = []
    for memory in sorted(memories, key=worth, reverse=True):
        joined = False
        for head, others in heads:
            merge = None if memory.pinned else _merge(head, memory, embedder, cosine)
            if merge is not None:
                others.append((memory, merge))
                joined = True
                break
        if not joined:
            heads.append((memory, []))
    return (cluster for cluster in heads if cluster[1])


def _merge(head: Memory, memory: Memory, embedder: Embedder | None, cosine: float) -> Merge | None:
    if not may_be_one(memory, head):
        return None
    verdict = similarity.compare(head.content, memory.content)
    if verdict.same:
        return Merge(head.id, memory.id, verdict.reason, verdict.overlap)
    if embedder is None or head.sensitive:
        return None
    verdict = similarity.compare(head.content, memory.content, loose=True)
    if not verdict.same:
        return None
    try:
        vectors = embedder.embed_documents([head.content, memory.content])
    except ModelUnavailable:
        return None  # words alone must do
    score = float(vectors[0] @ vectors[1])
    return Merge(head.id, memory.id, f"cosine {score:.2f}", verdict.overlap, score) if score > cosine else None
