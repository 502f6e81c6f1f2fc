"""The outbox: memories that wait for their vectors get them, in batches, without one bad text holding up the rest."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate

import numpy as np

from recollect.domain.errors import ModelUnavailable, StoreUnavailable
from recollect.ports import Embedded, Embedder, Matrix, Pending, Store, VectorIndex
from recollect.stages import passages
from recollect.upkeep.conversations import View, conversation_views
from recollect.upkeep.merging import Limits, Merge, merge_into_older

Progress = Callable[[int, int], None]
"""Told what is done, and of how much."""

log = logging.getLogger(__name__)

BATCH = 32
MAX_FAILURES = 1000
MAX_PASSAGES = 512
MAX_RENEWALS = 10
PROBE = "Is anybody there?"


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What a run did. `stopped` tells why it ended before the outbox was empty."""

    embedded: int = 0
    failed: int = 0
    remaining: int = 0
    merged: tuple[Merge, ...] = ()
    stopped: str | None = None


@dataclass(slots=True)
class _Run:
    embedded: int = 0
    failed: int = 0
    tried: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    merged: list[Merge] = field(default_factory=list[Merge])


def embed_backlog(
    store: Store,
    embedder: Embedder | None,
    *,
    now: datetime,
    policy: Limits,
    batch: int = BATCH,
    budget_seconds: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> EmbedReport:
    """Embed what waits, oldest first, until nothing is left, the time is up or `stop` says so.

    A model that is down ends the run and changes nothing. A text that the model cannot take is recorded as failed
    and tried again in a later run. `progress` is told (done, known so far) after each batch. New memories that mean
    the same as an older one are merged by a link, where the policy says so and they were not put apart.
    """
    if embedder is None or store.vectors is None:
        return EmbedReport(stopped="no embedder")
    run = _Run()
    known = 0
    if progress is not None:
        total = store.vectors.progress(embedder.id)
        known = total.pending + total.failed
    deadline = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    while (stopped := _must_stop(run, deadline, stop)) is None:
        waiting = _next(store.vectors, embedder.id, run, batch)
        if not waiting:
            break
        views = conversation_views(store, waiting)
        entries = embed(embedder, waiting, views)
        if entries is None:
            stopped = "the model is unavailable"
            break
        _keep(store.vectors, embedder.id, entries, run)
        if policy.dedupe:
            apart = {one.id for one in waiting if one.apart}
            mergeable = [one for one in entries if one.id not in apart]
            run.merged += _merged(store, store.vectors, embedder.id, mergeable, now, policy)
        _renew(store, store.vectors, embedder, waiting, views)
        if progress is not None:
            progress(run.embedded, max(known, run.embedded))
    left = store.vectors.progress(embedder.id)
    return EmbedReport(run.embedded, run.failed, left.pending + left.failed, tuple(run.merged), stopped)


def _must_stop(run: _Run, deadline: float, stop: Callable[[], bool] | None) -> str | None:
    if stop is not None and stop():
        return "asked to stop"
    if run.failed >= MAX_FAILURES:
        return "too many failures"
    # The first batch is always made, so that every call gets further.
    if run.tried and time.monotonic() >= deadline:
        return "out of time"
    return None


def _next(vectors: VectorIndex, model: str, run: _Run, batch: int) -> list[Pending]:
    """The next texts that this run has not tried yet; those that failed are listed again by the store."""
    listed = vectors.missing(model, batch + run.failed)
    fresh = [one for one in listed if (one.id, one.content_hash) not in run.tried][:batch]
    run.tried.update((one.id, one.content_hash) for one in fresh)
    return fresh


def _keep(vectors: VectorIndex, model: str, entries: Sequence[Embedded], run: _Run) -> None:
    vectors.put(model, entries)
    run.embedded += sum(one.vectors is not None for one in entries)
    run.failed += sum(one.vectors is None for one in entries)


def _merged(
    store: Store, vectors: VectorIndex, model: str, entries: Sequence[Embedded], now: datetime, policy: Limits
) -> list[Merge]:
    try:
        return merge_into_older(store, vectors, model, entries, now, policy)
    except StoreUnavailable as error:  # vectors may be searched elsewhere; consolidation compares what is missed
        log.info("%d memories were not compared with older ones: %s", len(entries), error)
        return []


def _renew(
    store: Store, vectors: VectorIndex, embedder: Embedder, waiting: Sequence[Pending], views: Mapping[str, View]
) -> None:
    """Embed turns again whose conversation changed meanwhile: a store drops old views, but not those still to come."""
    for _ in range(MAX_RENEWALS):
        current = conversation_views(store, waiting)
        waiting = [one for one in waiting if one.id in current and current[one.id] != views.get(one.id)]
        entries = embed(embedder, waiting, current) if waiting else None
        if entries is None:
            return
        vectors.put(embedder.id, entries)
        views = current


def embed(
    embedder: Embedder, waiting: Sequence[Pending], views: Mapping[str, View] | None = None
) -> list[Embedded] | None:
    """The vectors of each text, a failure for each that the model cannot take; None when the model is down."""
    try:
        cut = [_passages(embedder, one.content) for one in waiting]
        rows = _vectors_of_lots(embedder, [[text for _, text in texts] for texts in cut])
        entries = [_entry(one, texts, own) for one, texts, own in zip(waiting, cut, rows)]
    except Exception as error:
        log.info("a batch of %d could not be embedded: %s", len(waiting), type(error).__name__)
        if not _is_alive(embedder):
            return None
        entries = [_alone(embedder, one) for one in waiting]
    return _with_views(embedder, waiting, entries, views) if views else entries


def drop_vectors(store: Store, embedder: Embedder | None) -> None:
    """Take away all vectors of the embedder, so that every memory waits for it again."""
    if embedder is not None and store.vectors is not None:
        store.vectors.forget(embedder.id)


def _with_views(
    embedder: Embedder, waiting: Sequence[Pending], entries: Sequence[Embedded], views: Mapping[str, View]
) -> list[Embedded] | None:
    """The entries, those of turns with their views, which are embedded together; None when the model is down."""
    turns = {
        entry.id: (one.content, _thoughts(one.content, views[one.id]), views[one.id].text)
        for one, entry in zip(waiting, entries)
        if one.id in views and entry.vectors is not None and len(entry.vectors) == 1
    }
    lots = [[text, *(content[start:end] for start, end in own)] for content, own, text in turns.values()]
    try:
        rows: Sequence[Matrix | None] = _vectors_of_lots(embedder, lots)
    except Exception as error:
        log.info("the views of %d memories could not be embedded: %s", len(lots), type(error).__name__)
        if not _is_alive(embedder):
            return None
        rows = [_vectors_or_none(embedder, lot) for lot in lots]
    seen = dict(zip(turns, rows))
    return [
        entry if (own := seen.get(entry.id)) is None else _with_view(entry, *turns[entry.id][:2], own)
        for entry in entries
    ]


def _thoughts(content: str, view: View) -> list[tuple[int, int]]:
    """Where the thoughts of a user stand who has said several at once."""
    found = passages.thoughts(content) if view.by_user else []
    return found if len(found) > 1 else []


def _with_view(entry: Embedded, content: str, thoughts: Sequence[tuple[int, int]], rows: Matrix) -> Embedded:
    """The mean of a turn's vector and that of the turn in its conversation: two views for the price of one row.

    It is left as it is: its product with a question is the mean of the two cosines, which its own cosine is not.
    Where a user has said several things at once, each of them has a row of its own besides.
    """
    assert entry.vectors is not None
    whole = (entry.vectors + rows[:1]) / 2
    stretches = ((0, len(content)), *thoughts) if thoughts else ()
    return replace(entry, vectors=np.concatenate([whole, rows[1:]]), passages=stretches)


def _vectors_or_none(embedder: Embedder, texts: Sequence[str]) -> Matrix | None:
    try:
        return _vectors(embedder, texts)
    except Exception as error:  # the turn alone is worth keeping
        log.info("the view of a memory could not be embedded: %s", type(error).__name__)
        return None


def _alone(embedder: Embedder, one: Pending) -> Embedded:
    try:
        texts = _passages(embedder, one.content)
        return _entry(one, texts, _vectors(embedder, [text for _, text in texts]))
    except Exception as error:  # whatever a text does to a model, it must not hold up the others
        log.warning("memory %s could not be embedded: %s", one.id, type(error).__name__)
        return Embedded(one.id, one.content_hash, None, error=type(error).__name__)


def _entry(one: Pending, texts: Sequence[tuple[tuple[int, int], str]], matrix: Matrix) -> Embedded:
    stretches = tuple(stretch for stretch, _ in texts) if len(texts) > 1 else ()
    return Embedded(one.id, one.content_hash, matrix, stretches)


def _passages(embedder: Embedder, content: str) -> list[tuple[tuple[int, int], str]]:
    stretches = passages.of_memory(content, embedder.max_tokens, embedder.count_tokens, MAX_PASSAGES)
    return [((start, end), content[start:end]) for start, end in stretches]


def _vectors(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """One finite row for each text, or ModelUnavailable: nonsense is never stored."""
    matrix = embedder.embed_documents(texts)
    if matrix.shape != (len(texts), embedder.dimension) or not math.isfinite(float(abs(matrix).sum())):
        raise ModelUnavailable("the embedder answered with other than one finite vector for each text")
    return matrix


def _vectors_of_lots(embedder: Embedder, lots: Sequence[Sequence[str]]) -> list[Matrix]:
    """The vectors of several lots of texts, asked for in one go."""
    ends = list(accumulate(map(len, lots)))
    matrix = _vectors(embedder, [text for lot in lots for text in lot]) if lots else None
    return [] if matrix is None else np.split(matrix, ends[:-1])


def _is_alive(embedder: Embedder) -> bool:
    """Whether the model still embeds a harmless text: only then was it the batch that was bad."""
    try:
        _vectors(embedder, [PROBE])
    except Exception:
        return False
    return True
