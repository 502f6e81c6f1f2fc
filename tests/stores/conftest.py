"""What the tests of the PostgreSQL store share; they have a server of their own each process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recollect.ports import Store
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import shared_server


@pytest.fixture
def address() -> Iterator[str]:
    """A schema on PostgreSQL that is empty at first."""
    yield shared_server().kept("a test of its own")
    shared_server().end_of_test()


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """A PostgreSQL store."""
    opened = open_postgres(address)
    yield opened
    opened.close()
