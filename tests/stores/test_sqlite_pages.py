"""A page of a large store costs a page: by the steps of SQLite's machine, never by time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest
from sqlite_cases import damage, note, put, vectors_of

from recollect.domain.changes import Erase, Put
from recollect.domain.memory import content_hash
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.sqlite import checks, open_sqlite

SIZES = (200, 2_000)


@contextmanager
def filled(path: Path, **counts: int) -> Iterator[Store]:
    """A store with so many memories in each namespace, whose ids alternate as those of several tenants do."""
    with closing(open_sqlite(path)) as store:
        for namespace, count in counts.items():
            put(
                store,
                *(note(f"{number:05}-{namespace}", f"fact {number}", namespace=namespace) for number in range(count)),
            )
        yield store


def steps(store: Store, work: Callable[[], object]) -> int:
    taken = 0

    def step() -> bool:
        nonlocal taken
        taken += 1
        return False

    with store.care._readers.reading() as connection:  # type: ignore[attr-defined]
        connection.set_progress_handler(step, 1)
    work()
    with store.care._readers.reading() as connection:  # type: ignore[attr-defined]
        connection.set_progress_handler(None)
    assert taken > 0
    return taken


@pytest.mark.parametrize("after", [None, "00100-a"])
@pytest.mark.parametrize("others", [0, 5])
def test_a_page_by_id_does_not_walk_the_namespace(tmp_path: Path, after: str | None, others: int) -> None:
    taken: list[int] = []
    for size in SIZES:
        with filled(tmp_path / f"{size}.db", a=size, b=others) as store:
            taken.append(steps(store, lambda store=store: store.records.scan(Filter("a"), "id", 10, after)))
    assert taken[1] < 2 * taken[0]


def test_a_page_of_a_small_namespace_does_not_walk_the_others(tmp_path: Path) -> None:
    taken: list[int] = []
    for size in SIZES:
        with filled(tmp_path / f"{size}.db", a=size, b=20) as store:
            taken.append(steps(store, lambda store=store: store.records.scan(Filter("b"), "id", 10, "00010-b")))
    assert taken[1] < 2 * taken[0]


def touched(store: Store, work: Callable[[], object]) -> int:
    """How many pages of the file are looked at."""

    def looks() -> int:
        with store.care._readers.reading() as connection:  # type: ignore[attr-defined]
            return sum(
                connection.status(kind)[0] for kind in (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
            )

    before = looks()
    work()
    return looks() - before


def test_stats_read_no_texts_and_no_vectors_that_are_known(tmp_path: Path) -> None:
    page = "word " * 700
    with filled(tmp_path / "store.db", a=1) as store:
        memories = [note(f"m{number}", page, type=("fact", "odd", "rare")[number % 3]) for number in range(300)]
        put(store, *memories)
        vectors_of(store).put(
            "m", [Embedded(one.id, content_hash(one.content), np.ones((1, 900), np.float32)) for one in memories]
        )
        vectors_of(store).search("m", np.ones(900, np.float32), Filter(), 1)
        assert touched(store, store.care.stats) < 100
        stats = store.care.stats()
        assert (dict(stats.types), stats.vectors) == ({"fact": 101, "odd": 100, "rare": 100}, 300)
        store.records.write([Erase("m0"), Put(replace(memories[1], type="fact"), expected_version=1)])
        stats = store.care.stats()
        assert (dict(stats.types), stats.vectors) == ({"fact": 101, "odd": 99, "rare": 100}, 299)


def test_stats_are_true_without_the_help_of_the_index(tmp_path: Path) -> None:
    types = {f"type {number}": 1 for number in range(60)}
    with filled(tmp_path / "store.db") as store:
        put(store, *(note(f"m{number}", "fact", type=type) for number, type in enumerate(types)))
        assert dict(store.care.stats().types) == types, "more types than are looked for"
    damage(tmp_path / "store.db", "DELETE FROM fulltext_data WHERE id > 10")
    with closing(open_sqlite(tmp_path / "store.db")) as store:
        assert dict(store.care.stats().types) == types


def test_stats_add_up_the_types_of_all_namespaces(tmp_path: Path) -> None:
    with filled(tmp_path / "store.db", a=3, b=2) as store:
        put(store, note("m", "fact", type="odd", namespace="b"))
        assert dict(store.care.stats().types) == {"fact": 5, "odd": 1}


@pytest.mark.parametrize("check", [checks._vectors, checks._outbox])
def test_what_is_checked_is_not_kept_in_memory(tmp_path: Path, check: checks.Check) -> None:
    with filled(tmp_path / "store.db", default=3_000) as store:
        memories = store.records.scan(Filter(), "id", 3_000)
        put_all = [Embedded(one.id, content_hash(one.content), np.ones((1, 2), np.float32)) for one in memories[:2_000]]
        vectors_of(store).put("m", put_all)
        with store.care._readers.reading() as connection:  # type: ignore[attr-defined]
            tracemalloc.start()
            assert list(check(connection)) == []
            used = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert used < 20 * len(memories)
