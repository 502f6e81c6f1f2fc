"""What is asked before writes: who holds a key or a text, what may say the same, what lies behind a tombstone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from recollect.domain.gist import gist
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import tombstone_hash
from recollect.stores.gists import Text, lookups_of
from recollect.stores.postgres.connection import Connection, one, rows


def look_up(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
    """The answers for all of them, by a few statements."""
    return lookups_of(
        wanted,
        _keys(connection, namespace, wanted),
        _alike(connection, namespace, wanted),
        _buried(connection, namespace, wanted),
    )


def _keys(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> dict[str, str]:
    keys = [one.key for one in wanted if one.key is not None]
    sql = "SELECT key, id FROM memories WHERE namespace = %s AND key = ANY (%s)"
    return dict(rows(connection, sql, (namespace, keys))) if keys else {}


def _alike(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> dict[int, list[Text]]:
    asked = [(place, gist(one.content), one.project) for place, one in enumerate(wanted) if one.content is not None]
    found: dict[int, list[Text]] = defaultdict(list)
    if asked:
        sql = (
            "SELECT u.place, m.id, m.type, m.session, m.content FROM unnest(%s::int[], %s::bigint[], %s::text[])"
            " AS u (place, gist, project) JOIN memories m ON m.namespace = %s AND m.text_hash = u.gist"
            " AND m.project IS NOT DISTINCT FROM u.project ORDER BY m.id"
        )
        for place, id, type, session, content in rows(
            connection, sql, (*[list(column) for column in zip(*asked)], namespace)
        ):
            found[place].append((id, type, session, content))
    return found


def _buried(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> set[int]:
    asked = [(place, one.content) for place, one in enumerate(wanted) if one.content is not None]
    if not asked or not one(connection, "SELECT EXISTS (SELECT 1 FROM tombstones WHERE namespace = %s)", (namespace,)):
        return set()
    secret = bytes(one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'"))
    hashes = [tombstone_hash(content, namespace, secret) for _, content in asked]
    sql = "SELECT hash FROM tombstones WHERE namespace = %s AND hash = ANY (%s)"
    found = {bytes(hashed) for (hashed,) in rows(connection, sql, (namespace, hashes))}
    return {place for (place, _), hashed in zip(asked, hashes) if hashed in found}
