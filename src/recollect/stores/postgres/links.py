"""Links between memories, and the turns around a turn."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain.errors import Corrupt
from recollect.domain.memory import EPISODE, Link
from recollect.domain.times import from_ms
from recollect.stores.postgres.connection import rows
from recollect.stores.postgres.replica import Reads
from recollect.stores.sqlite.links import link_checksum

LINKS = """
SELECT l.source, l.type, l.target, l.created_at, l.checksum, a.id, b.id
FROM (
    SELECT l.* FROM memories m JOIN links l ON l.namespace = m.namespace AND l.source = m.number
    WHERE m.id = ANY (%(ids)s)
    UNION
    SELECT l.* FROM memories m JOIN links l ON l.namespace = m.namespace AND l.target = m.number
    WHERE m.id = ANY (%(ids)s)
) l
JOIN memories a ON a.namespace = l.namespace AND a.number = l.source
JOIN memories b ON b.namespace = l.namespace AND b.number = l.target
ORDER BY l.created_at, a.id, l.type, b.id
"""

# The turns of one conversation around each of some turns, on either side nearest first. An index serves the order.
_SIDE = """
    SELECT m.id FROM memories m
    WHERE m.namespace = t.namespace AND m.session = t.session AND m.project IS NOT DISTINCT FROM t.project
    AND m.type = %(type)s AND (m.created_at, m.number) {side} (t.created_at, t.number)
    ORDER BY m.created_at {way}, m.number {way} LIMIT %({most})s
"""
AROUND = f"""
SELECT t.id, ARRAY({_SIDE.format(side="<", way="DESC", most="before")}),
ARRAY({_SIDE.format(side=">", way="ASC", most="after")})
FROM memories t WHERE t.id = ANY (%(ids)s) AND t.type = %(type)s AND t.session IS NOT NULL
"""


class PostgresLinks:
    """The LinkIndex port."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def links(self, ids: Sequence[str]) -> list[Link]:
        if not ids:
            return []
        found = self._reads.read(lambda connection: rows(connection, LINKS, {"ids": list(ids)}))
        if any(link_checksum(*row[:4]) != row[4] for row in found):
            raise Corrupt("a link fails its checksum", "run doctor with repair")
        return [Link(row[5], row[1], row[6], from_ms(row[3])) for row in found]

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        if not ids:
            return {}
        asked = {"ids": list(ids), "type": EPISODE, "before": max(before, 0), "after": max(after, 0)}
        found: dict[str, list[tuple[int, str]]] = {}
        for id, earlier, later in self._reads.read(lambda connection: rows(connection, AROUND, asked)):
            around = [(-place, other) for place, other in enumerate(earlier, start=1)][::-1]
            around += enumerate(later, start=1)
            if around:
                found[id] = around
        return found
