"""Every store runs every contract suite. A new backend joins by one entry in BACKENDS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recollect.ports import LinkIndex, Store, TextIndex, VectorIndex
from recollect.stores.memory import open_memory
from tests.postgres_server import shared_server


@dataclass(frozen=True)
class Backend:
    """How to open a store at a path.

    lasting: opening the same path again brings everything back. copied: it can be backed up into a file.
    """

    name: str
    open: Callable[[Path], Store]
    lasting: bool = False
    copied: bool = False


def _open_sqlite(path: Path | str) -> Store:
    from recollect.stores.sqlite import open_sqlite

    return open_sqlite(path)


def _open_qdrant(path: Path) -> Store:
    from recollect.stores.qdrant import with_qdrant

    return with_qdrant(
        _open_sqlite(path), os.environ.get("QDRANT_URL") or str(path.with_name("qdrant")), collection=path.parent.name
    )


def _open_postgres(path: Path) -> Store:
    """The same path is the same schema."""
    from recollect.stores.postgres.opening import open_postgres

    return open_postgres(shared_server().kept(str(path)))


BACKENDS = (
    Backend("memory", lambda _: open_memory()),
    Backend("sqlite", _open_sqlite, lasting=True, copied=True),
    Backend("sqlite-without-file", lambda _: _open_sqlite(":memory:")),
    Backend("sqlite-with-qdrant", _open_qdrant, lasting=True, copied=True),
    Backend("postgres", _open_postgres, lasting=True),
)


@pytest.fixture(autouse=True)
def schemas() -> Iterator[None]:
    yield
    if shared_server.cache_info().currsize:
        shared_server().end_of_test()


def _some(lasting: bool | None = None, copied: bool | None = None) -> list[Any]:
    return [
        pytest.param(backend, id=backend.name, marks=pytest.mark.postgres if backend.name == "postgres" else ())
        for backend in BACKENDS
        if lasting in (None, backend.lasting) and copied in (None, backend.copied)
    ]


@pytest.fixture(params=_some())
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=_some(lasting=True))
def lasting_backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=_some(copied=True))
def copied_backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=_some(copied=False))
def uncopied_backend(request: pytest.FixtureRequest) -> Backend:
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
