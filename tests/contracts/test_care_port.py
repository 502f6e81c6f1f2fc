"""Care: honest figures, a clean bill of health, settings that persist, copies that can be opened."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from contract_cases import ALL, embedded, ids, note, one, put

from recollect.domain.changes import AddLink, Erase, Put, SetSetting, Touch
from recollect.domain.errors import Conflict, InvalidInput
from recollect.domain.memory import EPOCH, Link
from recollect.domain.query import Term
from recollect.ports import Store, VectorIndex
from recollect.stores.memory import open_memory


def test_an_empty_store_counts_nothing(store: Store) -> None:
    stats = store.care.stats()
    assert (stats.memories, stats.tombstones, stats.links, stats.vectors) == (0, 0, 0, 0)
    assert (dict(stats.types), dict(stats.projects)) == ({}, {})
    assert stats.kind
    assert stats.location
    assert stats.engine_version
    assert (dict(store.care.size().namespaces), store.care.size().memories) == ({}, 0)
    assert store.care.settings() == {}
    assert store.care.check() == []


def test_stats_count_the_whole_store(store: Store, vectors: VectorIndex) -> None:
    first = note("a", type="decision", project="p")
    put(store, first, note("b", type="odd", namespace="n", project="p"), note("c", project="q"), note("d"))
    put(store, note("e", "erased"), note("f", "erased"), note("g", "erased", namespace="n"), note("h", "not buried"))
    store.records.write([Erase("e"), Erase("f"), Erase("g"), Erase("h", tombstone=False)])
    store.records.write([AddLink(Link("a", "see-also", "c")), AddLink(Link("a", "part-of", "c"))])
    vectors.put("one", [embedded(first, [1, 0], [0, 1], passages=((0, 1), (1, 2)))])
    vectors.put("two", [embedded(first, [1, 0, 0])])
    stats = store.care.stats()
    assert (stats.memories, stats.tombstones, stats.links, stats.vectors) == (4, 2, 2, 3)
    assert dict(stats.types) == {"decision": 1, "odd": 1, "fact": 2}
    assert dict(stats.projects) == {"p": 2, "q": 1}
    assert stats.bytes > 0
    size = store.care.size()
    assert (dict(size.namespaces), size.memories, size.bytes) == ({"default": 3, "n": 1}, 4, stats.bytes)


def test_settings_are_set_replaced_and_removed(store: Store) -> None:
    store.records.write(
        [SetSetting("weight", 0.5), SetSetting("deep", {"list": [1, (2, 3)]}), SetSetting("off", False)]
    )
    assert store.care.settings() == {"weight": 0.5, "deep": {"list": [1, [2, 3]]}, "off": False}
    store.records.write([SetSetting("weight", 2), SetSetting("deep", None), SetSetting("never there", None)])
    assert store.care.settings() == {"weight": 2, "off": False}


def test_settings_are_private_copies(store: Store) -> None:
    given = [1]
    store.records.write([SetSetting("list", given)])
    given.append(2)
    store.care.settings()["list"].append(3)
    assert store.care.settings() == {"list": [1]}


def test_settings_must_be_json(store: Store) -> None:
    for value in (object(), float("inf")):
        with pytest.raises(InvalidInput):
            store.records.write([SetSetting("bad", value)])
    assert store.care.settings() == {}


def test_a_used_store_is_healthy_and_care_changes_nothing(store: Store, vectors: VectorIndex) -> None:
    memories = [note(f"m{number}", f"text number {number}", tags=("tag",)) for number in range(20)]
    put(store, *memories)
    vectors.put("model", [embedded(memory, [1, 0]) for memory in memories[:10]])
    store.records.write([Erase("m3"), Put(note("m4", "changed"), expected_version=1), Touch(("m5",), EPOCH, count=1)])
    store.records.write([AddLink(Link("m1", "see-also", "m2"))])
    assert store.text is not None

    def answers() -> object:
        assert store.text is not None
        east = np.array([1, 0], dtype=np.float32)
        found = sorted(store.text.match(Term("text"), ALL, 100).ids)
        return store.records.scan(ALL), found, vectors.search("model", east, ALL, 100), vectors.progress("model")

    before = answers()
    assert [finding for finding in store.care.check() if finding.severity != "info"] == []
    assert [finding for finding in store.care.check(repair=True) if finding.severity != "info"] == []
    assert all(isinstance(count, int) for count in store.care.tidy().values())
    assert answers() == before


def test_a_check_sees_no_ghosts_of_what_was_there_before(store: Store) -> None:
    """Checking, changing and tidying in turn raises no alarm.

    SQLite's integrity_check trusts what its connection remembers of an FTS5 index that another connection has changed
    since; a full-text query on the same connection, just before the check, makes it look again.
    """
    for number in range(20):
        put(store, note(f"m{number}", f"word{number} common"))
        if number % 3 == 0:
            store.records.write([Erase(f"m{number}")])
        assert [finding for finding in store.care.check() if finding.severity != "info"] == []
        store.care.tidy()


def test_a_backup_opens_with_everything_in_it(copied_backend, tmp_path: Path) -> None:
    source = copied_backend.open(tmp_path / "source.db")
    memory = note("a", "some text", key="k")
    put(source, memory, note("b", "buried"))
    source.records.write([Erase("b"), SetSetting("weight", 1)])
    source.vectors.put("model", [embedded(memory, [1, 0])])
    source.care.backup(tmp_path / "copy.db")
    put(source, note("later"))
    source.close()
    copy = copied_backend.open(tmp_path / "copy.db")
    assert copy.records.scan(ALL) == [memory]
    assert copy.records.lookup("default", content="buried").buried
    assert copy.text.match(Term("text"), ALL, 10).ids == ("a",)
    assert copy.vectors.progress("model").done == 1
    assert copy.care.settings() == {"weight": 1}
    assert [finding for finding in copy.care.check() if finding.severity != "info"] == []
    copy.close()


def test_a_store_without_a_file_refuses_to_be_backed_up(uncopied_backend, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    store = uncopied_backend.open(tmp_path / "store.db")
    with pytest.raises(InvalidInput) as caught:
        store.care.backup(target)
    store.close()
    assert "export" in caught.value.hint.lower()
    assert not target.exists()


def run_together(jobs: list) -> None:
    """Run all jobs at once; the first error of any is raised here."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def guarded(job) -> None:
        start.wait()
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    # Threads that change places all the time meet each other in every gap there is.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    if errors:
        raise errors[0]


def test_threads_write_and_read_together(store: Store) -> None:
    def writer(name: str):
        def write() -> None:
            for number in range(15):
                put(store, note(f"{name}{number:02}", f"words by {name}"))
                assert store.text is not None
                assert len(store.text.match(Term(name), ALL, 100).ids) == number + 1
                assert store.text.similar(name, 0.9, 3)[0][0] == name

        return write

    run_together([writer(name) for name in ("alpha", "beta", "gamma", "delta")])
    assert len(store.records.scan(ALL)) == 60


def test_no_update_is_lost(store: Store) -> None:
    put(store, note("counter", "0"))

    def count() -> None:
        done = 0
        while done < 10:
            seen = one(store, "counter")
            try:
                store.records.write([Put(note("counter", str(int(seen.content) + 1)), expected_version=seen.version)])
                done += 1
            except Conflict:
                continue

    run_together([count] * 4)
    assert (one(store, "counter").content, one(store, "counter").version) == ("40", 41)


def test_of_many_writers_of_one_key_or_text_one_wins(store: Store) -> None:
    named: list[str | None] = []

    def write(name: str, key: str | None):
        def attempt() -> None:
            try:
                store.records.write([Put(note(name, "one text", key=key), once=key is None)])
            except Conflict as conflict:
                named.append(conflict.existing_id)

        return attempt

    run_together([write(f"k{number}", "key") for number in range(6)])
    run_together([write(f"t{number}", None) for number in range(6)])
    (winner,) = ids(store.records.scan(ALL))
    assert winner.startswith("k")
    assert named == [winner] * 11


def test_tombstones_move_to_another_store_with_their_key(store: Store) -> None:
    put(store, note("a", "forgotten here"), note("b", "forgotten there", namespace="n"), note("c", "kept"))
    store.records.write([Erase("a"), Erase("b"), Erase("c", tombstone=False)])
    other = open_memory()
    other.care.bury(store.care.graves())
    assert other.care.graves() == store.care.graves() and len(other.care.graves().hashes) == 2
    with pytest.raises(Conflict):
        put(other, note("x", " Forgotten HERE"))
    put(other, note("y", "forgotten there"), note("z", "kept"))

    third = open_memory()
    put(third, note("d", "forgotten elsewhere"))
    third.records.write([Erase("d")])
    with pytest.raises(Conflict, match="of its own"):
        store.care.bury(third.care.graves())
    with pytest.raises(Conflict, match="of its own"):
        third.care.bury(store.care.graves())


def test_an_empty_store_takes_tombstones_over(store: Store) -> None:
    other = open_memory()
    put(other, note("a", "forgotten"), note("b", "also forgotten"))
    other.records.write([Erase("a")])
    for _ in range(2):
        store.care.bury(other.care.graves())
        with pytest.raises(Conflict):
            put(store, note("x", "forgotten"))
        assert store.records.lookup("default", content="forgotten").buried
    put(store, note("x", "also forgotten"))
    store.records.write([Erase("x")])
    assert len(store.care.graves().hashes) == 2 and store.care.check() == []
    store.care.bury(other.care.graves())
    assert len(store.care.graves().hashes) == 2, "what was forgotten here stays so"
