"""Durable writes with 1, 4 and 16 writers beside one commit for each, and imports beside bare tables."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from benchmarks import corpus, stores
from benchmarks.machine import fsync_ms
from benchmarks.timing import Once, summary
from recollect.domain.changes import Put
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import Settings
from recollect.stores.sqlite import open_sqlite
from recollect.writing import Draft

WRITERS = (1, 4, 16)


def measure_writes(folder: Path, count: int) -> dict[str, Any]:
    """Single durable writes; every writer waits for its own before it sends the next."""
    memories = [memory for piece in corpus.make(count * (len(WRITERS) + 1)).memories() for memory in piece]
    results: dict[str, Any] = {"fsync_p50_ms": fsync_ms(folder)}
    store = open_sqlite(folder / "writes.db")
    for number, writers in enumerate(WRITERS):
        results[f"{writers} writers"] = _write_from(store, memories[number * count : (number + 1) * count], writers)
    store.close()
    bare = stores.open_bare(folder / "writes-bare.db")
    wall: list[float] = []
    with Once() as took:
        for number, memory in enumerate(memories[-count:], start=1):
            began = time.perf_counter()
            with bare:
                row = stores.bare_row(number, memory)
                bare.execute(stores.BARE_INSERT, row)
                bare.execute("INSERT INTO fulltext (rowid, content, tags) VALUES (?, ?, ?)", (number, row[19], row[17]))
            wall.append(time.perf_counter() - began)
    results["one commit each, bare"] = _rate(wall, took, count)
    bare.close()
    results["fsync_p50_ms_after"] = fsync_ms(folder)
    return results


def _write_from(store: Store, memories: list[Any], writers: int) -> dict[str, Any]:
    wall: list[float] = []

    def work(mine: list[Any]) -> None:
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
