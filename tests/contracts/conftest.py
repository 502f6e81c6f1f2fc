"""Every store runs every contract suite. A new backend joins by one entry in BACKENDS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from recollect.ports import LinkIndex, Store, TextIndex, VectorIndex
from recollect.stores.memory import open_memory


@dataclass(frozen=True)
class Backend:
    """How to open a store at a path; `lasting` when opening the same path again brings everything back."""

    name: str
    open: Callable[[Path], Store]
    lasting: bool = False


def _open_sqlite(path: Path | str) -> Store:
    from recollect.stores.sqlite import open_sqlite

    return open_sqlite(path)


def _open_qdrant(path: Path) -> Store:
    from recollect.stores.qdrant import with_qdrant

    return with_qdrant(
        _open_sqlite(path), os.environ.get("QDRANT_URL") or str(path.with_name("qdrant")), collection=path.parent.name
    )


BACKENDS = (
    Backend("memory", lambda _: open_memory()),
    Backend("sqlite", _open_sqlite, lasting=True),
    Backend("sqlite-without-file", lambda _: _open_sqlite(":memory:")),
    Backend("sqlite-with-qdrant", _open_qdrant, lasting=True),
)


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=[backend for backend in BACKENDS if backend.lasting], ids=lambda backend: backend.name)
def lasting_backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=[backend for backend in BACKENDS if not backend.lasting], ids=lambda backend: backend.name)
def fleeting_backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
def store(backend: Backend, tmp_path: Path) -> Iterator[Store]:
    opened = backend.open(tmp_path / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def text(store: Store) -> TextIndex:
    assert store.text is not None
    return store.text


@pytest.fixture
def vectors(store: Store) -> VectorIndex:
    assert store.vectors is not None
    return store.vectors


@pytest.fixture
def links(store: Store) -> LinkIndex:
    assert store.links is not None
    return store.links
