"""What is asked before writes: who holds a key or a text, what may say the same, what lies behind a tombstone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import tombstone_hash
from recollect.stores.gists import Finders, answers
from recollect.stores.sqlite.changes import tombstone_secret
from recollect.stores.sqlite.connection import Connection, one, rows


def look_up(connection: Connection, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
    """The answers for all of them, by a few statements."""

    def holders(keys: Sequence[str]) -> dict[str, str]:
        sql = "SELECT m.key, m.id FROM json_each(?) j CROSS JOIN memories m ON m.namespace = ? AND m.key = j.value"
        return dict(rows(connection, sql, (json.dumps(keys), namespace)))

    def texts(asked: Sequence[tuple[int, int, str | None]]) -> list[Any]:
        sql = (
            "SELECT j.value ->> 0, m.id, m.type, m.session, m.content FROM json_each(?) j"
            " CROSS JOIN memories m INDEXED BY memories_text ON m.text_hash = j.value ->> 1"
            " WHERE m.namespace = ? AND m.project IS j.value ->> 2 ORDER BY m.id"
        )
        return rows(connection, sql, (json.dumps(asked), namespace))

    def buried(asked: Sequence[tuple[int, str]]) -> set[int]:
        secret = tombstone_secret(connection)  # without it nobody knows what was forgotten
        if not one(connection, "SELECT EXISTS (SELECT 1 FROM tombstones WHERE namespace = ?)", (namespace,)):
            return set()
        hashed = [(place, tombstone_hash(content, namespace, secret).hex()) for place, content in asked]
        sql = (
            "SELECT j.value ->> 0 FROM json_each(?) j"
            " CROSS JOIN tombstones t ON t.namespace = ? AND t.hash = unhex(j.value ->> 1)"
        )
        return {place for (place,) in rows(connection, sql, (json.dumps(hashed), namespace))}

    return answers(wanted, Finders(holders, texts, buried))
