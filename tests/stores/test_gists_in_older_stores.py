"""Stores of the formats that knew only the same text: what they hold is found by all that may say the same."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlite_cases import note, put
from test_sqlite_opening import FORMAT_7

from recollect.domain.lookup import Lookup
from recollect.ports import Store
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.connection import connect
from tests.postgres_server import shared_server

OLD = [
    note("a", "The build runs twice"),
    note("b", "Tea at noon", project="p"),
    note("c", "tea, at noon!", project="p", namespace="n"),
]


def require_found(store: Store) -> None:
    assert store.care.check() == []
    assert store.records.lookup("default", content="builds run twice") == Lookup(alike=("a",))
    assert store.records.lookup("default", content="TEA at noon", project="p") == Lookup(content_id="b", alike=("b",))
    assert store.records.lookup("n", content="Tea at noon", project="p") == Lookup(alike=("c",))


def test_a_file_of_format_7_is_numbered_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(open_sqlite(path)) as store:
        put(store, *OLD)
    with closing(connect(str(path))) as connection:
        for statement in (FORMAT_7, "PRAGMA user_version = 7"):
            connection.execute(statement).fetchall()
    with closing(open_sqlite(path)) as store:
        require_found(store)
    assert (tmp_path / "s.db.v7.backup").exists()


@pytest.mark.postgres
def test_tables_of_version_10_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.postgres.schema.NUMBERED_AT_ONCE", 2)
    address = shared_server().fresh()
    for namespace in ("default", "n"):
        with closing(open_postgres(f"{address}&namespace={namespace}")) as store:
            put(store, *[memory for memory in OLD if memory.scope.namespace == namespace])
    shared_server().set_back(address, 10)
    with closing(open_postgres(address)) as store:
        assert store.records.lookup("default", content="builds run twice").alike == ("a",)
        assert store.care.check() == []
    with closing(open_postgres(f"{address}&namespace=n")) as store:
        assert store.records.lookup("n", content="Tea at noon", project="p").alike == ("c",)
        assert store.care.check() == []
