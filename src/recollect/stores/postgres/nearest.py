"""The memories whose vectors are nearest, by half precision: SQL that names a few more than are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from psycopg import sql

from recollect.domain.question import Filter
from recollect.ports import Vector
from recollect.stores.postgres.connection import Connection, Rows, one
from recollect.stores.postgres.filters import TIMES, conditions, is_whole_tenant, without_idle_times
from recollect.stores.refusals import wrong_dimension

EXACT_SCOPE = 20_000
"""A scope of so few memories is compared with every one of its vectors,"""
EXACT_ROOT = 20
"""and in a large tenant one of so many times the root of what that holds: there an index finds with less work."""
MARGIN = 4e-3
"""Half precision may be wrong by less than half of this: whatever lies within it behind the last one is scored too."""
MOST_TIES = 4_000
SPARE = 16
MOST_EFFORT = 1_000
"""So many neighbours the index keeps in sight at most: pgvector allows no more."""
CROWD = 100_000
"""Up to so many memories the effort depends on what is asked for alone."""
INDEXED_DIMENSIONS = 4_000

GOING_ON = "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.scan_mem_multiplier = 4"
"""Where a filter lets few through, the index goes on, and may remember more of what it has seen than a sort may."""
_INDEX = "vectors_model_"
KNOWN = (
    f"SELECT k.model, k.dimension, (SELECT memories FROM counts WHERE namespace = %(namespace)s), {TIMES},"
    f" EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('{_INDEX}' || k.model) AND indisvalid)"
    " FROM models k WHERE k.name = %(model)s"
)


@dataclass(frozen=True, slots=True)
class Known:
    """A model, and the tenant that is searched by it."""

    model: int
    dimension: int
    held: int
    filter: Filter
    has_index: bool


@dataclass(frozen=True, slots=True)
class Nearest:
    """SQL for the numbers of memories, its values, and the settings that it is asked with."""

    sql: str
    values: tuple[Any, ...]
    settings: str = ""


def index_name(model: int) -> str:
    """The HNSW index of a model."""
    return f"{_INDEX}{model}"


def drop_index(schema: str, model: int) -> sql.Composed:
    """Take a model's HNSW index away, if there is one, without stopping anybody."""
    return sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(schema, index_name(model)))


def owns_vectors(connection: Connection) -> bool:
    """Whether whoever is logged in owns the vectors: only their owner makes and drops indexes."""
    return bool(
        one(
            connection,
            "SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'vectors'::regclass",
        )
    )


def known(found: Rows, vector: Vector, filter: Filter) -> Known | None:
    """What KNOWN tells of a model, None where it made no vector yet; a vector that cannot be the model's is refused."""
    if not found or found[0][1] is None:
        return None
    number, dimension, held, first, last, has_index = found[0]
    if vector.shape != (dimension,):
        raise wrong_dimension(vector.shape[-1] if vector.ndim else 0, dimension)
    return Known(number, dimension, held or 0, without_idle_times(filter, first, last), has_index)


def is_small(connection: Connection, known: Known) -> bool:
    """Whether the scope is certainly so small that it is compared whole; counting stops where it is not."""
    filter = known.filter
    if not known.has_index or known.held <= EXACT_SCOPE:
        return True
    if filter.only is not None and len(filter.only) <= EXACT_SCOPE:
        return True
    if is_whole_tenant(filter):
        return False
    most = min(EXACT_SCOPE, EXACT_ROOT * isqrt(known.held))
    scope = conditions(filter)
    counted = one(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM memories m WHERE {scope.sql} LIMIT {most + 1}) few",
        scope.values,
    )
    return int(counted) <= most


def has_index(connection: Connection, model: int) -> bool:
    """Whether the model's HNSW index is there and finished."""
    return bool(
        one(
            connection,
            "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)",
            (index_name(model),),
        )
    )


def exactly(known: Known, vector: Vector, limit: int) -> Nearest:
    """Compare with every vector in scope, in half precision; the margin makes up for it."""
    if is_whole_tenant(known.filter):
        source, values = f"vectors v WHERE v.namespace = %s AND v.model = {known.model}", (known.filter.namespace,)
    else:
        scope = conditions(known.filter)
        source = (
            f"(SELECT namespace, number FROM memories m WHERE {scope.sql} OFFSET 0) m, LATERAL (SELECT * FROM vectors v"
            f" WHERE v.namespace = m.namespace AND v.number = m.number AND v.model = {known.model} OFFSET 0) v"
        )
        values = scope.values
    return Nearest(
        f"WITH judged AS MATERIALIZED (SELECT v.number, min(v.code <#> %s::halfvec) AS distance FROM {source}"
        " GROUP BY v.number) SELECT number FROM judged WHERE distance <= coalesce("
        " (SELECT distance FROM judged ORDER BY distance OFFSET %s LIMIT 1) + %s, 'infinity')"
        " ORDER BY distance, number LIMIT %s",
        (_halved(vector), *values, limit - 1, MARGIN, limit + MOST_TIES),
    )


def by_index(known: Known, vector: Vector, limit: int) -> Nearest:
    """HNSW goes on scanning until the filter has let enough through, or its own bound is reached."""
    wanted = limit + limit // 4 + SPARE
    inside, values = "", (known.filter.namespace,)
    if not is_whole_tenant(known.filter):
        scope = conditions(known.filter)
        inside = (
            " AND EXISTS (SELECT 1 FROM memories m WHERE m.namespace = v.namespace AND m.number = v.number"
            f" AND {scope.sql})"
        )
        values = (known.filter.namespace, *scope.values)
    kind = f"halfvec({known.dimension})"
    return Nearest(
        f"SELECT DISTINCT number FROM (SELECT v.number FROM vectors v WHERE v.model = {known.model}"
        f" AND v.namespace = %s{inside} ORDER BY v.code::{kind} <#> %s::{kind} LIMIT %s) near",
        (*values, _halved(vector), wanted),
        f"{GOING_ON}; SET LOCAL hnsw.ef_search = {effort(known.held, limit)}",
    )


def effort(held: int, limit: int) -> int:
    """How many neighbours the index keeps in sight to find nearly all the nearest of a tenant that holds so many."""
    crowd = max(1.0, held / CROWD) ** 0.6
    return min(round(crowd * (130 + 2.7 * limit)), MOST_EFFORT)


def _halved(vector: Vector) -> str:
    """The vector as the server reads it, in the precision in which it is compared."""
    with np.errstate(over="ignore"):
        return f"[{','.join(map(str, vector.astype(np.float16).tolist()))}]"
