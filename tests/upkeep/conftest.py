"""A store of each kind, and memories to put into it without any check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.stores.sqlite import open_sqlite


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_memory() if request.param == "memory" else open_sqlite(tmp_path / "memories.db")
    yield opened
    opened.close()
