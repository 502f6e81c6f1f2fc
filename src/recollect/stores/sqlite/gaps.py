"""The unused room within the file's pages: SQLite leaves there what it moved to another page, also with secure_delete.

Whatever was forgotten may lie there still. These bytes mean nothing, so they are overwritten in the file itself: by
who keeps all others from writing, while the log is empty.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, cast

import apsw

from recollect.stores.sqlite.connection import Connection, one

GAPS = "gaps"
"""The counter that tells whether some are still to be cleared."""
MOST_PAGES = 4_096
"""A file of so many (32 MB) is looked through within every write that erases; a larger one by `tidy`."""
PAGES_AT_ONCE = 64
FILE_HEADER = 100
TREE_PAGES = {2: 12, 5: 12, 10: 8, 13: 8}
"""The first byte of a page of a tree, and how long its header is."""
TOO_MANY_PAGES = 2 << 24
"""Other pages begin with the number of a page: from so many on (268 GB) it may look like the first byte of a tree's."""


def clear_gaps(connection: Connection, path: Path, *, large: bool) -> bool:
    """Overwrite the unused room of every page, of a large file only where that is asked for; whether the log is empty.

    The commit that follows makes the other connections read the pages anew; this one has nothing in memory.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    pages = one(connection, "PRAGMA page_count")
    is_put_off = not large and pages > MOST_PAGES
    # With auto_vacuum, which we never set, there are pages of another kind that begin like those of a tree.
    if not is_put_off and pages < TOO_MANY_PAGES and not one(connection, "PRAGMA auto_vacuum"):
        _clear(path, one(connection, "PRAGMA page_size"))
    sql = "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
    connection.execute(sql, (GAPS, int(is_put_off)))
    return True


def _clear(path: Path, size: int) -> None:
    # By SQLite's own means: to close a file of one's own would let go of the locks that this process has on it.
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    file = cast(Any, apsw.VFSFile("", str(path), flags))
    try:
        total, changed = file.xFileSize(), False
        for first in range(0, total, size * PAGES_AT_ONCE):
            pages = file.xRead(min(size * PAGES_AT_ONCE, total - first), first)
            for at in range(0, len(pages) - size + 1, size):
                start, stop = gap_of(pages[at : at + size], FILE_HEADER if first + at == 0 else 0)
                cleared = bytes(stop - start)
                if pages[at + start : at + stop] != cleared:
                    file.xWrite(cleared, first + at + start)
                    changed = True
        if changed:
            file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()


def gap_of(page: bytes, header: int) -> tuple[int, int]:
    """Where the unused room of a page begins and ends: between the places of its cells and the first of them.

    Nothing where a cell lies within it: then the page is damaged, or none of a tree.
    """
    length = TREE_PAGES.get(page[header])
    if length is None:
        return 0, 0
    cells = int.from_bytes(page[header + 3 : header + 5], "big")
    stop = int.from_bytes(page[header + 5 : header + 7], "big") or 65_536
    start = header + length + 2 * cells
    if not start < stop <= len(page):
        return 0, 0
    first = min(struct.unpack_from(f">{cells}H", page, header + length), default=stop)
    return (start, stop) if first >= stop else (0, 0)
