"""Reading ahead: which words are listed before anybody asks, when, and that no answer changes."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pytest import MonkeyPatch
from sqlite_cases import note, put, text_of

from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import load
from recollect.stores.sqlite import finding, open_sqlite, postings, warming, words
from recollect.stores.sqlite.connection import Connection

QUESTION = Or((Term("commonly"), Term("frequent"), Term("rare")))


@pytest.fixture
def listed(monkeypatch: MonkeyPatch) -> list[str]:
    """The terms that were listed so far. A hundred memories are a large store here, where half of them are too many
    for a list."""
    terms: list[str] = []
    listing = postings._holding

    def watched(connection: Connection, term: str, after: int, top: int) -> object:
        terms.append(term)
        return listing(connection, term, after, top)

    monkeypatch.setattr(postings, "_holding", watched)
    monkeypatch.setattr(finding, "LARGE_INDEX", 100)
    monkeypatch.setattr(finding, "COUNTED_SCOPE", 10)
    for name, value in {"LARGE_INDEX": 100, "FOUND_POSTINGS": 40, "FOUND_SHARE": 0.5, "STEP_ROWS": 1}.items():
        monkeypatch.setattr(warming, name, value)
    return terms


def fill(store: Store, first: int, last: int) -> None:
    """Every memory holds "the", every third "commonly", every tenth "frequent", every hundredth "rare"."""
    held = {1: "the", 3: "commonly", 10: "frequent", 100: "rare"}
    put(
        store,
        *(note(f"n{n}", " ".join(word for each, word in held.items() if n % each == 0)) for n in range(first, last)),
    )


def test_common_words_are_listed_ahead_word_by_word_but_none_that_would_not_find(
    tmp_path: Path, listed: list[str]
) -> None:
    store = open_sqlite(tmp_path / "s.db")
    fill(store, 1, 121)
    assert [store.warm(), list(listed)] == [True, ["commonli"]]
    assert [store.warm(), store.warm(), listed] == [False, False, ["commonli", "frequent"]]
    matches = text_of(store).match(QUESTION, Filter(), 10)
    assert listed == ["commonli", "frequent", "rare"], "what was listed ahead is not listed again"
    store.close()
    with_lists, without = matches, text_of(fresh := open_sqlite(tmp_path / "s.db")).match(QUESTION, Filter(), 10)
    assert with_lists.ids == without.ids and with_lists.counts.tolist() == without.counts.tolist()
    assert with_lists.frequencies.tolist() == without.frequencies.tolist() == [40, 12, 1]
    fresh.close()


def test_a_small_store_needs_no_lists_and_one_that_has_doubled_gets_new_ones(tmp_path: Path, listed: list[str]) -> None:
    store = open_sqlite(tmp_path / "s.db")
    fill(store, 1, 91)
    assert not store.warm() and not listed
    fill(store, 91, 121)
    while store.warm():
        pass
    assert listed == ["commonli", "frequent"]
    fill(store, 121, 220)
    assert not store.warm() and len(listed) == 2
    fill(store, 220, 401)
    while store.warm():
        pass
    assert "rare" in listed
    assert text_of(store).match(QUESTION, Filter(), 10).frequencies.tolist() == [133, 40, 4]
    store.close()


def test_the_vocabulary_of_a_large_store_is_read_ahead_in_pieces(
    tmp_path: Path, listed: list[str], monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "READ_WORDS", 2)
    store = open_sqlite(tmp_path / "s.db")
    fill(store, 1, 121)
    assert [store.warm(), store.warm(), list(listed)] == [True, True, []], "two words, two words, then the lists"
    assert store.warm() and listed
    expected = [("frequent", 1.0)]
    assert text_of(store).similar("frequent", 0.9, 5) == expected
    put(store, note("new", "frequency frequents"))
    assert text_of(store).similar("frequent", 0.6, 5) == [*expected, ("frequents", 0.7)], "also what came since"
    store.close()


def test_what_is_listed_ahead_is_bounded(tmp_path: Path, listed: list[str], monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "LISTED_ROWS", 45)
    store = open_sqlite(tmp_path / "s.db")
    fill(store, 1, 121)
    while store.warm():
        pass
    assert listed == ["commonli"]
    store.close()


def test_an_engine_that_stays_reads_ahead_in_the_background(tmp_path: Path) -> None:
    left, done = [True, True], threading.Event()

    def warm() -> bool:
        if not left:
            done.set()
        return bool(left) and left.pop()

    store = open_sqlite(tmp_path / "s.db")
    with Engine(replace(store, warm=warm), load(home=tmp_path), background=True):
        assert done.wait(20), "step by step, until nothing is left"
    store = open_sqlite(tmp_path / "t.db")
    with Engine(replace(store, warm=pytest.fail), load(home=tmp_path), background=False) as engine:
        engine.recall("anything")
