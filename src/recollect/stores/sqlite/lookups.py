"""What is asked before writes: who holds a key or a text, what may say the same, what lies behind a tombstone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from recollect.domain.gist import gist
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import tombstone_hash
from recollect.stores.gists import Text, lookups_of
from recollect.stores.sqlite.changes import tombstone_secret
from recollect.stores.sqlite.connection import Connection, one, rows


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
    if not keys:
        return {}
    sql = "SELECT m.key, m.id FROM json_each(?) j CROSS JOIN memories m ON m.namespace = ? AND m.key = j.value"
    return dict(rows(connection, sql, (json.dumps(keys), namespace)))


def _alike(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> dict[int, list[Text]]:
    asked = [(place, gist(one.content), one.project) for place, one in enumerate(wanted) if one.content is not None]
    found: dict[int, list[Text]] = defaultdict(list)
    if asked:
        sql = (
            "SELECT j.value ->> 0, m.id, m.type, m.session, m.content FROM json_each(?) j"
            " CROSS JOIN memories m INDEXED BY memories_text ON m.text_hash = j.value ->> 1"
            " WHERE m.namespace = ? AND m.project IS j.value ->> 2 ORDER BY m.id"
        )
        for place, id, type, session, content in rows(connection, sql, (json.dumps(asked), namespace)):
            found[place].append((id, type, session, content))
    return found


def _buried(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> set[int]:
    asked = [(place, one.content) for place, one in enumerate(wanted) if one.content is not None]
    if not asked:
        return set()
    secret = tombstone_secret(connection)  # without it nobody knows what was forgotten
    if not one(connection, "SELECT EXISTS (SELECT 1 FROM tombstones WHERE namespace = ?)", (namespace,)):
        return set()
    hashed = [(place, tombstone_hash(content, namespace, secret).hex()) for place, content in asked]
    sql = (
        "SELECT j.value ->> 0 FROM json_each(?) j"
        " CROSS JOIN tombstones t ON t.namespace = ? AND t.hash = unhex(j.value ->> 1)"
    )
    return {place for (place,) in rows(connection, sql, (json.dumps(hashed), namespace))}
