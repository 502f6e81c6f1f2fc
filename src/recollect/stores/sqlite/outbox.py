"""Who waits for an embedding: for every memory that is not sensitive, each model has either vectors or an entry here.

A model is known from the first time it is asked for; from then on every write enters it for every model. The memories
that were there before are entered in steps, in the order of their rows: until the last of them is, a counter of the
model holds the row that was reached, and whoever asks who waits goes on there.
"""

from __future__ import annotations

from recollect.domain.memory import TURNS_BEFORE, content_hash
from recollect.ports import EmbeddingProgress, Pending
from recollect.stores.places import ROW_BITS, ROW_MASK, of_memory, of_model, place
from recollect.stores.refusals import MAX_PASSAGES, PASSAGE_BITS
from recollect.stores.retries import FIRST_RETRY_MS, LAST_RETRY_MS
from recollect.stores.sqlite.connection import Connection, one, rows, text, whole
from recollect.stores.sqlite.ledger import Writing

TEXTS = 0
"""Stands in the vector log for "the text of this memory changed", in the place of a model."""
FORGOTTEN_AT_ONCE = 1_000
"""So many memories lose the vectors of a model in one transaction: others can write in between."""
ENTERED_AT_ONCE = 10_000
"""So many memories are entered for a new model in one transaction."""
ENTERED = "entered:"
"""How the counters of models begin that are not yet asked for all memories."""
HELD = (
    f"SELECT 1 FROM vectors WHERE place BETWEEN ({{model}} << {ROW_BITS + PASSAGE_BITS}) + (m.row << {PASSAGE_BITS})"
    f" AND ({{model}} << {ROW_BITS + PASSAGE_BITS}) + (m.row << {PASSAGE_BITS}) + {MAX_PASSAGES - 1}"
)
"""Whether a memory m has vectors of a model."""

FOLLOWERS = """
SELECT f.row, f.embedded FROM memories t JOIN memories f
ON f.namespace = t.namespace AND f.session = t.session AND f.project IS t.project AND f.type = 'episode'
AND f.created_at >= t.created_at AND (f.created_at, f.row) > (t.created_at, t.row)
WHERE t.row = ? AND t.type = 'episode' ORDER BY f.created_at, f.row LIMIT ?
"""


def enqueue(writing: Writing, row: int) -> None:
    """Ask every model for vectors of this memory (again)."""
    for model in writing.models.values():
        writing.connection.execute("INSERT OR REPLACE INTO outbox (model, row) VALUES (?, ?)", (model, row))


def drop_vectors(writing: Writing, row: int) -> None:
    """Forget what every model made of this memory, and who was asked for it."""
    for model in writing.models.values():
        writing.connection.execute("DELETE FROM vectors WHERE place BETWEEN ? AND ?", of_memory(model, row))
        if writing.connection.changes():
            writing.ledger.done[model] -= 1
            log(writing, model, row)
    writing.connection.execute("DELETE FROM outbox WHERE row = ?", (row,))
    writing.connection.execute("UPDATE memories SET embedded = 0 WHERE row = ? AND embedded > 0", (row,))


def renew_followers(writing: Writing, row: int) -> None:
    """The turns that were embedded together with this turn of a conversation wait again: it has changed or will."""
    for follower, embedded in rows(writing.connection, FOLLOWERS, (row, TURNS_BEFORE)):
        if embedded:
            drop_vectors(writing, follower)
            enqueue(writing, follower)


def log(writing: Writing, model: int, row: int) -> None:
    """Tell the scan indexes of all processes that the vectors of a memory are different now."""
    writing.connection.execute("INSERT INTO vector_log (model, row) VALUES (?, ?)", (model, row))
    writing.ledger.logged = True


def logged_span(connection: Connection) -> tuple[int, int]:
    """The first and the last entry of the log. Asked for one by one: for both at once SQLite would read all of it."""
    return one(
        connection,
        "SELECT ifnull((SELECT min(sequence) FROM vector_log), 0), ifnull((SELECT max(sequence) FROM vector_log), 0)",
    )


def log_text(writing: Writing, row: int) -> None:
    """Tell the lists of all processes that a text they know has changed or is gone."""
    log(writing, TEXTS, row)
    writing.ledger.rewritten = True


def register(writing: Writing, model: str) -> int:
    """The number of a model; a new one is still to be asked for the memories that are there."""
    number = writing.models.get(model)
    if number is None:
        writing.connection.execute("INSERT INTO models (name) VALUES (?)", (model,))
        number = writing.connection.last_insert_rowid()
        writing.connection.execute("INSERT OR REPLACE INTO counters VALUES (?, 0)", (f"{ENTERED}{number}",))
        writing.reload()
    return number


def enter_some(writing: Writing, model: str) -> bool:
    """Ask a model for the next few memories that it was not asked for; whether there may be more.

    A write may have entered one of them already, and even its vectors may be there.
    """
    number = register(writing, model)
    reached = entered_up_to(writing.connection, number)
    if reached is None:
        return False
    found = rows(
        writing.connection,
        f"SELECT m.row, m.sensitive OR EXISTS ({HELD.format(model=number)}) FROM memories m"
        " WHERE m.row > ? ORDER BY m.row LIMIT ?",
        (reached, ENTERED_AT_ONCE),
    )
    waiting = [(number, row) for row, is_left_out in found if not is_left_out]
    writing.connection.executemany("INSERT OR IGNORE INTO outbox (model, row) VALUES (?, ?)", waiting)
    name = f"{ENTERED}{number}"
    if len(found) < ENTERED_AT_ONCE:
        writing.connection.execute("DELETE FROM counters WHERE name = ?", (name,))
        return False
    writing.connection.execute("UPDATE counters SET value = ? WHERE name = ?", (found[-1][0], name))
    return True


def entered_up_to(connection: Connection, model: int) -> int | None:
    """The row up to which a model was asked for all memories; None where that is the last one."""
    return one(connection, "SELECT value FROM counters WHERE name = ?", (f"{ENTERED}{model}",))


def forget_some(writing: Writing, model: str, after: int) -> int | None:
    """Drop what a model made of the next few memories behind a row, which wait for it again; the last of these rows.

    None: there were no more. Failures are forgotten then, and if no vector came meanwhile, the length of vectors too.
    """
    number = writing.models.get(model)
    if number is None:
        return None
    found = _owners(writing.connection, number, after)
    if not found:
        _forget_failures(writing, number)
        return None
    execute, span = writing.connection.execute, (place(number, after + 1), of_memory(number, found[-1])[1])
    values = [(row,) for row in found]
    writing.connection.executemany("UPDATE memories SET embedded = embedded - 1 WHERE row = ?", values)
    execute("DELETE FROM vectors WHERE place BETWEEN ? AND ?", span)
    able = f"SELECT {number}, row FROM memories WHERE row = ? AND NOT sensitive"
    writing.connection.executemany(f"INSERT OR REPLACE INTO outbox (model, row) {able}", values)
    writing.connection.executemany(f"INSERT INTO vector_log (model, row) VALUES ({number}, ?)", values)
    writing.ledger.done[number] -= len(found)
    writing.ledger.logged = True
    return found[-1]


def _owners(connection: Connection, model: int, after: int) -> list[int]:
    """The next few memories that have vectors of a model."""
    owners = f"SELECT DISTINCT (place >> {PASSAGE_BITS}) & {ROW_MASK} FROM vectors WHERE place BETWEEN ? AND ?"
    span = place(model, after + 1), of_model(model)[1]
    return [row for (row,) in rows(connection, f"{owners} ORDER BY place LIMIT ?", (*span, FORGOTTEN_AT_ONCE))]


def _forget_failures(writing: Writing, model: int) -> None:
    execute = writing.connection.execute
    execute("UPDATE outbox SET attempts = 0, retry_at = 0 WHERE model = ? AND attempts > 0", (model,))
    if one(writing.connection, "SELECT 1 FROM vectors WHERE place BETWEEN ? AND ? LIMIT 1", of_model(model)) is None:
        execute("UPDATE models SET dimension = NULL WHERE model = ?", (model,))


def model_number(connection: Connection, model: str) -> int | None:
    """The number of a model that is known."""
    return one(connection, "SELECT model FROM models WHERE name = ?", (model,))


def waiting(connection: Connection, model: int | None, limit: int, now_ms: int) -> list[Pending]:
    """Never tried first, then fewer attempts first, each in the order of first insertion; a failure rests a while."""
    if model is None:
        found = rows(
            connection, "SELECT id, content, 0, apart FROM memories WHERE NOT sensitive ORDER BY row LIMIT ?", (limit,)
        )
    else:
        found = rows(
            connection,
            "SELECT m.id, m.content, o.attempts, m.apart FROM outbox o JOIN memories m ON m.row = o.row"
            # A pause longer than the longest was measured by a clock that was wrong.
            " WHERE o.model = ? AND (o.retry_at <= ? OR o.retry_at > ?) ORDER BY o.attempts, o.row LIMIT ?",
            (model, now_ms, now_ms + LAST_RETRY_MS, limit),
        )
    return [
        Pending(id, content, content_hash(text(content)), attempts, bool(apart))
        for id, content, attempts, apart in found
    ]


def postpone(writing: Writing, model: int, row: int, now_ms: int) -> None:
    """Note a failed attempt; the pause doubles with every one."""
    attempts = one(writing.connection, "SELECT attempts FROM outbox WHERE model = ? AND row = ?", (model, row))
    if attempts is None:
        return
    pause = min(FIRST_RETRY_MS << min(attempts, 20), LAST_RETRY_MS)
    writing.connection.execute(
        "UPDATE outbox SET attempts = ?, retry_at = ? WHERE model = ? AND row = ?",
        (attempts + 1, now_ms + pause, model, row),
    )


def progress(connection: Connection, model: str) -> EmbeddingProgress:
    """Done, waiting and failed for one model."""
    known = one(connection, "SELECT model, done FROM models WHERE name = ?", (model,))
    if known is None:
        waiting_now = one(connection, "SELECT count(*) FROM memories WHERE NOT sensitive")
        return EmbeddingProgress(0, int(waiting_now), 0)
    pending, failed = one(
        connection,
        "SELECT count(*) FILTER (WHERE attempts = 0), count(*) FILTER (WHERE attempts > 0) FROM outbox WHERE model = ?",
        (known[0],),
    )
    if entered_up_to(connection, known[0]) is not None:  # some that wait are not entered yet
        able = one(connection, "SELECT count(*) FROM memories WHERE NOT sensitive")
        pending = int(able) - whole(known[1]) - int(failed)
    return EmbeddingProgress(whole(known[1]), int(pending), int(failed))
