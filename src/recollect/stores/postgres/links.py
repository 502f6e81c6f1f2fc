"""Links between memories, and the turns around a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from recollect.domain.errors import Corrupt
from recollect.domain.memory import EPISODE, Link
from recollect.domain.times import from_ms
from recollect.ports import MOST_LINKS
from recollect.stores.checksums import link_checksum
from recollect.stores.postgres.replica import Reads

# Each way by itself, through its index: a planner that joins them all at once thinks longer than it reads.
_WAY = """
    SELECT l.* FROM unnest(%(ids)s::text[]) u (id),
    LATERAL (SELECT m.namespace, m.number FROM memories m WHERE m.id = u.id OFFSET 0) m,
    LATERAL (SELECT l.* FROM links l WHERE l.namespace = m.namespace AND l.{end} = m.number
        AND (%(types)s::text[] IS NULL OR l.type = ANY (%(types)s)) {bound} OFFSET 0) l
"""
NAMED = """
SELECT l.source, l.type, l.target, l.created_at, l.checksum, a.id, b.id FROM ({}) l,
LATERAL (SELECT a.id FROM memories a WHERE a.namespace = l.namespace AND a.number = l.source OFFSET 0) a,
LATERAL (SELECT b.id FROM memories b WHERE b.namespace = l.namespace AND b.number = l.target OFFSET 0) b
"""
_BOTH = f"{_WAY.format(end='source', bound='{bound}')} UNION {_WAY.format(end='target', bound='{bound}')}"
IN_TIME = "ORDER BY l.created_at, a.id, l.type, b.id"
SOME = f"{NAMED.format(_BOTH.format(bound='LIMIT %(limit)s + 1'))} {IN_TIME}"
"""All links, where no memory has more than it may have of a single type."""
_NEWEST = """
    SELECT l.namespace, l.source, l.type, l.target, l.created_at, l.checksum FROM (
        SELECT l.*, row_number() OVER (
            PARTITION BY l.namespace, l.{end}, l.type ORDER BY l.created_at DESC, l.{other} DESC) AS place
        FROM (SELECT DISTINCT * FROM ({way}) l) l
    ) l WHERE place <= %(limit)s
"""
_MANY = " UNION ".join(
    _NEWEST.format(end=end, other=other, way=_WAY.format(end=end, bound=""))
    for end, other in (("source", "target"), ("target", "source"))
)
MANY = f"{NAMED.format(_MANY)} {IN_TIME}"
LEAVING = f"""
{NAMED.format(_WAY.format(end="source", bound=""))}
WHERE (l.type, b.id) > (%(type)s COLLATE "C", %(target)s COLLATE "C") ORDER BY l.type, b.id LIMIT %(limit)s
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
FROM unnest(%(ids)s::text[]) u (id), LATERAL (SELECT * FROM memories t WHERE t.id = u.id OFFSET 0) t
WHERE t.type = %(type)s AND t.session IS NOT NULL
"""


class PostgresLinks:
    """The LinkIndex port."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def links(self, ids: Sequence[str], types: Sequence[str] = (), limit: int = MOST_LINKS) -> list[Link]:
        if not ids or limit <= 0:
            return []
        asked = {"ids": list(ids), "types": list(types) or None, "limit": limit}
        found = self._reads.ask(SOME, asked)
        if len(found) > limit:
            ends = Counter(("source", row[0]) for row in found) + Counter(("target", row[2]) for row in found)
            if max(ends.values()) > limit:
                found = self._reads.ask(MANY, asked)
        return _sound(found)

    def leaving(self, id: str, after: Link | None, limit: int) -> list[Link]:
        type, target = ("", "") if after is None else (after.type, after.target)
        asked = {"ids": [id], "types": None, "type": type, "target": target, "limit": max(limit, 0)}
        return _sound(self._reads.ask(LEAVING, asked))

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        if not ids:
            return {}
        asked = {"ids": list(ids), "type": EPISODE, "before": max(before, 0), "after": max(after, 0)}
        found: dict[str, list[tuple[int, str]]] = {}
        for id, earlier, later in self._reads.ask(AROUND, asked):
            around = [(-place, other) for place, other in enumerate(earlier, start=1)][::-1]
            around += enumerate(later, start=1)
            if around:
                found[id] = around
        return found


def _sound(found: Sequence[tuple[Any, ...]]) -> list[Link]:
    if any(link_checksum(*row[:4]) != row[4] for row in found):
        raise Corrupt("a link fails its checksum", "run doctor with repair")
    return [Link(row[5], row[1], row[6], from_ms(row[3])) for row in found]
