"""Tombstones that are damaged, or whose key is: what was forgotten would come back, and nobody would know why."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_cases import damage, note, put

from recollect.domain.changes import Erase
from recollect.domain.errors import Conflict
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite

FORMAT_6 = "ALTER TABLE tombstones DROP COLUMN checksum; PRAGMA user_version = 6"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def forgetful(path: Path) -> Store:
    """A store that was told to forget two of its three memories."""
    store = open_sqlite(path)
    put(store, note("a", "The lamp is green"), note("b", "The boat is blue", namespace="other"), note("c", "kept"))
    store.records.write([Erase("a"), Erase("b")])
    assert store.care.check() == []
    return store


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("UPDATE tombstones SET hash = zeroblob(32) WHERE namespace = 'other'", 1),
        ("UPDATE tombstones SET namespace = 'third' WHERE namespace = 'other'", 1),
        ("UPDATE secrets SET value = zeroblob(32) WHERE name = 'tombstones'", 2),
        ("UPDATE secrets SET value = substr(value, 2) WHERE name = 'tombstones'", 2),
    ],
    ids=["a hash", "a namespace", "the key", "a short key"],
)
def test_damage_is_told_and_a_repair_rebuilds_nothing_for_it(path: Path, sql: str, count: int) -> None:
    store = forgetful(path)
    damage(path, sql)
    found = store.care.check()
    assert [(one.kind, one.severity) for one in found] == [("tombstones", "error")] * count
    assert not any(one.repaired for one in store.care.check(repair=True))
    assert [memory.id for memory in store.records.fetch(["c"])] == ["c"]
    store.close()


def test_an_older_file_learns_to_check_its_tombstones(path: Path) -> None:
    forgetful(path).close()
    for statement in FORMAT_6.split("; "):
        damage(path, statement)
    store = open_sqlite(path)
    assert store.care.check() == [] and store.care.stats().tombstones == 2
    with pytest.raises(Conflict, match="forgotten on purpose"):
        put(store, note("d", "The lamp is green"))
    store.close()


def test_an_older_file_without_its_key_is_opened_and_says_so(path: Path) -> None:
    forgetful(path).close()
    for statement in (*FORMAT_6.split("; "), "DELETE FROM secrets WHERE name = 'tombstones'"):
        damage(path, statement)
    store = open_sqlite(path)
    assert {one.kind for one in store.care.check()} == {"tombstones"}
    store.close()


def test_tombstones_of_another_store_are_checked_under_its_key(path: Path, tmp_path: Path) -> None:
    store, other = forgetful(path), open_sqlite(tmp_path / "other.db")
    other.care.bury(store.care.graves())
    assert other.care.check() == [] and other.care.stats().tombstones == 2
    store.close()
    other.close()
