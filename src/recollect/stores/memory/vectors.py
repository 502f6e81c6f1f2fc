"""Vectors by comparing with every one of them, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from recollect.domain.memory import content_hash
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit, Passage
from recollect.ports import Embedded, EmbeddingProgress, Matrix, Pending, Vector
from recollect.stores.memory.contents import Contents, Shelf, Vectors
from recollect.stores.refusals import sound_matrix, wrong_dimension


class MemoryVectors:
    """The VectorIndex port."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        contents = self._contents()
        hits = _nearest(contents, model, vector, (memory.id for memory in contents.in_scope(filter)))
        close = [hit for hit in hits if minimum is None or hit.score >= minimum]
        return sorted(close, key=lambda hit: (-hit.score, hit.id))[: max(limit, 0)]

    def similarities(self, model: str, vector: Vector, ids: Sequence[str]) -> dict[str, Hit]:
        return {hit.id: hit for hit in _nearest(self._contents(), model, vector, ids)}

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        with self._shelf.lock:
            draft = self._shelf.contents.copy()
            for entry in entries:
                _check(entry, _dimension(draft, model))
                if _is_current(entry, draft):
                    _keep(model, entry, draft)
            self._shelf.contents = draft

    def missing(self, model: str, limit: int) -> list[Pending]:
        contents = self._contents()
        waiting = [
            Pending(id, memory.content, content_hash(memory.content), contents.failures.get((model, id), 0), row.apart)
            for id, row in contents.rows.items()
            for memory in [row.memory]
            if (model, id) not in contents.vectors and not memory.sensitive
        ]
        # The sort is stable: among equal attempts the order of insertion stays.
        return sorted(waiting, key=lambda pending: pending.attempts)[: max(limit, 0)]

    def progress(self, model: str) -> EmbeddingProgress:
        contents = self._contents()
        waiting = self.missing(model, len(contents.rows))
        return EmbeddingProgress(
            done=sum(model == made_by for made_by, _ in contents.vectors),
            pending=sum(pending.attempts == 0 for pending in waiting),
            failed=sum(pending.attempts > 0 for pending in waiting),
        )

    def models(self) -> list[str]:
        return sorted({model for model, _ in self._contents().vectors})

    def stored(self, model: str, ids: Sequence[str]) -> list[Embedded]:
        contents = self._contents()
        return [
            Embedded(id, content_hash(contents.rows[id].memory.content), kept.matrix.copy(), kept.passages)
            for id in ids
            if (kept := contents.vectors.get((model, id))) is not None
        ]

    def forget(self, model: str) -> None:
        with self._shelf.lock:
            draft = self._shelf.contents.copy()
            draft.vectors = {key: kept for key, kept in draft.vectors.items() if key[0] != model}
            draft.failures = {key: kept for key, kept in draft.failures.items() if key[0] != model}
            self._shelf.contents = draft

    def _contents(self) -> Contents:
        with self._shelf.lock:
            return self._shelf.contents


def _nearest(contents: Contents, model: str, vector: Vector, ids: Iterable[str]) -> list[Hit]:
    """The cosine of each of these memories that has vectors of the model, at its best passage."""
    dimension = _dimension(contents, model)
    if dimension is not None and vector.shape != (dimension,):
        raise wrong_dimension(vector.shape[-1], dimension)
    return [_best(id, contents.vectors[model, id], vector) for id in ids if (model, id) in contents.vectors]


def _best(id: str, vectors: Vectors, vector: Vector) -> Hit:
    scores = [_dot(row, vector) for row in vectors.matrix]
    # max() takes the first of equals, so the earlier passage wins.
    best = max(range(len(scores)), key=scores.__getitem__)
    return Hit(id, scores[best], Passage(*vectors.passages[best]) if vectors.passages else None)


def _dot(one: Vector, other: Vector) -> float:
    """The dot product to the last bit: products of single floats are exact in doubles, and fsum rounds once."""
    products = one.astype(np.float64) * other.astype(np.float64)
    return math.fsum(products.tolist())


def _dimension(contents: Contents, model: str) -> int | None:
    """How long the vectors of a model are; None as long as there are none."""
    return next((kept.matrix.shape[1] for key, kept in contents.vectors.items() if key[0] == model), None)


def _check(entry: Embedded, dimension: int | None) -> None:
    if entry.vectors is None:
        return
    matrix = sound_matrix(entry, entry.vectors)
    if dimension not in (None, matrix.shape[1]):
        raise wrong_dimension(matrix.shape[1], dimension)


def _is_current(entry: Embedded, contents: Contents) -> bool:
    row = contents.rows.get(entry.id)
    return row is not None and not row.memory.sensitive and content_hash(row.memory.content) == entry.content_hash


def _keep(model: str, entry: Embedded, contents: Contents) -> None:
    key = (model, entry.id)
    if entry.vectors is None:
        contents.failures[key] = contents.failures.get(key, 0) + 1
        return
    matrix: Matrix = np.array(entry.vectors, dtype=np.float32)
    contents.vectors[key] = Vectors(matrix, entry.passages)
