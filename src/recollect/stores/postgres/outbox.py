"""Who waits for an embedding: for every memory that is not sensitive, each model has either vectors or an entry here.

Workers of many processes share the backlog: whoever lists entries leases them for a while, and others skip them.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.domain.memory import content_hash
from recollect.ports import EmbeddingProgress, Pending
from recollect.stores.postgres.connection import EVERYONE, Connection, one, rows, run
from recollect.stores.postgres.ledger import Writing, totals
from recollect.stores.postgres.nearest import index_name
from recollect.stores.retries import FIRST_RETRY_MS, LAST_RETRY_MS

LEASE_MS = 60_000
WRONG_MS = 3_600_000
"""What is so far beyond the longest lease or rest was written by a clock that went wrong, and holds nobody up."""
AT_ONCE = 5_000
"""So many memories a new model is asked for in one transaction, between which writers have their turn."""
FORGET_MS = 600_000
"""So long it may take to forget all that a model made; a write need not wait as long, and then says so."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is known."""

    number: int
    dimension: int | None
    entered: bool
    """It has been asked for every memory that was there before it; until then nobody has vectors of it."""


def model_of(connection: Connection, model: str) -> Model | None:
    """What is known of a model."""
    found = one(connection, "SELECT model, dimension, entered_number IS NULL FROM models WHERE name = %s", (model,))
    return None if found is None else Model(*found)


def enter_some(writing: Writing, model: str) -> None:
    """Make a model known and ask it for some of the memories that were there before it, if any are left.

    From then on every write enters its own. The place up to which the model was asked is kept with it, so that anybody
    goes on after a crash. Memories of all tenants are entered, also by a store that is bound to one: none is read.
    """
    connection = writing.connection
    writing.lock_all()
    # Every place lies behind this one. Whoever made the model known before is right too.
    run(
        connection,
        "INSERT INTO models (name, entered_namespace, entered_number) VALUES (%s, '', 0) ON CONFLICT DO NOTHING",
        (model,),
    )
    run(connection, "SELECT set_config('recollect.namespace', %s, true)", (EVERYONE,))
    asked, namespace, number = one(
        connection,
        "WITH piece AS MATERIALIZED (SELECT m.namespace, m.number, m.sensitive, model FROM memories m, models"
        " WHERE name = %(model)s AND (m.namespace, m.number) > (entered_namespace, entered_number)"
        " ORDER BY m.namespace, m.number LIMIT %(limit)s),"
        " entered AS (INSERT INTO outbox (namespace, number, model)"
        " SELECT namespace, number, model FROM piece WHERE sensitive = 0 ON CONFLICT DO NOTHING),"
        " last AS (SELECT namespace, number FROM piece ORDER BY namespace DESC, number DESC LIMIT 1)"
        " SELECT count(*), (SELECT namespace FROM last), (SELECT number FROM last) FROM piece",
        {"model": model, "limit": AT_ONCE},
    )
    writing.left_work = asked < AT_ONCE
    last = (None, None) if writing.left_work else (namespace, number)
    run(connection, "UPDATE models SET entered_namespace = %s, entered_number = %s WHERE name = %s", (*last, model))


def forget(writing: Writing, model: str, whole: bool) -> None:
    """Drop all that a model made: every memory waits for it again; in a store bound to a tenant, the tenant's.

    If it is all (`whole`), its next vectors may have another length, unless an index that is not ours holds them to it.
    """
    writing.lock_all()
    known = model_of(writing.connection, model)
    if known is None:
        return
    run(writing.connection, f"SET LOCAL statement_timeout = {FORGET_MS}")
    for namespace, count in rows(
        writing.connection,
        "WITH gone AS (DELETE FROM vectors WHERE model = %s RETURNING namespace)"
        " SELECT namespace, count(*) FROM gone GROUP BY namespace",
        (known.number,),
    ):
        writing.tally(namespace, "vectors", str(known.number), -count)
    run(writing.connection, "DELETE FROM outbox WHERE model = %s", (known.number,))
    run(
        writing.connection,
        "INSERT INTO outbox (namespace, number, model) SELECT namespace, number, %s FROM memories WHERE sensitive = 0",
        (known.number,),
    )
    if whole:
        run(
            writing.connection,
            "UPDATE models SET dimension = NULL WHERE model = %s AND to_regclass(%s) IS NULL",
            (known.number, index_name(known.number)),
        )
    writing.left_work = True


def claim(connection: Connection, model: int, worker: int, limit: int, now_ms: int) -> list[Pending]:
    """Never tried first, then fewer attempts first, each in the order of first insertion; a failure rests a while.

    What another worker has leased, or is just writing, is left out.
    """
    found = rows(
        connection,
        "WITH free AS MATERIALIZED (SELECT namespace, number FROM outbox WHERE model = %(model)s"
        " AND retry_at NOT BETWEEN %(now)s + 1 AND %(now)s + %(rest)s"
        " AND (worker = %(worker)s OR leased_until NOT BETWEEN %(now)s + 1 AND %(until)s + %(wrong)s)"
        " ORDER BY attempts, number LIMIT %(limit)s FOR UPDATE SKIP LOCKED),"
        " leased AS (UPDATE outbox o SET worker = %(worker)s, leased_until = %(until)s FROM free"
        " WHERE o.namespace = free.namespace AND o.number = free.number AND o.model = %(model)s"
        " RETURNING o.namespace, o.number, o.attempts)"
        " SELECT m.id, m.content, l.attempts, m.apart FROM leased l"
        " JOIN memories m ON m.namespace = l.namespace AND m.number = l.number ORDER BY l.attempts, l.number",
        {
            "model": model,
            "worker": worker,
            "now": now_ms,
            "rest": LAST_RETRY_MS + WRONG_MS,
            "until": now_ms + LEASE_MS,
            "wrong": WRONG_MS,
            "limit": limit,
        },
    )
    return [Pending(id, content, content_hash(content), attempts, apart) for id, content, attempts, apart in found]


def look(connection: Connection, model: Model | None, limit: int, now_ms: int) -> list[Pending]:
    """The same without leasing, for a store that may only read; a model unheard of waits for everything."""
    if model is None or not model.entered:
        sql = "SELECT id, content, 0, apart FROM memories WHERE sensitive = 0 ORDER BY number LIMIT %s"
        values = (limit,)
    else:
        sql = (
            "SELECT m.id, m.content, o.attempts, m.apart FROM outbox o"
            " JOIN memories m ON m.namespace = o.namespace AND m.number = o.number"
            " WHERE o.model = %s AND o.retry_at <= %s ORDER BY o.attempts, o.number LIMIT %s"
        )
        values = (model.number, now_ms, limit)
    found = rows(connection, sql, values)
    return [Pending(id, content, content_hash(content), attempts, apart) for id, content, attempts, apart in found]


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
    if known is None or not known.entered:
        return EmbeddingProgress(0, able, 0)
    pending, failed = one(
        connection,
        "SELECT count(*) FILTER (WHERE attempts = 0), count(*) FILTER (WHERE attempts > 0)"
        " FROM outbox WHERE model = %s",
        (known.number,),
    )
    return EmbeddingProgress(able - int(pending) - int(failed), int(pending), int(failed))
