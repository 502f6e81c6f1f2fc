"""Unlike pieces of work in one commit: none of them undoes what another one has counted or asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlite_cases import damage, embed, note, put, raw_bytes, vectors_of
from test_sqlite_writer import Held

from recollect.domain.changes import Erase
from recollect.domain.errors import Conflict, Corrupt, RecollectError
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.repairs import Broken, repairs
from recollect.stores.sqlite.writer import Writer


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    opened = open_sqlite(tmp_path / "s.db")
    put(opened, note("a", "the first one"), note("b", "the second one"))
    request.addfinalizer(opened.close)
    return opened


def in_one_group(store: Store, works: Sequence[Callable[[], object]]) -> list[type[RecollectError] | None]:
    """Have everybody's work done in this order and in one commit; what each of them was told."""
    held = Held(store)
    told: list[type[RecollectError] | None] = [None] * len(works)

    def run(place: int) -> None:
        try:
            works[place]()
        except RecollectError as error:
            told[place] = type(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for place, thread in enumerate(threads):
        thread.start()
        while len(held.writer._line) <= place:  # type: ignore[attr-defined]
            threading.Event().wait(0.001)
    held.release()
    for thread in threads:
        thread.join()
    return told


def a_conflict(store: Store) -> Callable[[], None]:
    """With one of these in a group, everybody gets a savepoint."""
    return lambda: put(store, note("b", "a second time"))


def repair_all(writing: Writing) -> None:
    for work in repairs({"pages"}, Broken()):
        work(writing)


@pytest.mark.parametrize("refused", [False, True])
def test_a_repair_counts_everything_once(store: Store, refused: bool) -> None:
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    embed(store, note("a", "the first one"), 1.0, 0.0)
    works = [
        lambda: put(store, note("c", "the third one")),
        lambda: embed(store, note("b", "the second one"), 0.0, 1.0),
        *([a_conflict(store)] if refused else []),
        lambda: writer.run(repair_all),
        lambda: put(store, note("d", "the fourth one")),
    ]
    told = in_one_group(store, works)
    assert [one for one in told if one is not None] == ([Conflict] if refused else [])
    assert store.care.check() == []
    assert (store.care.stats().memories, vectors_of(store).progress("m").done) == (4, 2)


@pytest.mark.parametrize("refused", [False, True])
def test_vectors_that_are_dropped_at_once_are_not_counted(store: Store, refused: bool) -> None:
    embed(store, note("a", "the first one"), 1.0, 0.0)
    works = [
        lambda: embed(store, note("b", "the second one"), 0.0, 1.0),
        *([a_conflict(store)] if refused else []),
        lambda: vectors_of(store).forget("m"),
        lambda: embed(store, note("a", "the first one"), 1.0, 0.0),
    ]
    in_one_group(store, works)
    progress = vectors_of(store).progress("m")
    assert (progress.done, progress.pending) == (1, 1)
    assert store.care.check() == []


def test_tidying_up_beside_an_erasure_leaves_nothing_of_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 2)
    embed(store, note("a", "the first one"), 1.0, 0.0)
    embed(store, note("b", "the second one"), 0.0, 1.0)
    vectors_of(store).search("m", np.array([1.0, 0.0], dtype=np.float32), Filter(), 2)
    store.care.tidy()
    assert list(tmp_path.glob("*.codes"))
    in_one_group(store, [lambda: store.records.write([Erase("b")]), store.care.tidy])
    assert not list(tmp_path.glob("*.codes"))
    assert b"second" not in raw_bytes(tmp_path / "s.db")
    assert store.care.check() == []


def test_a_memory_that_cannot_be_read_is_the_trouble_of_whoever_asks_for_it(store: Store, tmp_path: Path) -> None:
    damage(tmp_path / "s.db", "UPDATE memories SET content = CAST(x'ff' AS TEXT) WHERE id = 'a'")
    told = in_one_group(
        store, [lambda: put(store, note("c", "sound")), lambda: store.records.write([Erase("a")]), a_conflict(store)]
    )
    assert told == [None, Corrupt, Conflict]
    assert [memory.id for memory in store.records.fetch(["b", "c"])] == ["b", "c"]
