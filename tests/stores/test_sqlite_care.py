"""Check, repair and backup: damage is found and never served; what is derived can be made again."""

from __future__ import annotations

import fcntl
import os
import random
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from sqlite_cases import damage, embed, lose, note, put, text_of, vectors_of

from recollect.domain.changes import AddLink, Erase, Put, SetSetting
from recollect.domain.errors import Corrupt, InvalidInput, StoreUnavailable
from recollect.domain.memory import Link, Memory, content_hash
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.checksums import vector_checksum
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.checks import REPORTED
from recollect.writing import forget

QUERY = np.array([1.0, 0.0], dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def store(path: Path, request: pytest.FixtureRequest) -> Store:
    opened = open_sqlite(path)
    memories = [note(f"n{n}", f"winter notes {n} about hiking", tags=("walk",)) for n in range(20)]
    put(opened, *memories)
    for n, memory in enumerate(memories[:10]):
        embed(opened, memory, 1.0, float(n))
    opened.records.write([AddLink(Link("n1", "see-also", "n2"))])
    request.addfinalizer(opened.close)
    return opened


SOURCE_DAMAGE = [
    "UPDATE memories SET content = 'winter notes 3 about biking' WHERE id = 'n3'",
    "UPDATE memories SET importance = 0.9 WHERE id = 'n3'",
    "UPDATE memories SET accessed_at = 12345 WHERE id = 'n3'",
    "UPDATE memories SET project = 'other' WHERE id = 'n3'",
    "UPDATE memories SET tags = '[]' WHERE id = 'n3'",
]


@pytest.mark.parametrize("sql", SOURCE_DAMAGE)
def test_a_damaged_memory_is_reported_and_never_returned(path: Path, store: Store, sql: str) -> None:
    assert store.care.check() == []
    damage(path, sql)
    kinds = {finding.kind for finding in store.care.check()}
    assert "memory" in kinds
    with pytest.raises(Corrupt):
        store.records.fetch(["n3"])
    assert [memory.id for memory in store.records.fetch(["n4"])] == ["n4"]


DERIVED_DAMAGE = [
    ("tokens", "DELETE FROM texts WHERE row = 3"),
    ("tokens", "UPDATE texts SET tokens = x'000000000000000000000000' WHERE row = 3"),
    ("fulltext", "INSERT INTO fulltext (fulltext) VALUES ('delete-all')"),
    ("fulltext", "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) VALUES ('delete', 3, 'winter', '', '')"),
    ("counters", "UPDATE counters SET value = value + 1 WHERE name = 'tokens'"),
    ("counters", "UPDATE namespaces SET memories = 7"),
    ("counters", "INSERT INTO common_terms VALUES ('winter', 3)"),
    ("words", "DELETE FROM words WHERE word = 'hiking'"),
    ("vector", "UPDATE vectors SET data = zeroblob(8) WHERE rowid IN (SELECT min(place) FROM vectors)"),
    ("vector-orphan", "DELETE FROM memories WHERE id = 'n5'"),
    ("outbox", "DELETE FROM outbox WHERE row = 15"),
    ("outbox", "UPDATE memories SET embedded = 0 WHERE id = 'n2'"),
    ("text-hash", "UPDATE memories SET text_hash = 1 WHERE id = 'n2'"),
    ("link", "UPDATE links SET created_at = 5"),
]


@pytest.mark.parametrize(("kind", "sql"), DERIVED_DAMAGE, ids=[sql[:40] for _, sql in DERIVED_DAMAGE])
def test_drift_is_found_and_mended(path: Path, store: Store, kind: str, sql: str) -> None:
    damage(path, sql)
    found = store.care.check()
    assert kind in {finding.kind for finding in found}
    mended = store.care.check(repair=True)
    assert mended
    assert all(finding.repaired for finding in mended)
    assert store.care.check() == []
    found_now = text_of(store).match(Term("hiking"), Filter(), 50)
    assert len(found_now.ids) == found_now.frequencies[0] == store.care.stats().memories
    progress = vectors_of(store).progress("m")
    assert progress.done + progress.pending == store.care.stats().memories
    vectors_of(store).search("m", QUERY, Filter(), 20)


def test_flipped_bits_in_live_rows_are_found(tmp_path: Path) -> None:
    """Each flip hits a text or a vector inside the file; all are seen, and none is served."""
    chance = random.Random(3)
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    memories = [note(f"n{n:02d}", f"payload{n:02d} " * 40) for n in range(20)]
    put(store, *memories)
    for n, memory in enumerate(memories):
        embed(store, memory, *np.random.default_rng(n).standard_normal(32).tolist())
    store.close()
    whole = path.read_bytes()
    for n in range(20):
        wanted = f"payload{n:02d} payload{n:02d}".encode()
        vector = np.random.default_rng(n).standard_normal(32).astype(np.float32).tobytes()
        target = whole.index(wanted if n % 2 else vector)
        place = target + chance.randrange(len(wanted) if n % 2 else len(vector))
        broken = bytearray(whole)
        broken[place] ^= 1 << chance.randrange(8)
        (tmp_path / "broken.db").write_bytes(broken)
        opened = open_sqlite(tmp_path / "broken.db", read_only=True)
        assert opened.care.check(), n
        with pytest.raises(Corrupt):
            if n % 2:
                opened.records.fetch([f"n{n:02d}"])
            else:
                vectors_of(opened).similarities("m", np.ones(32, dtype=np.float32), [f"n{n:02d}"])
        opened.close()
        for rest in tmp_path.glob("broken.db*"):
            rest.unlink()


def test_a_backup_under_load_is_whole(path: Path, store: Store, tmp_path: Path) -> None:
    stop, written = threading.Event(), list[str]()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            store.records.write([Put(note(f"w{number}", f"written while copying {number}"))])
            written.append(f"w{number}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            before = list(written)
            store.care.backup(tmp_path / f"copy{number}.db")
            copy = open_sqlite(tmp_path / f"copy{number}.db")
            assert len(copy.records.fetch(before)) == len(before)
            assert copy.care.check() == []
            copy.close()
    finally:
        stop.set()
        thread.join()
    assert written
    assert not list(tmp_path.glob("*.tmp*"))


class Beset:
    """A copy in the making with a commit of somebody else after each of its steps."""

    def __init__(self, work: apsw.Backup, store: Store) -> None:
        self.work, self.store, self.steps = work, store, 0

    def __enter__(self) -> Beset:
        return self

    def __exit__(self, *error: object) -> None:
        self.work.close()

    @property
    def done(self) -> bool:
        return self.work.done

    def step(self, pages: int) -> None:
        self.work.step(pages)
        self.steps += 1
        assert self.steps < 20, "the copy begins anew after every commit"
        put(self.store, note(f"w{self.steps}", "written while copying"))


def test_a_backup_ends_however_often_others_write(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.records.write([SetSetting("large", "x" * 20_000_000)])  # it takes several steps

    class Busy(apsw.Connection):
        def backup(self, *names: Any) -> Any:  # type: ignore[override]
            return Beset(super().backup(*names), store)

    with monkeypatch.context() as beset:
        beset.setattr("apsw.Connection", Busy)
        store.care.backup(tmp_path / "copy.db")
    copy = open_sqlite(tmp_path / "copy.db")
    assert copy.care.stats().memories == 20
    assert copy.care.check() == []
    copy.close()


@pytest.mark.parametrize("harm", [SOURCE_DAMAGE[0], "UPDATE memories SET importance = 0.9 WHERE id = 'n3'"])
def test_a_backup_of_a_damaged_store_does_not_get_its_name(path: Path, store: Store, tmp_path: Path, harm: str) -> None:
    damage(path, harm)
    (tmp_path / "copy.db").write_bytes(b"the good old one")
    with pytest.raises(Corrupt):
        store.care.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_bytes() == b"the good old one"


def test_a_backup_is_refused_where_words_would_not_find_what_it_holds_and_not_for_a_wrong_count(
    path: Path, store: Store, tmp_path: Path
) -> None:
    damage(path, "UPDATE counters SET value = value + 1 WHERE name = 'documents'")
    store.care.backup(tmp_path / "copy.db")
    damage(path, "INSERT INTO fulltext (fulltext) VALUES ('delete-all')")
    with pytest.raises(Corrupt):
        store.care.backup(tmp_path / "other.db")


def test_a_backup_has_its_name_only_when_it_is_on_the_disk_and_the_name_is_too(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, synced, fsync = tmp_path / "copy.db", list[tuple[bool, bool]](), os.fsync

    def watched(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    store.care.backup(target)
    assert synced == [(False, False), (True, True)]


def test_a_closed_store_and_its_backups_leave_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.log.SOON_PAGES", 1)  # the log is copied by a connection of its own

    def live(name: str) -> None:
        store = open_sqlite(tmp_path / name)
        for number in range(3):
            put(store, note(f"n{number}", f"zebra {number}"))
        store.care.backup(tmp_path / "copy.db")
        store.close()

    live("first.db")
    before = len(list(Path("/dev/fd").iterdir()))
    live("second.db")
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_an_index_that_does_not_fit_its_table_is_damage(path: Path, store: Store) -> None:
    store.close()
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    other = "UPDATE sqlite_schema SET sql = replace(sql, '(text_hash)', '(version)') WHERE name = 'memories_text'"
    connection.execute(other)
    connection.close()
    opened = open_sqlite(path)
    assert {(finding.kind, finding.severity) for finding in opened.care.check()} == {("pages", "error")}
    opened.close()


def test_of_many_findings_of_a_kind_some_are_named_and_the_rest_is_counted(path: Path, store: Store) -> None:
    put(store, *(note(f"more{number}", f"one of many, {number}") for number in range(25)))
    damage(path, "UPDATE memories SET importance = 0.9 WHERE id LIKE 'more%'")
    damage(path, "UPDATE counters SET value = value + 1 WHERE name = 'documents'")
    damage(path, "DELETE FROM secrets WHERE name = 'tombstones'")
    findings = store.care.check()
    assert [finding.severity for finding in findings] == ["error"] * (REPORTED + 2) + ["warning"], "the worst first"
    told = [finding.detail for finding in findings if finding.kind == "memory"]
    assert len(told) == REPORTED + 1 and told[-1] == f"{25 - REPORTED} more of this kind"


KILLED_BACKING_UP = """
import os, signal, sys
from pathlib import Path
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.checks import REPORTED
def dies(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = dies
open_sqlite(sys.argv[1]).care.backup(Path(sys.argv[2]))
"""


def test_a_killed_backup_is_swept_up_by_the_next_one_and_nothing_else_is(
    path: Path, store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    command = [sys.executable, "-c", KILLED_BACKING_UP, str(path), str(folder / "monday.db")]
    assert subprocess.run(command, check=False).returncode == -9
    (left,) = folder.iterdir()
    (folder / f"{left.name}-journal").write_bytes(b"of the same copy")
    others = {".notes.tmp", ".monday.db.tmp", "monday.db.0123abcd.recollect.tmp", ".monday.db.0123abcd.recollect.tmp"}
    for name in others:
        (folder / name).write_text("not of a killed backup")
    with (folder / ".monday.db.0123abcd.recollect.tmp").open("rb") as still_made:
        fcntl.flock(still_made, fcntl.LOCK_EX)
        store.care.backup(folder / "tuesday.db")
        assert {file.name for file in folder.iterdir()} == {"tuesday.db", *others}
    link = folder / ".link.0123abcd.recollect.tmp"
    link.symlink_to(path)
    store.care.backup(folder / "tuesday.db")
    assert {file.name for file in folder.iterdir()} == {"tuesday.db", link.name, *others} - {
        ".monday.db.0123abcd.recollect.tmp"
    }


def test_a_store_is_not_replaced_by_its_own_backup(path: Path, store: Store, tmp_path: Path) -> None:
    """What others wrote while the copy was made would be gone."""
    (tmp_path / "link.db").symlink_to(path)
    for target in (path, tmp_path / "link.db", path.with_name(path.name + "-wal")):
        with pytest.raises(InvalidInput, match="the store itself"):
            store.care.backup(target)
    store.records.write([Put(Memory("after", "written after it"))])
    assert (tmp_path / "link.db").is_symlink()


def test_a_backup_needs_a_file_and_a_folder(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        store.care.backup(tmp_path / "none" / "copy.db")
    memory = open_sqlite(":memory:")
    with pytest.raises(InvalidInput):
        memory.care.backup(tmp_path / "copy.db")
    memory.close()


def test_a_failed_embedding_rests_longer_each_time(path: Path) -> None:
    now = [1_000.0]
    store = open_sqlite(path, clock=lambda: now[0])
    memory = note("a", "hard to embed")
    put(store, memory)
    failure = Embedded("a", content_hash(memory.content), None, error="no answer")
    pauses: list[float] = []
    for _ in range(3):
        vectors_of(store).put("m", [failure])
        assert vectors_of(store).missing("m", 5) == []
        started = now[0]
        while not vectors_of(store).missing("m", 5):
            now[0] += 0.5
        pauses.append(now[0] - started)
    assert pauses == [1.0, 2.0, 4.0]
    assert vectors_of(store).missing("m", 5)[0].attempts == 3
    assert vectors_of(store).progress("m").failed == 1
    store.close()


def test_a_pause_that_a_wrong_clock_measured_is_not_waited_for(path: Path) -> None:
    now = [4_000_000_000.0]
    store = open_sqlite(path, clock=lambda: now[0])
    memory = note("a", "hard to embed")
    put(store, memory)
    vectors_of(store).put("m", [Embedded("a", content_hash(memory.content), None, error="no answer")])
    now[0] = 1_800_000_000.0  # the clock was set right
    assert [one.id for one in vectors_of(store).missing("m", 5)] == ["a"]
    store.close()


def test_a_damaged_memory_that_a_repair_left_out_can_be_replaced_and_forgotten(path: Path, store: Store) -> None:
    for id in ("n3", "n4"):
        damage(path, "UPDATE memories SET importance = 0.9 WHERE id = ?", id)
    assert {finding.kind for finding in store.care.check(repair=True) if not finding.repaired} == {"memory"}
    store.records.write([Erase("n3"), Put(note("n4", "winter notes, written anew"), expected_version=1)])
    assert [memory.content for memory in store.records.fetch(["n3", "n4"])] == ["winter notes, written anew"]
    assert store.care.check() == []
    assert text_of(store).match(Term("anew"), Filter(), 5).ids == ("n4",)


def test_a_damaged_memory_is_forgotten_although_nobody_can_tell_what_said_the_same(path: Path, store: Store) -> None:
    store.records.write([AddLink(Link("n3", "supersedes", "n4"))])
    damage(path, "UPDATE memories SET importance = 0.9 WHERE id = 'n3'")
    assert forget(store, ["n3"]) == ["n3"]
    assert store.care.check() == []


@pytest.mark.parametrize("data", ["x'0000c07f00000000'", "x'0000807f00000000'", "x''", "x'00'", "x'0000803f'"])
def test_a_vector_that_is_none_is_damage_like_any_other(path: Path, store: Store, data: str) -> None:
    damage(path, f"UPDATE vectors SET data = {data} WHERE place = (SELECT min(place) FROM vectors)")
    with pytest.raises(Corrupt):
        vectors_of(store).search("m", QUERY, Filter(), 20)
    assert all(finding.repaired for finding in store.care.check(repair=True))
    assert len(vectors_of(store).search("m", QUERY, Filter(), 20)) == 9


def test_one_damaged_vector_among_others_is_damage_wherever_it_stands(path: Path, store: Store) -> None:
    """Those that are compared are read in one go: what is too long must not end as the beginning of the next."""
    assert len(vectors_of(store).search("m", QUERY, Filter(), 20)) == 10
    connection = apsw.Connection(str(path))
    for place, data in connection.execute("SELECT place, data FROM vectors").fetchall():
        for harmed in (data + b"\0", bytes(len(data))):
            connection.execute("UPDATE vectors SET data = ? WHERE place = ?", (harmed, place))
            with pytest.raises(Corrupt):
                vectors_of(store).search("m", QUERY, Filter(), 20)
        connection.execute("UPDATE vectors SET data = ? WHERE place = ?", (data, place))
    connection.close()


def test_a_vector_of_another_length_is_made_again_although_it_is_as_it_was_written(path: Path, store: Store) -> None:
    connection = apsw.Connection(str(path))
    place = connection.execute("SELECT min(place) FROM vectors").get
    changed = vector_checksum(place, None, None, bytes(4)), bytes(4), place
    connection.execute("UPDATE vectors SET checksum = ?, data = ? WHERE place = ?", changed)
    connection.close()
    assert "vector-orphan" in {finding.kind for finding in store.care.check(repair=True)}
    assert store.care.check() == []
    assert len(vectors_of(store).search("m", QUERY, Filter(), 20)) == 9


@pytest.mark.parametrize("column", ["data", "checksum"])
def test_a_vector_that_lost_its_values_is_damage_like_any_other(path: Path, store: Store, column: str) -> None:
    lose(path, "vectors", column, "place = (SELECT min(place) FROM vectors)")
    assert store.care.check()
    store.care.check(repair=True)
    assert store.care.check() == []
    assert len(vectors_of(store).search("m", QUERY, Filter(), 20)) == 9


@pytest.mark.parametrize("column", ["content", "accessed_at", "tags", "checksum"])
def test_a_memory_that_lost_its_values_is_told_and_keeps_no_other_from_being_mended(
    path: Path, store: Store, column: str
) -> None:
    lose(path, "memories", column, "id = 'n3'")
    damage(path, "DELETE FROM texts WHERE row = 8")
    assert any(finding.severity == "error" for finding in store.care.check())
    store.care.check(repair=True)
    with pytest.raises(Corrupt):
        store.records.fetch(["n3"])
    assert "n7" in text_of(store).match(Term("hiking"), Filter(), 50).ids


def test_a_store_that_lost_the_key_of_its_tombstones_says_so(path: Path, store: Store) -> None:
    damage(path, "DELETE FROM secrets WHERE name = 'tombstones'")
    for work in (
        lambda: store.records.write([Erase("n3")]),
        lambda: store.records.lookup("default", content="winter notes"),
        store.care.graves,
    ):
        with pytest.raises(Corrupt):
            work()
    assert [finding.kind for finding in store.care.check()] == ["tombstones"]


def test_a_token_stream_that_is_none_is_damage_like_any_other(path: Path, store: Store) -> None:
    damage(path, "UPDATE texts SET tokens = x'010203' WHERE row = 3")
    with pytest.raises(Corrupt):
        text_of(store).match(Term("winter"), Filter(), 20)
    assert all(finding.repaired for finding in store.care.check(repair=True))
    assert len(text_of(store).match(Term("winter"), Filter(), 20).ids) == 20
