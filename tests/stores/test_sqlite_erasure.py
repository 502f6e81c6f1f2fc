"""Forgotten is forgotten: not a byte in the file, the log, the indexes or the vocabulary."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest
from sqlite_cases import embed, note, put, raw_bytes, text_of, vectors_of

from recollect.domain.changes import AddLink, Erase, Put
from recollect.domain.errors import Conflict
from recollect.domain.memory import Link, Memory
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.sqlite import gaps, open_sqlite


def canary(number: int) -> str:
    return f"zq{random.Random(number).getrandbits(64):016x}kx"


@pytest.mark.covers("more.forget")
def test_nothing_is_left_of_erased_memories(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    rng = np.random.default_rng(1)
    written = [
        note(f"n{n}", f"we met {canary(n)} in town {n}", tags=(canary(1000 + n),), source=canary(2000 + n), key=f"k{n}")
        for n in range(60)
    ]
    put(store, *written)
    vectors = {memory.id: rng.standard_normal(8).astype(np.float32) for memory in written}
    for memory in written:
        embed(store, memory, *vectors[memory.id].tolist())
    store.records.write([AddLink(Link("n1", "see-also", "n2"))])
    assert canary(3).encode() in raw_bytes(path)
    gone, kept = written[:40], written[40:]
    for memory in gone:
        store.records.write([Erase(memory.id)])
    left = raw_bytes(path)
    for n in range(40):
        assert not any(canary(base + n).encode() in left for base in (0, 1000, 2000)), n
        assert vectors[f"n{n}"].tobytes() not in left
    assert all(vectors[memory.id].tobytes() in left for memory in kept)
    connection = apsw.Connection(str(path))
    terms = {term for (term,) in connection.execute("SELECT term FROM vocabulary")}
    words = {word for (word,) in connection.execute("SELECT word FROM words")}
    connection.close()
    assert {canary(50), canary(1050), "met", "town"} <= words
    assert not {canary(base + n) for base in (0, 1000) for n in range(40)} & (terms | words)
    assert store.care.check() == []
    store.close()


@pytest.mark.covers("more.forget")
def test_an_edited_text_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    memory = note("a", f"the code is {canary(1)}")
    put(store, memory)
    embed(store, memory, 0.25, 0.5)
    store.records.write([Put(replace(memory, content=f"the code is {canary(2)}"), expected_version=1)])
    left = raw_bytes(path)
    assert canary(2).encode() in left
    assert canary(1).encode() not in left
    assert np.array([0.25, 0.5], dtype=np.float32).tobytes() not in left
    assert text_of(store).similar(canary(1), 0.9, 5) == []
    assert store.care.check() == []
    store.close()


@pytest.mark.covers("more.forget")
@pytest.mark.parametrize("times", [60, 130, 300, 5_000])
def test_a_word_that_a_changed_memory_says_often_leaves_the_index_with_it(tmp_path: Path, times: int) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    memory = note("a", f"{canary(1)} " * times)
    put(store, memory, note("b", f"{canary(2)} " * times))
    for version, id in ((1, "a"), (1, "b"), (2, "a")):
        again = replace(store.records.fetch([id])[0], tags=(f"v{version}",))
        store.records.write([Put(again, expected_version=version)])
    store.records.write([Erase("a"), Put(note("b", "of something else"), expected_version=2)])
    assert text_of(store).frequencies([canary(1), canary(2), "els"]) == [0, 0, 1]
    assert store.care.check() == []
    assert canary(1).encode() not in raw_bytes(path)
    store.close()


def moved_about(store: Store) -> list[str]:
    """Long and short texts, of which SQLite moves some from page to page; what only those say that are gone."""
    rng = random.Random(2)
    live: dict[str, Memory] = {}
    gone: list[str] = []
    for number in range(120):
        written = [
            note(f"n{number}-{n}", f"{canary(1000 * number + n)} {'of the house ' * rng.choice([2, 7, 90])}")
            for n in range(4)
        ]
        put(store, *written)
        live.update({memory.id: memory for memory in written})
        erased = rng.sample(sorted(live), 3)
        gone += [live.pop(id).content.split()[0] for id in erased]
        store.records.write([Erase(id) for id in erased])
    return gone


@pytest.mark.covers("more.forget")
def test_nothing_is_left_in_the_unused_room_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    gone = moved_about(store)
    left = raw_bytes(path)
    assert [word for word in gone if word.encode() in left] == []
    assert store.care.check() == []
    store.close()


@pytest.mark.covers("more.forget")
def test_the_unused_room_of_a_large_file_is_cleared_by_tidy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MOST_PAGES", 0)
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    gone = moved_about(store)
    assert any(word.encode() in raw_bytes(path) for word in gone)
    assert store.care.tidy()["purged"] == 1
    left = raw_bytes(path)
    assert [word for word in gone if word.encode() in left] == []
    assert store.care.check() == [] and store.care.tidy()["purged"] == 0
    store.close()


@pytest.mark.covers("more.forget")
def test_a_reader_in_the_way_only_delays_the_purge(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", f"met {canary(1)}"), note("b", "stays"))
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchall()
    store.records.write([Erase("a")])
    assert canary(1).encode() in raw_bytes(path)
    reader.close()
    assert store.care.tidy()["purged"] == 1
    assert canary(1).encode() not in raw_bytes(path)
    assert store.care.tidy()["purged"] == 0
    store.close()


@pytest.mark.covers("more.forget")
def test_the_tombstone_is_no_copy_and_still_holds(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", canary(7)))
    store.records.write([Erase("a")])
    assert canary(7).encode() not in raw_bytes(path)
    store.close()
    store = open_sqlite(path)
    with pytest.raises(Conflict):
        put(store, note("b", f"  {canary(7).upper()} "))
    put(store, note("c", canary(7), namespace="other"))
    store.close()


@pytest.mark.covers("more.forget")
def test_a_saved_vector_index_goes_with_an_erasure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 2)
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    memories = [note(f"n{n}", f"text {n}") for n in range(3)]
    put(store, *memories)
    for n, memory in enumerate(memories):
        embed(store, memory, 1.0, float(n))
    query = np.array([1.0, 0.0], dtype=np.float32)
    vectors_of(store).search("m", query, Filter(), 3)
    store.care.tidy()
    assert [file.stat().st_mode & 0o777 for file in tmp_path.glob("*.codes")] == [0o600]
    store.close()
    store = open_sqlite(path)
    assert [hit.id for hit in vectors_of(store).search("m", query, Filter(), 1)] == ["n0"]
    store.records.write([Erase("n0")])
    assert not list(tmp_path.glob("*.codes"))
    assert [hit.id for hit in vectors_of(store).search("m", query, Filter(), 1)] == ["n1"]
    store.close()


def test_common_words_survive_an_erasure(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "running and runs"), note("b", "we run"), note("c", "he runs"))
    store.records.write([Erase("a")])
    assert [word for word, _ in text_of(store).similar("runs", 0.2, 5)] == ["runs", "run"]
    assert text_of(store).match(Term("running"), Filter(), 5).frequencies.tolist() == [2.0]
    store.close()


def test_a_word_that_was_counted_is_forgotten_with_the_last_memory_that_held_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.fulltext.COMMON_COUNT", 2)
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, *(note(f"n{n}", f"met {canary(1)}") for n in range(3)), note("stays", "met nobody"))
    assert text_of(store).frequencies([canary(1), "met"]) == [3, 4]
    put(store, note("more", f"met {canary(1)}"))  # by now both are counted by every write
    connection = apsw.Connection(str(path))
    counted = "SELECT term, memories FROM common_terms ORDER BY term"
    assert connection.execute(counted).fetchall() == [("met", 5), (canary(1), 4)]
    others = [Put(note(f"other{n}", "met somebody")) for n in range(5)]  # one word comes up while the other goes
    store.records.write([Erase("more"), *(Erase(f"n{n}") for n in range(3)), *others])
    assert connection.execute(counted).fetchall() == [("met", 6)]
    connection.close()
    assert canary(1).encode() not in raw_bytes(path)
    put(store, note("again", f"met {canary(1)} once more"))
    assert text_of(store).frequencies([canary(1), "met"]) == [1, 7]
    assert store.care.check() == []
    store.close()


def test_a_page_that_is_not_what_it_seems_is_left_alone() -> None:
    size, cells = 64, (50, 56)
    sound = bytearray(size)
    sound[0], sound[3:5], sound[5:7] = 13, (2).to_bytes(2, "big"), (50).to_bytes(2, "big")
    sound[8:12] = b"".join(place.to_bytes(2, "big") for place in cells)
    assert gaps.gap_of(bytes(sound), 0) == (12, 50)
    damaged = bytearray(sound)
    damaged[8:10] = (20).to_bytes(2, "big")  # a cell in what is said to be unused
    overflow = (7).to_bytes(4, "big") + b"x" * (size - 4)
    beyond = bytearray(sound)
    beyond[5:7] = (size + 1).to_bytes(2, "big")
    assert {gaps.gap_of(bytes(page), 0) for page in (damaged, overflow, beyond)} == {(0, 0)}
