"""Memories that were written while -0.0 was stored as it came: they are sound, and can be read again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_cases import damage, note, put

from recollect.domain.changes import Touch
from recollect.domain.errors import Corrupt
from recollect.domain.memory import Memory
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.rows import FIXED, checksum, encode, touch_checksum
from recollect.stores.sqlite import open_sqlite
from tests.postgres_server import shared_server

SIGNED = [(-0.0, 0.5), (0.5, -0.0), (-0.0, -0.0), (-0.0, 0.0)]


def as_then(memory: Memory) -> int:
    """The checksum that the older code wrote: over the numbers with their signs."""
    row = list(encode(memory, memory.version, None, memory.access_count))
    row[10:12] = [memory.confidence, memory.importance]
    return checksum(tuple(row[:FIXED])) ^ touch_checksum(*row[FIXED:19])


def require_readable(store: Store, memory: Memory) -> None:
    assert store.records.fetch([memory.id]) == [memory]
    assert store.records.scan(Filter()) == [memory]
    assert store.care.check() == []
    store.records.write([Touch((memory.id,), memory.accessed_at, count=1)])
    assert store.records.fetch([memory.id]) == [replace(memory, access_count=memory.access_count + 1)]


@pytest.mark.parametrize(("confidence", "importance"), SIGNED)
def test_a_file_with_a_zero_of_older_days_is_read(tmp_path: Path, confidence: float, importance: float) -> None:
    path, memory = tmp_path / "s.db", note("m", "old", confidence=confidence, importance=importance)
    with closing(open_sqlite(path)) as store:
        put(store, memory)
    damage(path, "UPDATE memories SET checksum = ?", as_then(memory))
    with closing(open_sqlite(path)) as store:
        require_readable(store, memory)


@pytest.mark.parametrize("signed", [0.0, 0.5])
def test_what_is_damaged_is_still_found_out(tmp_path: Path, signed: float) -> None:
    path, memory = tmp_path / "s.db", note("m", "old", confidence=signed, importance=0.0)
    with closing(open_sqlite(path)) as store:
        put(store, memory)
    damage(path, "UPDATE memories SET content = 'new'")
    with closing(open_sqlite(path)) as store:
        with pytest.raises(Corrupt):
            store.records.fetch(["m"])
        assert [finding.kind for finding in store.care.check() if finding.kind == "memory"] == ["memory"]


@pytest.mark.postgres
@pytest.mark.parametrize("kept", ["-0", "0"])  # as PostgreSQL keeps it, and as a dump from elsewhere may bring it
@pytest.mark.parametrize(("confidence", "importance"), SIGNED[:2])
def test_tables_with_a_zero_of_older_days_are_read(kept: str, confidence: float, importance: float) -> None:
    address = shared_server().fresh()
    memory = note("m", "old", confidence=confidence, importance=importance)
    with closing(open_postgres(address)) as store:
        put(store, memory)
    schema, column = address.rpartition("schema=")[2], "confidence" if confidence == 0 else "importance"
    shared_server().execute(f"UPDATE {schema}.memories SET {column} = '{kept}', checksum = {as_then(memory)}")
    with closing(open_postgres(address)) as store:
        require_readable(store, memory)
