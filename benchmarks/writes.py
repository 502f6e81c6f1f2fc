"""Durable writes with 1, 4 and 16 writers beside one commit for each, and imports beside bare tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import Path
from typing import Any

import apsw

from benchmarks import corpus, stores
from benchmarks.machine import fsync_ms
from benchmarks.timing import Once, summary
from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import Settings
from recollect.stores.sqlite import open_sqlite
from recollect.writing import Draft

WRITERS = (1, 4, 16)
SAME_ROWS = "one commit each, the same rows"
BARE_ROWS = "one commit each, bare"


def measure_writes(folder: Path, count: int) -> dict[str, Any]:
    """Single durable writes; every writer waits for its own before it sends the next.

    Two baselines commit each write by itself. The promise is judged against the one that writes the same rows into the
    same tables; the bare one keeps neither indexes nor token streams nor counts, and shows what those cost.
    """
    rounds = len(WRITERS) + 2
    memories = [memory for piece in corpus.make(count * rounds).memories() for memory in piece]
    some = [memories[number * count : (number + 1) * count] for number in range(rounds)]
    results: dict[str, Any] = {"fsync_p50_ms": fsync_ms(folder)}
    with counted_commits() as commits:
        store = stores.open_waiting(folder / "writes.db")
        for writers, mine in zip(WRITERS, some):
            before = commits.total
            results[f"{writers} writers"] = _write_from(store, mine, writers)
            synced = (commits.total - before) * 1000 / count
            results[f"{writers} writers"]["synced_commits_per_1000"] = round(synced)
        store.close()
    same = stores.SameRows(folder / "writes-same.db")
    results[SAME_ROWS] = _one_by_one(same.write, some[-2])
    same.close()
    bare = stores.open_bare(folder / "writes-bare.db")
    numbers = count_from(1)
    results[BARE_ROWS] = _one_by_one(lambda memory: stores.write_bare_row(bare, next(numbers), memory), some[-1])
    bare.close()
    results["fsync_p50_ms_after"] = fsync_ms(folder)
    return results


@dataclass
class Commits:
    """How often any connection of this process has committed; in WAL mode with FULL each commit is one sync."""

    total: int = 0

    def watch(self, connection: apsw.Connection) -> None:
        connection.set_commit_hook(self._one_more)

    def _one_more(self) -> bool:
        self.total += 1
        return False


@contextmanager
def counted_commits() -> Generator[Commits]:
    """Count the commits of all connections that are opened meanwhile."""
    commits = Commits()
    apsw.connection_hooks.append(commits.watch)
    try:
        yield commits
    finally:
        apsw.connection_hooks.remove(commits.watch)


def _one_by_one(write: Callable[[Memory], object], memories: Sequence[Memory]) -> dict[str, Any]:
    wall: list[float] = []
    with Once() as took:
        for memory in memories:
            began = time.perf_counter()
            write(memory)
            wall.append(time.perf_counter() - began)
    return _rate(wall, took, len(memories))


def _write_from(store: Store, memories: Sequence[Memory], writers: int) -> dict[str, Any]:
    wall: list[float] = []

    def work(mine: Sequence[Memory]) -> None:
        for memory in mine:
            began = time.perf_counter()
            store.records.write([Put(memory)])
            wall.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(memories[place::writers],)) for place in range(writers)]
    with Once() as took:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return _rate(wall, took, len(memories))


def _rate(wall: list[float], took: Once, count: int) -> dict[str, Any]:
    times = summary(wall, [took.cpu / count])
    return {
        "per_s": round(count / took.wall, 1),
        "p50_ms": times.p50,
        "p99_ms": times.p99,
        "cpu_ms_each": round(took.cpu / count * 1000, 3),
    }


def measure_library(folder: Path, settings: Settings, count: int) -> dict[str, Any]:
    """What a caller of the library gets: remember_many with the search for near-duplicates and without."""
    results: dict[str, Any] = {}
    memories = [memory for piece in corpus.make(count).memories() for memory in piece]
    for name, dedupe in (("remember_many", True), ("remember_many, no dedupe", False)):
        store = open_sqlite(folder / f"library-{dedupe}.db")
        with Engine(store, settings, None, None, background=False) as engine:
            drafts = [Draft(**fields) for fields in corpus.draft_fields(memories)]  # pyright: ignore
            with Once() as took:
                engine.remember_many(drafts, dedupe=dedupe, now=corpus.NOW)
        results[name] = {"per_s": round(count / took.wall, 1), "cpu_us_each": round(took.cpu / count * 1e6, 1)}
    return results
