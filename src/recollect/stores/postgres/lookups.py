"""What is asked before writes: who holds a key or a text, what may say the same, what lies behind a tombstone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import tombstone_hash
from recollect.stores.gists import Finders, answers
from recollect.stores.postgres.connection import Connection, one, rows


def look_up(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
    """The answers for all of them, by a few statements."""

    def holders(keys: Sequence[str]) -> dict[str, str]:
        sql = "SELECT key, id FROM memories WHERE namespace = %s AND key = ANY (%s)"
        return dict(rows(connection, sql, (namespace, list(keys))))

    def texts(asked: Sequence[tuple[int, int, str | None]]) -> list[Any]:
        sql = (
            "SELECT u.place, m.id, m.type, m.session, m.content FROM unnest(%s::int[], %s::bigint[], %s::text[])"
            " AS u (place, gist, project) JOIN memories m ON m.namespace = %s AND m.text_hash = u.gist"
            " AND m.project IS NOT DISTINCT FROM u.project ORDER BY m.id"
        )
        return rows(connection, sql, (*[list(column) for column in zip(*asked)], namespace))

    def buried(asked: Sequence[tuple[int, str]]) -> set[int]:
        exist = "SELECT EXISTS (SELECT 1 FROM tombstones WHERE namespace = %s)"
        if not one(connection, exist, (namespace,)):
            return set()
        secret = bytes(one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'"))
        hashes = [tombstone_hash(content, namespace, secret) for _, content in asked]
        sql = "SELECT hash FROM tombstones WHERE namespace = %s AND hash = ANY (%s)"
        found = {bytes(hashed) for (hashed,) in rows(connection, sql, (namespace, hashes))}
        return {place for (place, _), hashed in zip(asked, hashes) if hashed in found}

    return answers(wanted, Finders(holders, texts, buried))
