"""Stores of the formats that did not know who is to be kept apart: what they hold is as it was, what comes is known."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlite_cases import note, put
from test_sqlite_opening import FORMAT_5

from recollect.domain.changes import Put
from recollect.ports import Store
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.connection import connect
from tests.postgres_server import shared_server

OLD = note("old", "kept over the years")


def require_apart_from_now_on(store: Store) -> None:
    assert store.vectors is not None
    assert store.records.fetch(["old"]) == [OLD]
    store.records.write([Put(note("new", "written today"), apart=True)])
    assert [(one.id, one.apart) for one in store.vectors.missing("model", 5)] == [("old", False), ("new", True)]
    assert store.care.check() == []


def test_a_file_of_format_5_learns_who_is_to_be_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(open_sqlite(path)) as store:
        put(store, OLD)
    with closing(connect(str(path))) as connection:
        for statement in FORMAT_5.split(";"):
            connection.execute(statement).fetchall()
    with closing(open_sqlite(path)) as store:
        require_apart_from_now_on(store)
    assert (tmp_path / "s.db.v5.backup").exists()


@pytest.mark.postgres
def test_tables_of_version_6_learn_who_is_to_be_kept_apart() -> None:
    address = shared_server().fresh()
    with closing(open_postgres(address)) as store:
        put(store, OLD)
    shared_server().set_back(address, 6)
    with closing(open_postgres(address)) as store:
        require_apart_from_now_on(store)
