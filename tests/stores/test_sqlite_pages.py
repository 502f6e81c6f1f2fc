"""A page of a large store costs a page: by the steps of SQLite's machine, never by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlite_cases import note, put

from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite

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
