"""Durable writes with 1, 4 and 16 writers beside one commit for each, and imports beside bare tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from benchmarks import corpus, stores
from benchmarks.machine import fsync_ms
from benchmarks.timing import Once, summary
from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import Settings
from recollect.writing import Draft

WRITERS = (1, 4, 16)
ROUNDS = 4
SAME_ROWS = "one commit each, the same rows"
BARE_ROWS = "one commit each, bare"


def measure_writes(folder: Path, count: int) -> dict[str, Any]:
    """Single durable writes; every writer waits for its own before it sends the next.

    Two baselines commit each write by itself. The promise is judged against the one that writes the same rows into the
    same tables; the bare one keeps neither indexes nor token streams nor counts, and shows what those cost. All take
    turns, a few writes at a time, so that a disk that is slow for a while is slow for everybody; what has to be copied
    from SQLite's log into the file is copied during these turns, by whoever wrote it.
    """
    each = max(1, count // ROUNDS)
    memories = (memory for piece in corpus.make(each * ROUNDS * (len(WRITERS) + 2)).memories() for memory in piece)
    totals: dict[str, Total] = {}
    syncs: list[float] = []
    with counted_commits() as commits:
        store = stores.open_waiting(folder / "writes.db")
        same = stores.SameRows(folder / "writes-same.db")
        bare, numbers = stores.open_bare(folder / "writes-bare.db"), count_from(1)
        ways: dict[str, Callable[[Sequence[Memory]], tuple[list[float], Once]]] = {
            **{f"{writers} writers": partial(_write_from, store, writers=writers) for writers in WRITERS},
            SAME_ROWS: partial(_one_by_one, same.write),
            BARE_ROWS: partial(_one_by_one, lambda memory: stores.write_bare_row(bare, next(numbers), memory)),
        }
        for _ in range(ROUNDS):
            syncs.append(fsync_ms(folder))
            for name, write in ways.items():
                before = commits.total
                totals.setdefault(name, Total()).add(write(list(islice(memories, each))), commits.total - before)
        for closing in (store, same, bare):
            closing.close()
    found = {name: total.figures() for name, total in totals.items()}
    return {"fsync_p50_ms": round(float(np.median(syncs)), 3), **found}


@dataclass
class Total:
    """The turns of one way of writing."""

    wall: list[float] = field(default_factory=list[float])
    took: Once = field(default_factory=Once)
    commits: int = 0

    def add(self, turn: tuple[list[float], Once], commits: int) -> None:
        wall, took = turn
        self.wall += wall
        self.took.wall, self.took.cpu = self.took.wall + took.wall, self.took.cpu + took.cpu
        self.commits += commits

    def figures(self) -> dict[str, Any]:
        count = len(self.wall)
        times = summary(self.wall, [self.took.cpu / count])
        return {
            "per_s": round(count / self.took.wall, 1),
            "p50_ms": times.p50,
            "p99_ms": times.p99,
            "cpu_ms_each": round(self.took.cpu / count * 1000, 3),
            "synced_commits_per_1000": round(self.commits * 1000 / count),
        }


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


def _one_by_one(write: Callable[[Memory], object], memories: Sequence[Memory]) -> tuple[list[float], Once]:
    wall: list[float] = []
    with Once() as took:
        for memory in memories:
            began = time.perf_counter()
            write(memory)
            wall.append(time.perf_counter() - began)
    return wall, took


def _write_from(store: Store, memories: Sequence[Memory], writers: int) -> tuple[list[float], Once]:
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
    return wall, took


def measure_library(store: Store, settings: Settings, size: int, count: int) -> dict[str, Any]:
    """What a caller of the library gets in a store that holds so many: every draft is checked for what may not be
    stored and for secrets, with the search for duplicates and without."""
    found: dict[str, Any] = {}
    memories = [memory for piece in corpus.make(count * 2, seed=size).memories() for memory in piece]
    engine = Engine(store, settings, None, None, background=False)
    for name, dedupe, some in (
        ("checked", True, memories[:count]),
        ("checked, duplicates kept", False, memories[count:]),
    ):
        drafts = [Draft(**fields) for fields in corpus.draft_fields(some)]  # pyright: ignore
        with Once() as took:
            engine.remember_many(drafts, dedupe=dedupe, now=corpus.NOW)
        found[f"{name}, per_s"] = round(count / took.wall)
    return found
