"""Vectors in the file are the truth; the scan index of a process is derived from them and follows the vector log."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import Corrupt
from recollect.domain.memory import content_hash
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit, Passage
from recollect.ports import Embedded, EmbeddingProgress, Matrix, Pending, Vector
from recollect.stores.refusals import sound_matrix, wrong_dimension
from recollect.stores.sqlite.connection import Connection, Readers, one, rows
from recollect.stores.sqlite.filters import conditions
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.outbox import (
    MAX_PASSAGES,
    PASSAGE_BITS,
    ROW_BITS,
    forget,
    log,
    model_number,
    place,
    postpone,
    progress,
    register,
    waiting,
)
from recollect.stores.sqlite.records import run
from recollect.stores.sqlite.scan import Scans, note_saved
from recollect.stores.sqlite.writer import Writer

ROW_MASK = (1 << ROW_BITS) - 1

COLUMNS = "v.place, v.start, v.stop, v.checksum, v.data"
AT = (
    f"SELECT {COLUMNS}, m.id FROM json_each(?) j CROSS JOIN vectors v ON v.place = j.value"
    f" CROSS JOIN memories m ON m.row = (v.place >> {PASSAGE_BITS}) & {ROW_MASK} WHERE "
)
"""The vectors at some places, and whose they are, where the memories keep what follows."""
OF = (
    f"SELECT {COLUMNS}, m.id FROM json_each(?) j CROSS JOIN memories m ON m.id = j.value"
    f" CROSS JOIN vectors v ON v.place = ? + (m.row << {PASSAGE_BITS})"
)
"""The first vector of some memories."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the last search found: the same question is asked for the cosines of its candidates right after."""

    state: tuple[int, int, bytes] = (0, 0, b"")
    hits: Mapping[str, Hit] = field(default_factory=dict[str, Hit])


def _state(connection: Connection, model: int, vector: Vector) -> tuple[int, int, bytes]:
    """Equal states have equal cosines: model, last change of any vector, question."""
    return model, one(connection, "SELECT max(sequence) FROM vector_log") or 0, vector.tobytes()


class SqliteVectors:
    """The VectorIndex port."""

    def __init__(
        self, readers: Readers, writer: Writer | None, scans: Scans, clock: Callable[[], float] = time.time
    ) -> None:
        self._readers = readers
        self._writer = writer
        self._scans = scans
        self._clock = clock
        self._judged = _Judged()

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        with self._readers.reading() as connection:
            number = _checked(connection, model, vector)
            if number is None or limit <= 0:
                return []
            places, scope = self._scans.nearest(connection, number, vector, filter, limit), conditions(filter)
            hits = _hits(connection, vector, rows(connection, AT + scope.sql, (json.dumps(places), *scope.values)))
            self._judged = _Judged(_state(connection, number, vector), {hit.id: hit for hit in hits})
            self._save_built(connection)
        close = [hit for hit in hits if minimum is None or hit.score >= minimum]
        return sorted(close, key=lambda hit: (-hit.score, hit.id))[:limit]

    def _save_built(self, connection: Connection) -> None:
        """Keep an index that took seconds to build."""
        if self._writer is None:
            return
        purges, saved = counter(connection, "purges"), self._scans.save(connection, unsaved_only=True)
        if saved:
            self._writer.offer(lambda writing: note_saved(writing, saved, purges))

    def similarities(self, model: str, vector: Vector, ids: Sequence[str]) -> dict[str, Hit]:
        with self._readers.reading() as connection:
            number = _checked(connection, model, vector)
            if number is None or not ids:
                return {}
            judged = self._judged
            known = judged.hits if judged.state == _state(connection, number, vector) else dict[str, Hit]()
            unknown = [id for id in ids if id not in known]
            found = rows(connection, OF, (json.dumps(unknown), place(number, 0))) if unknown else []
            fresh = {hit.id: hit for hit in _hits(connection, vector, found)}
        return {id: hit for id in ids if (hit := known.get(id) or fresh.get(id)) is not None}

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        now_ms = int(self._clock() * 1000)

        def work(writing: Writing) -> None:
            number = register(writing, model)
            for entry in entries:
                _store(writing, number, entry, now_ms)

        if entries:
            run(self._writer, work)

    def missing(self, model: str, limit: int) -> list[Pending]:
        if limit <= 0:
            return []
        with self._readers.borrow() as connection:
            number = model_number(connection, model)
        if number is None and self._writer is not None:
            number = self._writer.run(lambda writing: register(writing, model))
        with self._readers.borrow() as connection:
            return waiting(connection, number, limit, int(self._clock() * 1000))

    def progress(self, model: str) -> EmbeddingProgress:
        with self._readers.reading() as connection:
            return progress(connection, model)

    def models(self) -> list[str]:
        with self._readers.reading() as connection:
            return [name for (name,) in rows(connection, "SELECT name FROM models WHERE done > 0 ORDER BY name")]

    def stored(self, model: str, ids: Sequence[str]) -> list[Embedded]:
        with self._readers.reading() as connection:
            number = model_number(connection, model)
            if number is None or not ids:
                return []
            known = rows(
                connection,
                "SELECT id, row, content FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND embedded > 0",
                (json.dumps(list(ids)),),
            )
            vectors: dict[int, list[tuple[Any, ...]]] = {}
            for vector in _sound_rows(_passages(connection, [place(number, row) for _, row, _ in known])):
                vectors.setdefault((vector[0] >> PASSAGE_BITS) & ROW_MASK, []).append(vector)
        made = {id: _embedded(id, content, vectors[row]) for id, row, content in known if row in vectors}
        return [made[id] for id in ids if id in made]

    def forget(self, model: str) -> None:
        run(self._writer, lambda writing: forget(writing, model))


def _embedded(id: str, content: str, vectors: Sequence[tuple[Any, ...]]) -> Embedded:
    """The vectors of one memory, from its rows in the order of their passages."""
    matrix = np.frombuffer(b"".join([row[4] for row in vectors]), dtype="<f4").reshape(len(vectors), -1)
    passages = tuple((start, stop) for _, start, stop, _, _ in vectors if start is not None)
    return Embedded(id, content_hash(content), matrix, passages)


def _checked(connection: Connection, model: str, vector: Vector) -> int | None:
    """The model's number; a vector that cannot be the model's is refused."""
    known = one(connection, "SELECT model, dimension FROM models WHERE name = ?", (model,))
    if known is None or known[1] is None:
        return None
    if vector.shape != (known[1],):
        raise wrong_dimension(vector.shape[-1] if vector.ndim else 0, known[1])
    return known[0]


def _store(writing: Writing, model: int, entry: Embedded, now_ms: int) -> None:
    connection = writing.connection
    matrix = None if entry.vectors is None else _sound(connection, model, entry, entry.vectors)
    found = one(connection, "SELECT row, content, embedded FROM memories WHERE id = ? AND NOT sensitive", (entry.id,))
    if found is None or content_hash(found[1]) != entry.content_hash:
        return
    row: int = found[0]
    if matrix is None:
        postpone(writing, model, row, now_ms)
        return
    connection.execute(
        "DELETE FROM vectors WHERE place BETWEEN ? AND ?", (place(model, row), place(model, row, MAX_PASSAGES - 1))
    )
    if not connection.changes():
        writing.ledger.done[model] += 1
        connection.execute("UPDATE memories SET embedded = embedded + 1 WHERE row = ?", (row,))
    spans = entry.passages or ((None, None),)
    values = [
        _vector_row(place(model, row, n), span, data.tobytes()) for n, (span, data) in enumerate(zip(spans, matrix))
    ]
    connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?, ?)", values)
    connection.execute("DELETE FROM outbox WHERE model = ? AND row = ?", (model, row))
    log(writing, model, row)


def _sound(connection: Connection, model: int, entry: Embedded, given: Matrix) -> NDArray[np.float32]:
    """The matrix as it is stored, or InvalidInput."""
    matrix = sound_matrix(entry, given)
    dimension = one(connection, "SELECT dimension FROM models WHERE model = ?", (model,))
    if dimension is None:
        connection.execute("UPDATE models SET dimension = ? WHERE model = ?", (matrix.shape[1], model))
    elif dimension != matrix.shape[1]:
        raise wrong_dimension(matrix.shape[1], dimension)
    return matrix


def _vector_row(key: int, span: tuple[int | None, int | None], data: bytes) -> tuple[Any, ...]:
    return (key, *span, vector_checksum(key, *span, data), data)


def vector_checksum(key: int, start: int | None, stop: int | None, data: bytes) -> int:
    """CRC-32 over all columns of a vector."""
    facts = b"(%d, None, None)" % key if start is None and stop is None else repr((key, start, stop)).encode()
    return zlib.crc32(data, zlib.crc32(facts))


def _hits(connection: Connection, vector: Vector, found: list[tuple[Any, ...]]) -> list[Hit]:
    """The exact cosine of each memory, at its best passage: of a memory in passages all are read, whichever was found.

    `found` are rows of the table of vectors, each with the id of its memory.
    """
    in_passages = {row[0] & ~(MAX_PASSAGES - 1): row[5] for row in found if row[1] is not None}
    if in_passages:
        others = [(*row, in_passages[row[0] & ~(MAX_PASSAGES - 1)]) for row in _passages(connection, in_passages)]
        found = [*(row for row in found if row[1] is None), *others]
    if not found:
        return []
    matrix = np.frombuffer(b"".join([row[4] for row in _sound_rows(found)]), dtype="<f4").reshape(len(found), -1)
    # Row by row: the sum must not depend on where in the matrix a vector stands, or ties would break by chance.
    scores = np.vecdot(matrix.astype(np.float64), vector.astype(np.float64))
    best: dict[str, Hit] = {}
    for (_, start, stop, _, _, id), score in zip(found, scores.tolist()):
        if id not in best or score > best[id].score:
            best[id] = Hit(id, score, None if start is None else Passage(start, stop))
    return list(best.values())


def _sound_rows(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """These rows of the table of vectors, when every one of them is as it was written."""
    if any(vector_checksum(row[0], row[1], row[2], row[4]) != row[3] for row in found):
        raise Corrupt("a vector fails its checksum", "run doctor with repair: it is made again")
    return found


def _passages(connection: Connection, firsts: Iterable[int]) -> list[tuple[Any, ...]]:
    """All vectors of some memories, given by their first places."""
    sql = f"SELECT {COLUMNS} FROM json_each(?) j CROSS JOIN vectors v WHERE v.place BETWEEN j.value AND j.value + ?"
    return rows(connection, sql, (json.dumps(list(firsts)), MAX_PASSAGES - 1))
