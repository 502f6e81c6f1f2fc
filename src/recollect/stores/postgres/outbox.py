"""Who waits for an embedding: for every memory that is not sensitive, each model has either vectors or an entry here.

Workers of many processes share the backlog: whoever lists entries leases them for a while, and others skip them.
"""

from __future__ import annotations

from recollect.domain.memory import content_hash
from recollect.ports import EmbeddingProgress, Pending
from recollect.stores.postgres.connection import Connection, one, rows, run
from recollect.stores.postgres.ledger import Writing, totals
from recollect.stores.sqlite.outbox import FIRST_RETRY_MS, LAST_RETRY_MS

LEASE_MS = 60_000
REGISTER_MS = 600_000
"""So long a new model may take to be asked for everything; a write need not wait as long, and then says so."""


def register(writing: Writing, model: str) -> int:
    """The number of a model; a new one is asked for all memories that are there."""
    known = model_of(writing.connection, model)
    if known is None:
        writing.lock_all()
        known = model_of(writing.connection, model)
    if known is None:
        number = one(writing.connection, "INSERT INTO models (name) VALUES (%s) RETURNING model", (model,))
        run(writing.connection, f"SET LOCAL statement_timeout = {REGISTER_MS}")
        run(
            writing.connection,
            "INSERT INTO outbox (namespace, number, model) SELECT namespace, number, %s FROM memories"
            " WHERE sensitive = 0",
            (number,),
        )
        writing.left_work = True
        return int(number)
    return known[0]


def model_of(connection: Connection, model: str) -> tuple[int, int | None] | None:
    """Number and dimension of a model that is known."""
    return one(connection, "SELECT model, dimension FROM models WHERE name = %s", (model,))


def claim(connection: Connection, model: int, worker: int, limit: int, now_ms: int) -> list[Pending]:
    """Never tried first, then fewer attempts first, each in the order of first insertion; a failure rests a while.

    What another worker has leased, or is just writing, is left out.
    """
    found = rows(
        connection,
        "WITH free AS MATERIALIZED (SELECT namespace, number FROM outbox WHERE model = %(model)s"
        " AND retry_at <= %(now)s AND (worker = %(worker)s OR leased_until <= %(now)s)"
        " ORDER BY attempts, number LIMIT %(limit)s FOR UPDATE SKIP LOCKED),"
        " leased AS (UPDATE outbox o SET worker = %(worker)s, leased_until = %(until)s FROM free"
        " WHERE o.namespace = free.namespace AND o.number = free.number AND o.model = %(model)s"
        " RETURNING o.namespace, o.number, o.attempts)"
        " SELECT m.id, m.content, l.attempts FROM leased l"
        " JOIN memories m ON m.namespace = l.namespace AND m.number = l.number ORDER BY l.attempts, l.number",
        {"model": model, "worker": worker, "now": now_ms, "until": now_ms + LEASE_MS, "limit": limit},
    )
    return [Pending(id, content, content_hash(content), attempts) for id, content, attempts in found]


def look(connection: Connection, model: int | None, limit: int, now_ms: int) -> list[Pending]:
    """The same without leasing, for a store that may only read; a model unheard of waits for everything."""
    if model is None:
        sql, values = "SELECT id, content, 0 FROM memories WHERE sensitive = 0 ORDER BY number LIMIT %s", (limit,)
    else:
        sql = (
            "SELECT m.id, m.content, o.attempts FROM outbox o"
            " JOIN memories m ON m.namespace = o.namespace AND m.number = o.number"
            " WHERE o.model = %s AND o.retry_at <= %s ORDER BY o.attempts, o.number LIMIT %s"
        )
        values = (model, now_ms, limit)
    found = rows(connection, sql, values)
    return [Pending(id, content, content_hash(content), attempts) for id, content, attempts in found]


def release(writing: Writing, worker: int) -> None:
    """Give back what was leased and not done."""
    given = run(writing.connection, "UPDATE outbox SET worker = 0, leased_until = 0 WHERE worker = %s", (worker,))
    writing.left_work = given > 0


def postpone(connection: Connection, model: int, namespace: str, number: int, now_ms: int) -> None:
    """Note a failed attempt; the pause doubles with every one."""
    run(
        connection,
        "UPDATE outbox SET attempts = attempts + 1, worker = 0, leased_until = 0,"
        " retry_at = %s + least(%s::bigint << least(attempts, 20), %s)"
        " WHERE namespace = %s AND number = %s AND model = %s",
        (now_ms, FIRST_RETRY_MS, LAST_RETRY_MS, namespace, number, model),
    )


def progress(connection: Connection, model: str) -> EmbeddingProgress:
    """Done, waiting and failed for one model."""
    able = totals(connection)[1]
    known = model_of(connection, model)
    if known is None:
        return EmbeddingProgress(0, able, 0)
    pending, failed = one(
        connection,
        "SELECT count(*) FILTER (WHERE attempts = 0), count(*) FILTER (WHERE attempts > 0)"
        " FROM outbox WHERE model = %s",
        (known[0],),
    )
    return EmbeddingProgress(able - int(pending) - int(failed), int(pending), int(failed))
