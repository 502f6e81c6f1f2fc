"""The file under an open store: its other names, what lies beside it, and what others do to it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sqlite_cases import embed, note, put, text_of, vectors_of
from test_sqlite_opening import make_older

from recollect.domain.changes import Erase
from recollect.domain.errors import StoreUnavailable
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite

QUERY = np.array([1.0, 0.0], dtype=np.float32)


@pytest.fixture(autouse=True)
def _small_indexes_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 2)


def with_saved_index(path: Path) -> Store:
    store = open_sqlite(path)
    memories = [note(f"n{n}", f"text {n}") for n in range(3)]
    put(store, *memories)
    for n, memory in enumerate(memories):
        embed(store, memory, 1.0, float(n))
    vectors_of(store).search("m", QUERY, Filter(), 3)
    store.care.tidy()
    assert saved(path.parent)
    return store


def saved(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if ".codes" in file.name]


def test_an_erasure_by_another_name_finds_the_saved_index(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    store = with_saved_index(tmp_path / "real" / "s.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "s.db")
    other = open_sqlite(tmp_path / "link.db")
    other.records.write([Erase("n0")])
    assert saved(tmp_path / "real") == []
    assert not (tmp_path / "link.db.lock").exists()
    for opened in (store, other):
        opened.close()


def test_an_older_file_is_migrated_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "kept over the years"))
    store.close()
    make_older(path)
    (tmp_path / "link.db").symlink_to(path)
    store = open_sqlite(tmp_path / "link.db")
    assert text_of(store).frequencies(["year"]) == [1]
    assert (tmp_path / "link.db").is_symlink()
    assert (tmp_path / "real" / "s.db.v3.backup").exists()
    store.close()


def test_whoever_goes_into_another_folder_keeps_his_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = open_sqlite("s.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    put(store, note("a", "where it was opened"))
    assert [memory.id for memory in store.records.fetch(["a"])] == ["a"]
    assert not any(Path().iterdir())
    store.close()


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path: Path) -> None:
    store = with_saved_index(tmp_path / "s[1].db")
    store.records.write([Erase("n0")])
    assert saved(tmp_path) == []
    store.close()


def test_an_erasure_takes_an_index_that_was_never_finished(tmp_path: Path) -> None:
    store = with_saved_index(tmp_path / "s.db")
    torn = tmp_path / ".s.db.1.codes.4711.42"
    torn.write_bytes(b"what a killed process left")
    store.records.write([Erase("n0")])
    assert saved(tmp_path) == []
    store.close()


def test_an_erasure_is_done_though_the_saved_index_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_saved_index(tmp_path / "s.db")

    def refuse(file: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "the folder was made read-only", str(file))

    with monkeypatch.context() as locked:
        locked.setattr(Path, "unlink", refuse)
        store.records.write([Erase("n0")])
    assert store.records.fetch(["n0"]) == []
    assert saved(tmp_path)
    assert store.care.tidy()["purged"] == 1
    assert saved(tmp_path) == []
    assert store.care.check() == []
    store.close()


def test_upkeep_goes_on_where_an_index_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_saved_index(tmp_path / "s.db")
    put(store, note("n3", "text 3"))
    embed(store, note("n3", "text 3"), 1.0, 3.0)
    vectors_of(store).search("m", QUERY, Filter(), 3)

    def full(_descriptor: int) -> None:
        raise OSError(28, "no space left on the device")

    with monkeypatch.context() as disk:
        disk.setattr("recollect.stores.codes.os.fsync", full)
        assert store.care.tidy()["saved"] == 0
    assert saved(tmp_path) == ["s.db.1.codes"]
    store.close()
    store = open_sqlite(tmp_path / "s.db")
    assert {hit.id for hit in vectors_of(store).search("m", QUERY, Filter(), 4)} == {"n0", "n1", "n2", "n3"}
    store.close()


def test_an_index_that_fell_behind_the_log_is_saved_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.ledger.LOGGED_VECTORS", 2)
    store, other = with_saved_index(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db")
    more = [note(f"m{n}", f"more {n}") for n in range(4)]
    put(other, *more)
    embed(other, more[0], 1.0, 5.0)
    vectors_of(store).search("m", QUERY, Filter(), 3)  # the index is ahead of its file now
    other.records.write([Erase("n0")])
    for memory in more[1:]:
        embed(other, memory, 1.0, 6.0)
    assert store.care.tidy()["saved"] == 1
    codes = (tmp_path / "s.db.1.codes").read_bytes()
    assert b'"vectors": [' in codes and b"[6, 2]" in codes  # six vectors of two numbers, and none of what was erased
    for opened in (store, other):
        opened.close()


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_nothing_is_acknowledged_that_no_one_else_will_see(tmp_path: Path, what: str) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "in the old file"))
    for file in [*tmp_path.iterdir()]:
        file.unlink()
    if what == "replaced":
        other = open_sqlite(path)
        put(other, note("b", "in the new file"))
        other.close()
    with pytest.raises(StoreUnavailable, match="moved, deleted or replaced"):
        put(store, note("c", "where to?"))
    with pytest.raises(StoreUnavailable, match="moved, deleted or replaced"):
        store.records.fetch(["a"])  # by a connection that was not open yet
    store.close()
    store = open_sqlite(path)
    assert [memory.id for memory in store.records.fetch(["a", "b", "c"])] == (["b"] if what == "replaced" else [])
    store.close()


def test_a_forked_process_is_told_to_open_the_store_itself(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "before the fork"))
    assert store.records.fetch(["a"])
    child = os.fork()
    if not child:
        code = 1
        try:
            store.records.fetch(["a"])
        except StoreUnavailable as error:
            code = 0 if "forked" in error.message else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.records.fetch(["a"])
    store.close()
