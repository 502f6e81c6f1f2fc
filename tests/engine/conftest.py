"""An engine on a real SQLite file with the deterministic embedder, and no background thread to race with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.engine import Engine

Open = Callable[..., Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens engines on one file and closes them all at the end."""
    engines: list[Engine] = []

    def open_one(name: str = "store.db", **options: Any) -> Engine:
        options = {"embedder": "fake", "reranker": "none", "background": False, "home": tmp_path / "home", **options}
        engines.append(recollect.open(tmp_path / name, **options))
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(opened: Open) -> Engine:
    return opened()
