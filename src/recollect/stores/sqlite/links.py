"""Links between memories, kept by row number so that they go with either end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recollect.domain.errors import Corrupt
from recollect.domain.memory import Link
from recollect.domain.times import from_ms
from recollect.ports import MOST_LINKS
from recollect.stores.checksums import link_checksum
from recollect.stores.sqlite.connection import Readers, one, rows
from recollect.stores.sqlite.filters import is_turn

NAMED = """
SELECT l.source, l.type, l.target, l.created_at, l.checksum, a.id, b.id
FROM ({}) l CROSS JOIN memories a ON a.row = l.source CROSS JOIN memories b ON b.row = l.target
"""
ASKED = (
    "WITH asked AS MATERIALIZED (SELECT DISTINCT m.row FROM json_each(?1) j CROSS JOIN memories m ON m.id = j.value)"
)
IN_TIME = "ORDER BY l.created_at, a.id, l.type, b.id"
_SOME = """
    SELECT links.* FROM asked CROSS JOIN links ON links.source = asked.row {only}
    UNION ALL
    SELECT links.* FROM asked CROSS JOIN links ON links.target = asked.row {only} WHERE links.source NOT IN asked
    LIMIT ?2 + 1
"""
_WAY = """
    SELECT source, type, target, created_at, checksum FROM (
        SELECT links.*, row_number() OVER (PARTITION BY {end}, type ORDER BY created_at DESC, {other} DESC) AS place
        FROM asked CROSS JOIN links ON links.{end} = asked.row {{only}}
    ) WHERE place <= ?2
"""
_MANY = f"{_WAY.format(end='source', other='target')} UNION {_WAY.format(end='target', other='source')}"
_ONLY = ("", "AND links.type IN (SELECT value FROM json_each(?3))")
SOME, SOME_TYPED = (f"{ASKED} {NAMED.format(_SOME.format(only=only))} {IN_TIME}" for only in _ONLY)
"""All links, where they are not more than a single memory may have of a type: then none is too many."""
MANY, MANY_TYPED = (f"{ASKED} {NAMED.format(_MANY.format(only=only))} {IN_TIME}" for only in _ONLY)
LEAVING = f"""
{NAMED.format("SELECT links.* FROM memories m CROSS JOIN links ON links.source = m.row WHERE m.id = ?")}
WHERE (l.type, b.id) > (?, ?) ORDER BY l.type, b.id LIMIT ?
"""

# The turns of one conversation around each of some turns, on either side nearest first. An index serves the order.
_SIDE = """(
    SELECT json_group_array(id ORDER BY created_at {way}, row {way}) FROM (
        SELECT m.id, m.created_at, m.row FROM memories m
        WHERE m.namespace = t.namespace AND m.session = t.session AND m.project IS t.project AND m.type = 'episode'
        AND (m.created_at, m.row) {side} (t.created_at, t.row) AND m.created_at {bound} t.created_at
        ORDER BY m.created_at {way}, m.row {way} LIMIT {most}
    )
)"""
AROUND = f"""
SELECT json_group_array(json_array(t.id, json({_SIDE.format(side="<", bound="<=", way="DESC", most="?2")}),
json({_SIDE.format(side=">", bound=">=", way="ASC", most="?3")})))
FROM json_each(?1) j CROSS JOIN memories t ON t.id = j.value WHERE {is_turn("t")}
"""


class SqliteLinks:
    """The LinkIndex port."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def links(self, ids: Sequence[str], types: Sequence[str] = (), limit: int = MOST_LINKS) -> list[Link]:
        if not ids or limit <= 0:
            return []
        with self._readers.borrow() as connection:
            if not one(connection, "SELECT EXISTS (SELECT 1 FROM links)"):
                return []
            asked = (json.dumps(list(ids)), limit, *([json.dumps(list(types))] if types else []))
            found = rows(connection, SOME_TYPED if types else SOME, asked)
            if len(found) > limit:
                found = rows(connection, MANY_TYPED if types else MANY, asked)
        return _sound(found)

    def leaving(self, id: str, after: Link | None, limit: int) -> list[Link]:
        behind = ("", "") if after is None else (after.type, after.target)
        with self._readers.borrow() as connection:
            return _sound(rows(connection, LEAVING, (id, *behind, max(limit, 0))))

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        found: dict[str, list[tuple[int, str]]] = {}
        with self._readers.borrow() as connection:
            told = one(connection, AROUND, (json.dumps(list(ids)), max(before, 0), max(after, 0)))
        turns: list[tuple[str, list[str], list[str]]] = json.loads(told)
        for id, earlier, later in turns:
            around = [(-place, other) for place, other in enumerate(earlier, start=1)][::-1]
            around += enumerate(later, start=1)
            if around:
                found[id] = around
        return found


def _sound(found: Sequence[tuple[Any, ...]]) -> list[Link]:
    if any(link_checksum(*row[:4]) != row[4] for row in found):
        raise Corrupt("a link fails its checksum", "run doctor with repair")
    return [Link(row[5], row[1], row[6], from_ms(row[3])) for row in found]
