"""The lists in memory say how often a memory holds a term, whatever was written since they were made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest import MonkeyPatch
from sqlite_cases import note, put

from recollect.domain.changes import Erase, Put
from recollect.stores.sqlite import finding, open_sqlite, postings
from recollect.stores.sqlite.connection import Connection, Readers
from recollect.stores.sqlite.postings import MOST_TIMES, Postings


def test_terms_are_counted_and_the_counts_follow_every_change(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    readers = Readers(str(path), read_only=True)
    old = Postings()

    def listed(postings: Postings, term: str = "deploi") -> dict[int, tuple[int, int]]:
        with readers.reading() as connection:
            one = postings.term(connection, term, postings.view(connection))
        return dict(zip(one.found.tolist(), zip(one.times.tolist(), one.in_tags.tolist()), strict=True))

    def matching(postings: Postings) -> list[int]:
        with readers.reading() as connection:
            return postings.rows(connection, '{content tags} : "deploy"', postings.view(connection)).tolist()

    put(store, note("a", "deploy"), note("b", "nothing"), note("c", "deployed, deploying deploys", tags=("deploy",)))
    assert listed(old) == {1: (1, 0), 3: (4, 1)}
    put(store, note("d", "no deploy", tags=("deploy", "to-deploy")), note("e", "deploy " * 300))
    assert listed(old) == listed(Postings()) == {1: (1, 0), 3: (4, 1), 4: (3, 2), 5: (MOST_TIMES, 0)}
    assert listed(old, "nowher") == {} and matching(old) == [1, 3, 4, 5]
    put(store, note("f", "of other things"))
    assert listed(old, "nowher") == {} and listed(old) == listed(Postings())
    held = store.records.fetch(["c"])[0]
    store.records.write([Put(replace(held, content="deploy once"), expected_version=1), Erase("a")])
    assert listed(old) == listed(Postings()) == {3: (2, 1), 4: (3, 2), 5: (MOST_TIMES, 0)}
    store.records.write([Put(replace(store.records.fetch(["b"])[0], content="to deploy"), expected_version=1)])
    put(store, note("g", "deploy it"))
    assert listed(old) == listed(Postings()) == {2: (1, 0), 3: (2, 1), 4: (3, 2), 5: (MOST_TIMES, 0), 7: (1, 0)}
    assert matching(old) == matching(Postings()) == [2, 3, 4, 5, 7]
    readers.close()
    store.close()


def test_a_changed_text_mends_the_lists_and_many_make_them_anew(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    readers = Readers(str(path), read_only=True)
    lists, whole = Postings(), list[str]()

    def watched(connection: Connection, term: str, after: int, top: int) -> Any:
        whole.extend([term] if (after, top) == (-1, 60) else [])
        return holding(connection, term, after, top)

    holding = postings._holding
    monkeypatch.setattr(postings, "_holding", watched)

    def listed() -> list[int]:
        with readers.reading() as connection:
            return lists.term(connection, "deploi", lists.view(connection)).found.tolist()

    def change(first: int, last: int) -> None:
        for id in map(str, range(first, last)):
            store.records.write([Put(replace(store.records.fetch([id])[0], content=f"note {id}"), expected_version=1)])

    put(store, *(note(str(n), f"deploy {n}") for n in range(60)))
    assert listed() == list(range(1, 61)) and whole == ["deploi"]
    change(0, 3)
    assert listed() == list(range(4, 61)) and whole == ["deploi"], "three texts are looked at, not the whole list"
    change(3, 40)
    assert listed() == list(range(41, 61)) and whole == ["deploi"] * 2
    readers.close()
    store.close()


def test_a_search_that_looks_at_an_earlier_state_sees_no_later_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    readers = Readers(str(path), read_only=True)
    postings = Postings()
    put(store, note("a", "deploy"))
    with readers.reading() as early:
        before = postings.view(early)
        put(store, note("b", "deploy deploy"))
        with readers.reading() as late:
            assert postings.term(late, "deploi", postings.view(late)).found.tolist() == [1, 2]
        seen = postings.term(early, "deploi", before)
        assert [one.tolist() for one in (seen.found, seen.times, seen.in_tags)] == [[1], [1], [0]]
    readers.close()
    store.close()


def test_a_list_that_is_read_in_pieces_is_the_same(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, *(note(str(n), "deploy" if n % 10 == 0 else "wait") for n in range(1, 121)))
    readers = Readers(str(tmp_path / "s.db"), read_only=True)

    def listed() -> list[int]:
        lists = Postings()
        with readers.reading() as connection:
            return lists.term(connection, "deploi", lists.view(connection)).found.tolist()

    assert listed() == list(range(10, 121, 10))
    monkeypatch.setattr(postings, "LISTED_AT_ONCE", 25)
    assert listed() == list(range(10, 121, 10))
    readers.close()
    store.close()


def test_lengths_are_those_of_the_texts_whether_read_as_one_value_or_row_by_row(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    """Stretches of four rows: one whole and short, one with a long text, one with an erased memory, one cut off."""
    monkeypatch.setattr(postings, "MEASURED_AT_ONCE", 4)
    store = open_sqlite(tmp_path / "s.db")
    sizes = [1, 2, 3, 4, 5, 300, 7, 8, 9, 10, 11, 12, 13, 14]
    memories = [note(f"n{row}", "word " * size, tags=("a tag",)) for row, size in enumerate(sizes, 1)]
    put(store, *memories)
    store.records.write([Erase("n10")])
    own, readers = Postings(), Readers(str(tmp_path / "s.db"), read_only=True)
    with readers.reading() as connection:
        lengths = own.lengths(connection, own.view(connection))
    readers.close()
    expected = [0 if row == 10 else size + 2 for row, size in enumerate(sizes, 1)]
    assert lengths.tolist() == [0, *expected]
    store.close()


@pytest.mark.parametrize("held", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("sampled", [0, 1, 9])
def test_the_heaviest_rows_are_those_that_sorting_all_finds(held: float, equal: bool, sampled: int) -> None:
    """Also where the sample sees nothing of them, or promises too much."""
    rng = np.random.default_rng(5)
    for size in (0, 1, 90, 20_000):
        weight = (rng.integers(1, 4, size) if equal else rng.random(size)).astype(np.float32)
        weight[rng.random(size) >= held] = 0
        weight[:: finding.SAMPLED] *= sampled
        for wanted in (1, 40, 500):
            best = np.argsort(-weight, kind="stable")[:wanted]
            found = finding._heaviest(weight, wanted)[:wanted]
            assert sorted(found.tolist()) == sorted(best[weight[best] > 0].tolist())


def test_lists_of_words_that_nobody_uses_are_bounded_too(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "KEPT_ROWS", 2_000)
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "deploy"))
    readers, kept = Readers(str(tmp_path / "s.db"), read_only=True), Postings()
    with readers.reading() as connection:
        for number in range(100):
            assert not len(kept.term(connection, f"unheard{number}", kept.view(connection)).found)
    assert len(kept._lists) <= 20  # pyright: ignore[reportPrivateUsage]
    readers.close()
    store.close()
