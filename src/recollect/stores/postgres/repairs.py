"""Rebuilding what is derived from the memories: full text, words, counts and the outbox."""

from __future__ import annotations

import itertools
from typing import Any

from recollect.domain.gist import gist
from recollect.stores.checksums import link_checksum, vector_checksum
from recollect.stores.places import place
from recollect.stores.postgres import metadata
from recollect.stores.postgres.changes import COLUMNS
from recollect.stores.postgres.checks import OWN_WALLS, pages
from recollect.stores.postgres.connection import rows, run
from recollect.stores.postgres.inserting import AT_ONCE, index
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.tables import TALLY_ALL
from recollect.stores.rows import decode, is_sound


def repair_all(writing: Writing) -> None:
    """Write everything derived anew, in one transaction; memories that are damaged themselves stay as they are."""
    writing.lock_all()
    _drop_broken(writing)
    rebuild_texts(writing)
    run(writing.connection, metadata.RENEW)
    _outbox(writing)
    run(writing.connection, "DELETE FROM tallies")
    run(writing.connection, TALLY_ALL)


def rebuild_texts(writing: Writing, columns: str = COLUMNS) -> None:
    """Write the full text, its words and its counts anew, from the columns of the memories."""
    for table in ("texts", "terms", "words", "counts"):
        run(writing.connection, f"DELETE FROM {table} WHERE {OWN_WALLS.get(table, 'true')}")
    everything = pages(writing.connection, f"m.text_hash, {columns}", "memories", "m.namespace, m.number")
    while some := list(itertools.islice(everything, AT_ONCE)):
        _texts(writing, some)
    writing.leave_tallies()


def _texts(writing: Writing, some: list[tuple[Any, ...]]) -> None:
    sound = [(row[0], row[1], row[2], decode(row[3:])) for row in some if is_sound(row[3:])]
    if sound:
        index([number for _, number, _, _ in sound], [memory for *_, memory in sound], writing)
    for namespace, number, hashed, memory in sound:
        if gist(memory.content) != hashed:
            run(
                writing.connection,
                "UPDATE memories SET text_hash = %s WHERE namespace = %s AND number = %s",
                (gist(memory.content), namespace, number),
            )


def _drop_broken(writing: Writing) -> None:
    """A vector is made again from its text; a link with a wrong checksum points who knows where."""
    connection = writing.connection
    dimensions = dict(rows(connection, "SELECT model, dimension FROM models"))
    for *key, start, stop, checksum, data in pages(
        connection, "m.start, m.stop, m.checksum, m.data", "vectors", "m.namespace, m.number, m.model, m.passage"
    ):
        namespace, number, model, passage = key
        sound = vector_checksum(place(model, number, passage), start, stop, bytes(data)) == checksum
        if not sound or len(data) != 4 * (dimensions.get(model) or 0):
            run(
                connection,
                "DELETE FROM vectors WHERE namespace = %s AND number = %s AND model = %s",
                (namespace, number, model),
            )
    for namespace, source, type, target, created_at, checksum in pages(
        connection, "m.created_at, m.checksum", "links", "m.namespace, m.source, m.type, m.target"
    ):
        if link_checksum(source, type, target, created_at) != checksum:
            run(
                connection,
                "DELETE FROM links WHERE namespace = %s AND source = %s AND type = %s AND target = %s",
                (namespace, source, type, target),
            )


def _outbox(writing: Writing) -> None:
    connection = writing.connection
    run(
        connection,
        "DELETE FROM vectors v USING memories m"
        " WHERE m.namespace = v.namespace AND m.number = v.number AND m.sensitive <> 0",
    )
    run(connection, "DELETE FROM outbox")
    run(
        connection,
        "INSERT INTO outbox (namespace, number, model) SELECT m.namespace, m.number, models.model"
        " FROM memories m CROSS JOIN models WHERE m.sensitive = 0 AND NOT EXISTS (SELECT 1 FROM vectors v"
        " WHERE v.namespace = m.namespace AND v.number = m.number AND v.model = models.model)",
    )
    writing.left_work = True
