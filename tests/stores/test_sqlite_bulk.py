"""Insertions that callers prepare and the writer makes together leave the same file as changes made one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sqlite_cases import note, put, text_of, vectors_of
from test_sqlite_writer import write_together

from recollect.domain.changes import Change, Erase, Put
from recollect.domain.errors import Conflict
from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.stores.sqlite import fulltext, open_sqlite
from recollect.stores.sqlite import lexicon as lexicon_module
from recollect.stores.sqlite import writer as writer_module
from recollect.stores.sqlite.connection import connect
from recollect.stores.sqlite.lexicon import Lexicon
from recollect.stores.sqlite.writer import Writer
from recollect.stores.tokens import MARK

WORDS = [
    "running",
    "runs",
    "Straße",
    "naïve",
    "x_y",
    "ﬁne",
    "İstanbul",
    "ⅷ",
    "don't",
    "日本語",
    f"odd{MARK}mark",
    "the",
]
PLAIN_WORDS = ["running", "runs", "the", "fine", "x_y", "don't", "naive"]
"""Their hashes are made in one go; a single odd word has the whole text read slowly."""
TABLES = {
    "memories": "id, text_hash, checksum, content, namespace, project",
    "texts": "row, content_tokens, tokens, about",
    "indexed_texts": "row, content, tags, scope",
    "counters": "name, value",
    "namespaces": "namespace, memories",
    "common_terms": "term, memories",
    "words": "word",
    "vocabulary": "term, doc, cnt",
    "outbox": "model, row, attempts, retry_at",
}


def memories(seed: int, count: int) -> list[Memory]:
    chance = random.Random(seed)
    words = PLAIN_WORDS if seed >= 4 else WORDS
    return [
        note(
            f"m{number:03}",
            " ".join(chance.choices([*words, f"word{number}"], k=chance.randint(1, 12))),
            namespace=chance.choice(["a", "b"]),
            project=chance.choice([None, "p"]),
            tags=tuple(chance.sample(["one tag", "Two", "x" if seed >= 4 else f"x{MARK}y"], chance.randint(0, 2))),
            sensitive=chance.random() < 0.2,
        )
        for number in range(count)
    ]


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    connection = connect(str(path))
    found = {name: connection.execute(f"SELECT {cells} FROM {name} ORDER BY {cells}") for name, cells in TABLES.items()}
    found = {name: cursor.fetchall() for name, cursor in found.items()}
    connection.close()
    return found


def counting_terms(path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that counts the terms it was asked for, and in which a model waits for every memory."""
    monkeypatch.setattr(fulltext, "COMMON_COUNT", 1)
    store = open_sqlite(path)
    put(store, note("first", "running the fine naive", namespace="a"))
    assert vectors_of(store).missing("m", 1)
    text_of(store).frequencies(["run", "the", "naiv"])
    return store


@pytest.mark.parametrize("seed", range(6))
def test_together_and_one_by_one_leave_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    some = memories(seed, 150)
    # Memories are encoded and read by the caller in half of the cases, by the writer in the others.
    for bound in ("LIGHT_CHANGES", "LIGHT_CHARACTERS"):
        monkeypatch.setattr(writer_module, bound, (seed % 2) * 1_000_000)
    together = counting_terms(tmp_path / "together.db", monkeypatch)
    put(together, *some)
    assert together.care.check() == []
    together.close()
    monkeypatch.setattr(writer_module, "entries_of", lambda changes: None)
    apart = counting_terms(tmp_path / "apart.db", monkeypatch)
    for memory in some:
        put(apart, memory)
    apart.close()
    assert contents(tmp_path / "together.db") == contents(tmp_path / "apart.db")
    assert dict(contents(tmp_path / "apart.db")["common_terms"]).keys() == {"run", "the", "naiv"}


def test_a_group_that_a_conflict_undid_is_written_as_if_nothing_had_happened(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("taken", "here before"))
    lists: list[list[Change]] = [[Put(note(f"n{place}", f"zebra number {place}"))] for place in range(6)]
    lists.insert(3, [Put(note("lost", "okapi")), Put(note("taken", "okapi again"))])
    outcomes = write_together(store, lists)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [Conflict]
    assert text_of(store).frequencies(["zebra", "okapi"]) == [6, 0]
    assert text_of(store).similar("okapi", 0.9, 1) == []
    assert store.care.check() == []
    store.close()


@pytest.mark.parametrize("clash", ["id", "key", "text"])
def test_callers_that_want_the_same_are_not_both_served(tmp_path: Path, clash: str) -> None:
    store = open_sqlite(tmp_path / "s.db")
    wanted = [
        note("same" if clash == "id" else f"n{place}", "one text" if clash == "text" else f"text {place}",
             key="k" if clash == "key" else None)
        for place in range(3)
    ]  # fmt: skip
    outcomes = write_together(store, [[Put(memory, once=clash == "text")] for memory in wanted])
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "NoneType"]
    assert store.care.stats().memories == 1
    assert store.care.check() == []
    store.close()


def test_a_word_that_another_process_took_off_the_list_is_listed_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    first, second = open_sqlite(path), open_sqlite(path)
    put(first, note("a", "quetzal"))
    put(first, note("b", "something else"))
    second.records.write([Erase("a", tombstone=False)])
    assert text_of(second).similar("quetzal", 0.9, 1) == []
    put(first, note("c", "quetzal"))
    assert text_of(first).similar("quetzal", 0.9, 1) == [("quetzal", 1.0)]
    assert first.care.check() == []
    first.close()
    second.close()


def test_a_word_erased_while_another_caller_had_prepared_it_is_listed(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "quetzal"))
    outcomes = write_together(store, [[Erase("a", tombstone=False)], [Put(note("b", "quetzal"))]])
    assert outcomes == [None, None]
    assert text_of(store).similar("quetzal", 0.9, 1) == [("quetzal", 1.0)]
    assert store.care.check() == []
    store.close()


def test_a_term_that_another_process_counts_is_counted_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    monkeypatch.setattr(fulltext, "COMMON_COUNT", 1)
    first, second = open_sqlite(path), open_sqlite(path)
    put(first, note("a", "zebra"))
    text_of(second).frequencies(["zebra"])
    put(second, note("b", "zebra"))  # after it, the term is counted for certain
    put(first, note("c", "zebra"))
    assert text_of(first).frequencies(["zebra"]) == [3]
    assert first.care.check() == []
    first.close()
    second.close()


def test_a_failed_write_does_not_make_its_words_known(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "first"))
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    connection = writer._lend().__enter__()  # type: ignore[attr-defined]
    connection.set_commit_hook(lambda: True)  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="SQLite reports"):
        put(store, note("b", "quetzal"))
    connection.set_commit_hook(None)  # type: ignore[attr-defined]
    put(store, note("c", "quetzal"))
    assert text_of(store).similar("quetzal", 0.9, 1) == [("quetzal", 1.0)]
    assert store.care.check() == []
    store.close()


def test_an_import_is_one_piece_of_the_full_text_index(tmp_path: Path) -> None:
    """FTS5 writes out what it has gathered at every savepoint, and statements of several rows begin with one."""
    store = open_sqlite(tmp_path / "s.db")
    vectors_of(store).missing("m", 1)
    put(store, *(note(f"m{number:04}", f"text number {number}") for number in range(1_500)))
    store.close()
    connection = connect(str(tmp_path / "s.db"))
    assert connection.execute("SELECT count(DISTINCT segid) FROM fulltext_idx").get == 1
    connection.close()


class Interrupted(list[tuple[str, str]]):
    """Texts between which somebody else reads some of his own."""

    def __init__(self, texts: list[tuple[str, str]], lexicon: Lexicon) -> None:
        super().__init__(texts)
        self._lexicon = lexicon

    def __getitem__(self, which: Any) -> Any:
        if which.start == 1:
            self._lexicon.read([("walrus", "")])  # and does not come to write it
        return super().__getitem__(which)


def test_a_word_that_somebody_else_met_first_is_still_to_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon_module, "AT_ONCE", 1)
    lexicon = Lexicon()
    assert lexicon.read(Interrupted([("heron", ""), ("walrus", "")], lexicon)).words == {"heron", "walrus"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_text_that_was_read_in_part_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "alpha"))
    long = note("b", "alpha beta gamma delta " * 500)  # so that its own caller reads it
    noted = lexicon_module._Pieces.__missing__  # type: ignore[attr-defined]

    def missing(self: Any, word: str) -> bytes:
        if word == "gamma":
            raise error
        return noted(self, word)

    with monkeypatch.context() as broken:
        broken.setattr(lexicon_module._Pieces, "__missing__", missing)  # type: ignore[attr-defined]
        with pytest.raises(error):
            put(store, long)
    put(store, note("c", "beta and epsilon"))
    put(store, long)
    assert store.care.check() == []
    store.close()
