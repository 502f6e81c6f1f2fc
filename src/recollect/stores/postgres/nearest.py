"""The numbers of the memories whose vectors are nearest, by half precision: a few more than asked for."""

from __future__ import annotations

from recollect.domain.question import Filter
from recollect.ports import Vector
from recollect.stores.postgres.connection import Connection, one, rows, run
from recollect.stores.postgres.filters import conditions, is_whole_tenant

EXACT_SCOPE = 20_000
"""A scope of so few memories is compared with every one of its vectors."""
MARGIN = 4e-3
"""Half precision may be wrong by less than half of this: whatever lies within it behind the last one is scored too."""
MOST_TIES = 4_000
SPARE = 32
EFFORT = 400
MOST_EFFORT = 1_000
"""So many neighbours the index keeps in sight: between these, one for a thousand memories. pgvector allows no more."""
INDEXED_DIMENSIONS = 4_000


def index_name(model: int) -> str:
    """The HNSW index of a model."""
    return f"vectors_model_{model}"


def nearest(connection: Connection, model: int, vector: Vector, filter: Filter, limit: int) -> list[int]:
    """Memories in scope, at least the `limit` best where the scope is small; nearly always in a large one."""
    written = f"[{','.join(map(str, vector.tolist()))}]"
    held = int(one(connection, "SELECT memories FROM counts WHERE namespace = %s", (filter.namespace,)) or 0)
    if not _is_small(connection, filter, held) and has_index(connection, model):
        effort = min(max(EFFORT, held // 1_000), MOST_EFFORT)
        found = _by_index(connection, model, len(vector), written, filter, limit, effort)
        if len(found) >= limit:
            return found
    return _exactly(connection, model, written, filter, limit)


def _is_small(connection: Connection, filter: Filter, held: int) -> bool:
    """Whether the scope is certainly small, in a tenant that holds so many; counting stops where it is not."""
    if filter.only is not None and len(filter.only) <= EXACT_SCOPE:
        return True
    if held <= EXACT_SCOPE:
        return True
    if is_whole_tenant(filter):
        return False
    scope = conditions(filter)
    counted = one(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM memories m WHERE {scope.sql} LIMIT {EXACT_SCOPE + 1}) few",
        scope.values,
    )
    return int(counted) <= EXACT_SCOPE


def has_index(connection: Connection, model: int) -> bool:
    """Whether the model's HNSW index is there and finished."""
    return bool(
        one(
            connection,
            "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)",
            (index_name(model),),
        )
    )


def _exactly(connection: Connection, model: int, written: str, filter: Filter, limit: int) -> list[int]:
    """Compare with every vector in scope, in half precision; the margin makes up for it."""
    if is_whole_tenant(filter):
        source, values = f"vectors v WHERE v.namespace = %s AND v.model = {model}", (filter.namespace,)
    else:
        scope = conditions(filter)
        source = (
            f"(SELECT namespace, number FROM memories m WHERE {scope.sql} OFFSET 0) m, LATERAL (SELECT * FROM vectors v"
            f" WHERE v.namespace = m.namespace AND v.number = m.number AND v.model = {model} OFFSET 0) v"
        )
        values = scope.values
    found = rows(
        connection,
        f"WITH judged AS MATERIALIZED (SELECT v.number, min(v.code <#> %s::halfvec) AS distance FROM {source}"
        " GROUP BY v.number) SELECT number FROM judged WHERE distance <= coalesce("
        " (SELECT distance FROM judged ORDER BY distance OFFSET %s LIMIT 1) + %s, 'infinity')"
        " ORDER BY distance, number LIMIT %s",
        (written, *values, limit - 1, MARGIN, limit + MOST_TIES),
    )
    return [number for (number,) in found]


def _by_index(
    connection: Connection, model: int, dimension: int, written: str, filter: Filter, limit: int, effort: int
) -> list[int]:
    """HNSW goes on scanning until the filter has let enough through, or its own bound is reached."""
    wanted = 2 * limit + SPARE
    run(connection, f"SET LOCAL hnsw.ef_search = {min(max(effort, wanted), MOST_EFFORT)}")
    run(connection, "SET LOCAL hnsw.iterative_scan = relaxed_order")
    scope = conditions(filter)
    inside = (
        ""
        if is_whole_tenant(filter)
        else " AND EXISTS (SELECT 1 FROM memories m WHERE m.namespace = v.namespace AND m.number = v.number"
        f" AND {scope.sql})"
    )
    found = rows(
        connection,
        f"SELECT v.number FROM vectors v WHERE v.model = {model} AND v.namespace = %s{inside}"
        f" ORDER BY v.code::halfvec({dimension}) <#> %s::halfvec({dimension}) LIMIT %s",
        (filter.namespace, *(scope.values if inside else ()), written, wanted),
    )
    return list(dict.fromkeys(number for (number,) in found))
