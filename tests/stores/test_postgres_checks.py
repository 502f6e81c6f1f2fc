"""The doctor goes over a PostgreSQL store page by page and keeps none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from recollect.domain.changes import Erase, Put
from recollect.domain.memory import Memory, Scope
from recollect.stores.postgres import checks
from recollect.stores.postgres.opening import open_postgres

pytestmark = pytest.mark.postgres


def test_token_streams_are_compared_as_they_come(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, pages = {"texts": 0, "memories": 0}, checks.pages
    ahead: list[int] = []

    def counted(connection: Any, columns: str, table: str, key: str) -> Iterator[tuple[Any, ...]]:
        for row in pages(connection, columns, table, key):
            if table in read:
                read[table] += 1
                ahead.append(read["texts"] - read["memories"])
            yield row

    monkeypatch.setattr(checks, "PAGE", 3)
    monkeypatch.setattr(checks, "pages", counted)
    store = open_postgres(address)
    try:
        for namespace in ("a", "b", "é", "Ä"):
            store.records.write(
                [Put(Memory(f"{namespace}{n}", f"text {n}", scope=Scope(namespace))) for n in range(10)]
            )
        store.records.write([Erase("a3"), Erase("b9")])
        assert store.care.check() == []
        assert read == {"texts": 38, "memories": 38} and max(ahead) <= 1
    finally:
        store.close()
