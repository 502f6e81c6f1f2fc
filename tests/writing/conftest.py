"""The write path is tried on both stores: what it promises must not depend on where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.memory import Receipt
from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.stores.sqlite import open_sqlite
from recollect.writing import Draft, WritePolicy, remember

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_memory() if request.param == "memory" else open_sqlite(tmp_path / "memories.db")
    yield opened
    opened.close()


@pytest.fixture
def put(store: Store) -> Callable[..., Receipt]:
    """Remember with ids m001, m002, …"""
    numbers = count(1)

    def write(content: str, policy: WritePolicy | None = None, now: datetime = NOW, **fields: Any) -> Receipt:
        id = f"m{next(numbers):03}"
        return remember(store, Draft(content, **fields), id=id, now=now, policy=policy or WritePolicy())

    return write
