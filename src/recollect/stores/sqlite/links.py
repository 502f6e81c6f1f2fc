"""Links between memories, kept by row number so that they go with either end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from recollect.domain.errors import Corrupt
from recollect.domain.memory import Link
from recollect.stores.sqlite.connection import Readers, rows
from recollect.stores.sqlite.rows import from_ms

LINKS = """
SELECT l.source, l.type, l.target, l.created_at, l.checksum, a.id, b.id
FROM (
    SELECT links.* FROM links JOIN memories m ON m.row = links.source WHERE m.id IN (SELECT value FROM json_each(?1))
    UNION
    SELECT links.* FROM links JOIN memories m ON m.row = links.target WHERE m.id IN (SELECT value FROM json_each(?1))
) l JOIN memories a ON a.row = l.source JOIN memories b ON b.row = l.target
ORDER BY l.created_at, a.id, l.type, b.id
"""


def link_checksum(source: int, type: str, target: int, created_at: int) -> int:
    """CRC-32 over all columns of a link."""
    return zlib.crc32(repr((source, type, target, created_at)).encode())


class SqliteLinks:
    """The LinkIndex port."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def links(self, ids: Sequence[str]) -> list[Link]:
        if not ids:
            return []
        with self._readers.borrow() as connection:
            found = rows(connection, LINKS, (json.dumps(list(ids)),))
        if any(link_checksum(*row[:4]) != row[4] for row in found):
            raise Corrupt("a link fails its checksum", "run doctor with repair")
        return [Link(row[5], row[1], row[6], from_ms(row[3])) for row in found]
