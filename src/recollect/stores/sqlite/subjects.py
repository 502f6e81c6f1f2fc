"""The step that teaches an older file what its memories are about: a number beside the token stream, with an index."""

from __future__ import annotations

from recollect.stores.sqlite.connection import Connection, rows
from recollect.stores.subjects import stored_number

READ_AT_ONCE = 1_000


def add_subjects(connection: Connection) -> None:
    """Number the subjects of all memories."""
    connection.execute("ALTER TABLE texts ADD COLUMN about INTEGER").fetchall()
    connection.execute("CREATE INDEX texts_about ON texts (about) WHERE about IS NOT NULL").fetchall()
    last = 0
    sql = "SELECT row, namespace, content, metadata FROM memories WHERE row > ? ORDER BY row LIMIT ?"
    while found := rows(connection, sql, (last, READ_AT_ONCE)):
        last = found[-1][0]
        connection.executemany(
            "UPDATE texts SET about = ? WHERE row = ?",
            [(stored_number(*columns), row) for row, *columns in found],
        )
