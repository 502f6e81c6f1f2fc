"""Which tables and indexes the pages of a commit belong to: `python -m benchmarks.pages`.

A commit writes every page it has changed into the log, so what it costs is how many of them there are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import cast
from unittest.mock import patch

import apsw

from benchmarks import corpus, stores
from recollect.domain.changes import Put

LOG_HEADER, FRAME_HEADER = 32, 24
"""Bytes before the first page of SQLite's log, and before each of them."""
NEVER = 1 << 40


def main() -> None:
    """Write groups of each size and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--memories", type=int, default=5_000, help="how many are there before")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--group", type=int, nargs="+", default=[1, 16], help="how many writes share a commit")
    given = parser.parse_args()
    found = {size: measure(given.memories, given.groups, size) for size in given.group}
    print(f"| pages of a commit of | {' | '.join(map(str, found))} |")
    print(f"|---|{'---|' * len(found)}")
    print(f"| all | {' | '.join(f'{sum(pages.values()):.1f}' for pages in found.values())} |")
    for name in sorted(set[str]().union(*found.values()), key=lambda name: -found[given.group[-1]][name]):
        print(f"| {name} | {' | '.join(f'{pages[name]:.1f}' for pages in found.values())} |")


def measure(before: int, groups: int, size: int) -> Counter[str]:
    """Pages of one commit by owner, the mean of many."""
    memories = (memory for piece in corpus.make(before + groups * size).memories() for memory in piece)
    with tempfile.TemporaryDirectory() as folder, patch("recollect.stores.sqlite.log.SOON_PAGES", NEVER):
        path = Path(folder) / "store.db"
        store, own = stores.open_waiting(path), apsw.Connection(str(path))
        for _ in range(before // 16):
            store.records.write([Put(memory) for memory in islice(memories, 16)])
        page_bytes = cast(int, own.execute("PRAGMA page_size").get)
        own.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # a connection that has read nothing knows no log
        own.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        for _ in range(groups):
            store.records.write([Put(memory) for memory in islice(memories, size)])
        found = cast("list[tuple[int, str]]", own.execute("SELECT pageno, name FROM dbstat").fetchall())
        owners = dict(found)
        written = _logged(path.with_name(f"{path.name}-wal"), page_bytes)
        own.close()
        store.close()
    pages = Counter(owners.get(page, "freed since") for page in written)
    return Counter({name: count / groups for name, count in pages.items()})  # pyright: ignore


def _logged(log: Path, page_bytes: int) -> list[int]:
    """The numbers of all pages in the log."""
    data = log.read_bytes()
    frames = range(LOG_HEADER, len(data), FRAME_HEADER + page_bytes)
    return [int.from_bytes(data[place : place + 4], "big") for place in frames]


if __name__ == "__main__":
    main()
