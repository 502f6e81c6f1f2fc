"""Vectors in the file are the truth; the scan index of a process is derived from them and follows the vector log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import Corrupt
from recollect.domain.memory import content_hash
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit, Passage
from recollect.ports import Embedded, EmbeddingProgress, Matrix, Pending, Vector
from recollect.stores.checksums import vector_checksum
from recollect.stores.places import ROW_MASK, of_memory, place, row_of
from recollect.stores.refusals import MAX_PASSAGES, PASSAGE_BITS, sound_matrix, wrong_dimension
from recollect.stores.sqlite.connection import Connection, Readers, one, rows, whole
from recollect.stores.sqlite.filters import conditions
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.outbox import (
    enter_some,
    entered_up_to,
    forget_some,
    log,
    model_number,
    postpone,
    progress,
    register,
    waiting,
)
from recollect.stores.sqlite.records import run
from recollect.stores.sqlite.scan import Scans, note_saved
from recollect.stores.sqlite.writer import Writer

GATHERED = (
    "SELECT json_group_array(json_array(v.place, v.start, v.stop, v.checksum{})),"
    " CAST(group_concat(v.data, '') AS BLOB) FROM json_each(?) j"
)
"""All vectors in one row: after every row SQLite asks for the interpreter, and in a recall two threads read."""
AT = (
    f"{GATHERED.format(', m.id')} CROSS JOIN vectors v ON v.place = j.value"
    f" CROSS JOIN memories m ON m.row = (v.place >> {PASSAGE_BITS}) & {ROW_MASK} WHERE "
)
"""The vectors at some places, and whose they are, where the memories keep what follows."""
OF = (
    f"{GATHERED.format(', m.id')} CROSS JOIN memories m ON m.id = j.value"
    f" CROSS JOIN vectors v ON v.place = ? + (m.row << {PASSAGE_BITS})"
)
"""The first vector of some memories, and whose they are."""
WHOLE = f"{GATHERED.format('')} CROSS JOIN vectors v WHERE v.place BETWEEN j.value AND j.value + ?"
"""All vectors of some memories, given by their first places."""


class Fact(NamedTuple):
    """What is kept beside a vector, and whose it is where that was asked."""

    place: int
    start: int | None
    stop: int | None
    checksum: int
    id: str = ""


class Gathered(NamedTuple):
    """Vectors as they are in the file: a row of the matrix for each."""

    facts: list[Fact]
    matrix: NDArray[np.float32]


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
        self._entered: set[str] = set()
        """The models that are asked for every memory, as far as this process has seen."""

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        with self._readers.reading() as connection:
            number = _checked(connection, model, vector)
            if number is None or limit <= 0:
                return []
            places, scope = self._scans.nearest(connection, number, vector, filter, limit), conditions(filter)
            found = _gathered(connection, AT + scope.sql, (json.dumps(places), *scope.values))
            hits = _hits(connection, vector, found)
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
            fresh = dict[str, Hit]()
            if unknown:
                found = _gathered(connection, OF, (json.dumps(unknown), place(number, 0)))
                fresh = {hit.id: hit for hit in _hits(connection, vector, found)}
        return {id: hit for id in ids if (hit := known.get(id) or fresh.get(id)) is not None}

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        now_ms = int(self._clock() * 1000)

        def work(writing: Writing) -> None:
            number = register(writing, model)
            for entry in entries:
                _store(writing, number, entry, now_ms)

        if entries:
            self._enter_all(model)
            run(self._writer, work)

    def missing(self, model: str, limit: int) -> list[Pending]:
        if limit <= 0:
            return []
        self._enter_all(model)
        with self._readers.borrow() as connection:
            return waiting(connection, model_number(connection, model), limit, int(self._clock() * 1000))

    def _enter_all(self, model: str) -> None:
        """Ask a model for every memory, in steps between which others can write; once it is, it stays so."""
        if self._writer is None or model in self._entered:
            return
        with self._readers.borrow() as connection:
            number = model_number(connection, model)
            is_left = number is None or entered_up_to(connection, number) is not None
        while is_left:
            is_left = self._writer.run(partial(enter_some, model=model))
        self._entered.add(model)

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
            facts, matrix = _passages(connection, [place(number, row) for _, row, _ in known])
        owned: dict[int, list[int]] = {}
        for at, fact in enumerate(facts):
            owned.setdefault(row_of(fact.place), []).append(at)
        made = dict[str, Embedded]()
        for id, row, content in known:
            if row in owned:
                spans = [(facts[at].start, facts[at].stop) for at in owned[row]]
                passages = tuple((start, stop) for start, stop in spans if start is not None and stop is not None)
                made[id] = Embedded(id, content_hash(content), matrix[owned[row]], passages)
        return [made[id] for id in ids if id in made]

    def forget(self, model: str) -> None:
        last: int | None = 0
        while last is not None:
            last = run(self._writer, partial(forget_some, model=model, after=last))


def _checked(connection: Connection, model: str, vector: Vector) -> int | None:
    """The model's number; a vector that cannot be the model's is refused."""
    known = one(connection, "SELECT model, dimension FROM models WHERE name = ?", (model,))
    if known is None or known[1] is None:
        return None
    if vector.shape != (whole(known[1]),):
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
    connection.execute("DELETE FROM vectors WHERE place BETWEEN ? AND ?", of_memory(model, row))
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
    elif whole(dimension) != matrix.shape[1]:
        raise wrong_dimension(matrix.shape[1], dimension)
    return matrix


def _vector_row(key: int, span: tuple[int | None, int | None], data: bytes) -> tuple[Any, ...]:
    return (key, *span, vector_checksum(key, *span, data), data)


def _hits(connection: Connection, vector: Vector, found: Gathered) -> list[Hit]:
    """The exact cosine of each memory, at its best passage: of one in passages all are read, whichever was found."""
    facts, matrix = found
    in_passages = {fact.place & ~(MAX_PASSAGES - 1): fact.id for fact in facts if fact.start is not None}
    if in_passages:
        whole = [number for number, fact in enumerate(facts) if fact.start is None]
        others = _passages(connection, list(in_passages))
        owned = [fact._replace(id=in_passages[fact.place & ~(MAX_PASSAGES - 1)]) for fact in others.facts]
        facts, matrix = [*(facts[number] for number in whole), *owned], np.concatenate([matrix[whole], others.matrix])
    # Row by row: the sum must not depend on where in the matrix a vector stands, or ties would break by chance.
    scores = np.vecdot(matrix.astype(np.float64), vector.astype(np.float64)) if facts else np.zeros(0)
    best: dict[str, Hit] = {}
    for (_, start, stop, _, id), score in zip(facts, scores.tolist(), strict=True):
        if id not in best or score > best[id].score:
            best[id] = Hit(id, score, None if start is None or stop is None else Passage(start, stop))
    return list(best.values())


def _passages(connection: Connection, firsts: Sequence[int]) -> Gathered:
    """All vectors of some memories, given by their first places."""
    return _gathered(connection, WHOLE, (json.dumps(firsts), MAX_PASSAGES - 1))


def _gathered(connection: Connection, sql: str, values: tuple[Any, ...]) -> Gathered:
    """The vectors that a statement gathers, when every one of them is as it was written."""
    described, data = one(connection, sql, values)
    facts = [Fact(*fact) for fact in json.loads(described)]
    if not facts:
        return Gathered([], np.zeros((0, 0), np.float32))
    size, view = len(data) // len(facts), memoryview(data)
    pieces = (view[number * size : (number + 1) * size] for number in range(len(facts)))
    if size % 4 or size * len(facts) != len(data) or not all(map(_is_sound, facts, pieces)):
        raise Corrupt("a vector fails its checksum", "run doctor with repair: it is made again")
    return Gathered(facts, np.frombuffer(data, dtype="<f4").reshape(len(facts), -1))


def _is_sound(fact: Fact, data: memoryview) -> bool:
    """Whether a vector is as it was written."""
    return vector_checksum(fact.place, fact.start, fact.stop, data) == fact.checksum
