"""Vectors: found by their halved form (exactly in a small scope, by an HNSW index in a large one), scored exactly.

`code` is the vector in half precision, for finding; `data` holds the numbers as they came, checksummed, for scoring.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import Corrupt
from recollect.domain.memory import content_hash
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit, Passage
from recollect.ports import Embedded, EmbeddingProgress, Pending, Vector
from recollect.stores.checksums import vector_checksum
from recollect.stores.places import place
from recollect.stores.postgres.changes import NAMED
from recollect.stores.postgres.connection import Connection, Rows, Server, one, rows, run
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.nearest import (
    KNOWN,
    Known,
    Nearest,
    by_index,
    drop_index,
    exactly,
    is_small,
    known,
    owns_vectors,
)
from recollect.stores.postgres.outbox import claim, enter_some, forget, look, model_of, postpone, progress, release
from recollect.stores.postgres.reals import Reals
from recollect.stores.postgres.records import transact
from recollect.stores.postgres.replica import Reads
from recollect.stores.refusals import sound_matrix, wrong_dimension

Answer = TypeVar("Answer")
Place: TypeAlias = tuple[str, int]
"""Namespace and number of a memory."""

PASSAGES = 4
"""Where memories have several vectors, so many times what is asked for is looked at before every vector is."""
VECTOR = "v.number, v.passage, v.start, v.stop, v.checksum, v.data"
SIMILARITIES = (
    "SELECT k.model, k.dimension, f.* FROM (SELECT model, dimension FROM models WHERE name = %s) k LEFT JOIN LATERAL"
    f" (SELECT m.id, {VECTOR} FROM {NAMED}, LATERAL (SELECT * FROM vectors v WHERE v.namespace = m.namespace"
    " AND v.number = m.number AND v.model = k.model OFFSET 0) v) f ON true ORDER BY f.number, f.passage"
)
"""The model, and beside it its vectors of the memories with these ids."""


class PostgresVectors:
    """The VectorIndex port."""

    def __init__(self, server: Server, reads: Reads, tokens: Tokens, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._reads = reads
        self._tokens = tokens
        self._clock = clock
        self._worker = secrets.randbits(62) + 1

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        def work(connection: Connection, found: Rows) -> list[Hit]:
            about = known(found, vector, filter)
            if about is None or limit <= 0:
                return []
            for many in () if is_small(connection, about) else (limit, PASSAGES * limit):
                near = _near(connection, about, vector, by_index(about, vector, many))
                if len(near) >= limit:
                    return near
            return _near(connection, about, vector, exactly(about, vector, limit))

        asked = {"model": model, "namespace": filter.namespace}
        hits = self._reads.read_from(KNOWN, asked, work, filter.namespace)
        close = [hit for hit in hits if minimum is None or hit.score >= minimum]
        return sorted(close, key=lambda hit: (-hit.score, hit.id))[: max(limit, 0)]

    def similarities(self, model: str, vector: Vector, ids: Sequence[str]) -> dict[str, Hit]:
        asked = model, list(dict.fromkeys(ids))
        found = self._reads.read(lambda connection: rows(connection, SIMILARITIES, asked, binary=True))
        if not found:
            return {}
        number, dimension = found[0][:2]
        if dimension is not None and vector.shape != (dimension,):
            raise wrong_dimension(vector.shape[-1] if vector.ndim else 0, dimension)
        return {hit.id: hit for hit in _hits(number, vector, [row[2:] for row in found if row[2] is not None])}

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        now_ms = int(self._clock() * 1000)

        def work(writing: Writing, number: int) -> None:
            writing.lock(())  # no tenant, but whoever goes over all vectors has to wait
            matrices = _sound(writing.connection, number, entries)
            current = _current(writing.connection, entries)
            made: dict[Place, tuple[Embedded, NDArray[np.float32]]] = {}
            for entry, matrix in zip(entries, matrices):
                if entry.id in current and current[entry.id][1] == entry.content_hash:
                    at = current[entry.id][0]
                    if matrix is None:
                        postpone(writing.connection, number, *at, now_ms)
                    else:
                        made[at] = entry, matrix  # of several for one memory the last one counts
            if made:
                _store(writing, number, made)

        if entries:
            self._transact(model, work)

    def missing(self, model: str, limit: int) -> list[Pending]:
        if limit <= 0:
            return []
        now_ms = int(self._clock() * 1000)
        if self._server.read_only:
            return self._server.read(lambda connection: look(connection, model_of(connection, model), limit, now_ms))
        return self._transact(
            model, lambda writing, number: claim(writing.connection, number, self._worker, limit, now_ms)
        )

    def _transact(self, model: str, work: Callable[[Writing, int], Answer]) -> Answer:
        """Work with a model that has been asked for every memory; a new one is asked first, in pieces."""

        def attempt(writing: Writing) -> tuple[Answer] | None:
            known = model_of(writing.connection, model)
            return (work(writing, known.number),) if known is not None and known.entered else None

        while (done := transact(self._server, self._tokens, attempt)) is None:
            transact(self._server, self._tokens, lambda writing: enter_some(writing, model))
        return done[0]

    def progress(self, model: str) -> EmbeddingProgress:
        return self._server.read(lambda connection: progress(connection, model))

    def models(self) -> list[str]:
        found = self._server.read(
            lambda connection: rows(
                connection,
                "SELECT name FROM models WHERE model::text IN (SELECT name FROM tallies WHERE kind = 'vectors'"
                " GROUP BY name HAVING sum(held) > 0) ORDER BY name",
            )
        )
        return [name for (name,) in found]

    def stored(self, model: str, ids: Sequence[str]) -> list[Embedded]:
        def work(connection: Connection) -> dict[str, Embedded]:
            known = model_of(connection, model)
            return _as_put(connection, known.number, list(dict.fromkeys(ids))) if known is not None and ids else {}

        found = self._server.read(work)
        return [found[id] for id in ids if id in found]

    def forget(self, model: str) -> None:
        whole = self._server.address.namespace is None
        known = self._server.read(lambda connection: model_of(connection, model))
        if known is not None and whole and self._server.read(owns_vectors):
            with self._server.plain() as connection:
                connection.execute(drop_index(self._server.address.schema, known.number))
        transact(self._server, self._tokens, lambda writing: forget(writing, model, whole))

    def release(self) -> None:
        """Let other workers have what this one listed and did not finish."""
        if not self._server.read_only:
            transact(self._server, self._tokens, lambda writing: release(writing, self._worker))


def _sound(connection: Connection, model: int, entries: Sequence[Embedded]) -> list[NDArray[np.float32] | None]:
    """The matrices as they are stored, or InvalidInput; the first vectors of a model settle its dimension."""
    settled: int | None = one(connection, "SELECT dimension FROM models WHERE model = %s", (model,))
    if settled is None:
        settled = one(connection, "SELECT dimension FROM models WHERE model = %s FOR UPDATE", (model,))
    dimension = settled
    matrices: list[NDArray[np.float32] | None] = []
    for entry in entries:
        matrix = None if entry.vectors is None else sound_matrix(entry, entry.vectors)
        if matrix is not None:
            dimension = matrix.shape[1] if dimension is None else dimension
            if matrix.shape[1] != dimension:
                raise wrong_dimension(matrix.shape[1], dimension)
        matrices.append(matrix)
    if dimension != settled:
        run(connection, "UPDATE models SET dimension = %s WHERE model = %s", (dimension, model))
    return matrices


def _current(connection: Connection, entries: Sequence[Embedded]) -> dict[str, tuple[Place, str]]:
    """Where the memories are, and which text they have now; nobody changes that until the end."""
    found = rows(
        connection,
        "SELECT id, namespace, number, content FROM memories WHERE id = ANY (%s) AND sensitive = 0"
        " ORDER BY namespace, number FOR SHARE",
        ([entry.id for entry in entries],),
    )
    return {id: ((namespace, number), content_hash(content)) for id, namespace, number, content in found}


def _store(writing: Writing, model: int, made: dict[Place, tuple[Embedded, NDArray[np.float32]]]) -> None:
    """Replace the vectors of these memories; nobody has to make them any more."""
    connection = writing.connection
    columns: list[tuple[Any, ...]] = []
    for (namespace, number), (entry, matrix) in made.items():
        for passage, ((start, stop), row) in enumerate(zip(entry.passages or ((None, None),), matrix)):
            data = row.tobytes()
            checksum = vector_checksum(place(model, number, passage), start, stop, data)
            columns.append((namespace, number, passage, start, stop, checksum, data))
    places = [namespace for namespace, _ in made], [number for _, number in made]
    gone = Counter[str]()
    for table in ("vectors", "outbox"):
        found = rows(
            connection,
            f"DELETE FROM {table} t USING unnest(%s::text[], %s::bigint[]) AS u (namespace, number)"
            " WHERE t.namespace = u.namespace AND t.number = u.number AND t.model = %s RETURNING t.namespace",
            (*places, model),
        )
        gone.update(namespace for (namespace,) in found if table == "vectors")
    for namespace, count in Counter(column[0] for column in columns).items():
        writing.tally(namespace, "vectors", str(model), count - gone[namespace])
    matrix = np.concatenate([matrix for _, matrix in made.values()])
    width = matrix.shape[1]
    run(
        connection,
        "INSERT INTO vectors (namespace, number, model, passage, start, stop, checksum, data, code)"
        f" SELECT a, b, {model}, c, d, e, f, g, r.numbers[(h - 1) * {width} + 1 : h * {width}]::halfvec"
        " FROM (SELECT %b::real[] AS numbers) r, unnest(%b::text[], %b::bigint[], %b::smallint[], %b::int[],"
        " %b::int[], %b::bigint[], %b::bytea[]) WITH ORDINALITY AS u (a, b, c, d, e, f, g, h)",
        [Reals(matrix), *(list(column) for column in zip(*columns))],
    )


def _as_put(connection: Connection, model: int, ids: list[str]) -> dict[str, Embedded]:
    """The vectors of these memories, bit for bit."""
    kept: dict[str, list[tuple[Any, ...]]] = {}
    for id, content, *row in rows(
        connection,
        "SELECT m.id, m.content, v.start, v.stop, v.data, v.checksum, v.number, v.passage"
        f" FROM {NAMED}, LATERAL (SELECT * FROM vectors v WHERE v.namespace = m.namespace AND v.number = m.number"
        f" AND v.model = {model} OFFSET 0) v ORDER BY m.id, v.passage",
        (ids,),
    ):
        start, stop, data, checksum, number, passage = row
        _require_sound(model, number, passage, start, stop, data, checksum)
        kept.setdefault(id, []).append((content, *row))
    return {
        id: Embedded(
            id,
            content_hash(passages[0][0]),
            np.stack([np.frombuffer(row[3], dtype="<f4") for row in passages]),
            tuple((row[1], row[2]) for row in passages if row[1] is not None),
        )
        for id, passages in kept.items()
    }


def _require_sound(
    model: int, number: int, passage: int, start: int | None, stop: int | None, data: bytes, checksum: int
) -> None:
    if vector_checksum(place(model, number, passage), start, stop, data) != checksum:
        raise Corrupt("a vector fails its checksum", "run doctor with repair: it is made again")


def _near(connection: Connection, about: Known, vector: Vector, nearest: Nearest) -> list[Hit]:
    """The memories that a piece of SQL numbers, with their exact cosines."""
    if nearest.settings:
        run(connection, nearest.settings)
    found = rows(
        connection,
        # Named one by one: the tenant's other memories are not looked at, whatever the planner believes.
        f"SELECT m.id, {VECTOR} FROM ({nearest.sql}) n (number),"
        " LATERAL (SELECT id FROM memories m WHERE m.namespace = %s AND m.number = n.number OFFSET 0) m,"
        " LATERAL (SELECT * FROM vectors v WHERE v.namespace = %s AND v.number = n.number"
        f" AND v.model = {about.model} OFFSET 0) v ORDER BY v.number, v.passage",
        (*nearest.values, about.filter.namespace, about.filter.namespace),
        binary=True,
    )
    return _hits(about.model, vector, found)


def _hits(model: int, vector: Vector, found: Sequence[tuple[Any, ...]]) -> list[Hit]:
    """The exact cosine of each memory, at its best passage, from its id and the columns of VECTOR."""
    if not found:
        return []
    for _, number, passage, start, stop, checksum, data in found:
        _require_sound(model, number, passage, start, stop, data, checksum)
    matrix = np.frombuffer(b"".join([row[6] for row in found]), dtype="<f4").reshape(len(found), -1)
    # Row by row: the sum must not depend on where in the matrix a vector stands, or ties would break by chance.
    scores = np.vecdot(matrix.astype(np.float64), vector.astype(np.float64))
    best: dict[str, Hit] = {}
    for (id, _, _, start, stop, _, _), score in zip(found, scores.tolist()):
        if id not in best or score > best[id].score:
            best[id] = Hit(id, score, None if start is None else Passage(start, stop))
    return list(best.values())
