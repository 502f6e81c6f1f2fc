"""Which memories are about a thing: a number for each subject beside the token stream, with an index on it."""

from __future__ import annotations

import hashlib
import json

from recollect.domain.memory import Memory
from recollect.domain.subjects import Words, subject, subject_of
from recollect.stores.sqlite.connection import Connection, rows

READ_AT_ONCE = 1_000


def subject_number(memory: Memory) -> int | None:
    """The number of what a memory is about; None where it does not say."""
    return number_of(memory.scope.namespace, subject(memory))


def number_of(namespace: str, words: Words) -> int | None:
    """63 bits of a name within a namespace: two names share a number hardly ever, and no two tenants share any."""
    if not words:
        return None
    named = f"{namespace} {' '.join(words)}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little") >> 1


def add_subjects(connection: Connection) -> None:
    """The step that teaches an older file what its memories are about."""
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


def stored_number(namespace: str, content: str, metadata: str) -> int | None:
    """The number of a memory's subject from its columns."""
    title = json.loads(metadata).get("title")
    return number_of(namespace, subject_of(content, title if isinstance(title, str) else ""))
