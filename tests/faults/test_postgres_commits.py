"""The connection is lost during a commit: nothing that is not in the store is acknowledged, nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from recollect.domain.changes import Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.stores.postgres.connection import Connection, Server
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import TestServer, running_server

pytestmark = pytest.mark.postgres

NOTE = Memory("lost", "written while the server goes away")
# The log is written by commits alone, so that a crash loses what was not committed, numbers of transactions included.
LAZY = {"wal_writer_delay": "10s"}


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with running_server(durable=True, settings=LAZY) as running:
        yield running


@pytest.fixture
def store(server: TestServer) -> Iterator[Store]:
    with closing(open_postgres(server.fresh())) as opened:
        yield opened


def crashed(server: TestServer) -> None:
    server.stop("immediate")
    server.start()


def restarted(server: TestServer) -> None:
    server.stop("fast")
    server.start()


def crashed_and_used_by_others(server: TestServer) -> None:
    """After a crash, the numbers of transactions that left no trace are given out again."""
    crashed(server)
    server.execute("CREATE TABLE others (n int)", *("INSERT INTO others VALUES (1)" for _ in range(20)))


def lose_one_commit(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], None] | None, after: Callable[[], None] | None
) -> None:
    """Let something happen right before the next commit is sent, or before its answer arrives."""
    commit, commits = Server._commit, iter([True])  # pyright: ignore[reportPrivateUsage]

    def losing(self: Server, connection: Connection, number: str | None) -> None:
        if not next(commits, False):
            return commit(self, connection, number)
        if before is not None:
            before()
        commit(self, connection, number)
        if after is not None:
            after()
        raise psycopg.OperationalError("the answer is lost")

    monkeypatch.setattr(Server, "_commit", losing)


@pytest.mark.parametrize("happens", [crashed, restarted, crashed_and_used_by_others])
def test_what_was_acknowledged_is_there(
    server: TestServer, store: Store, monkeypatch: pytest.MonkeyPatch, happens: Callable[[TestServer], None]
) -> None:
    lose_one_commit(monkeypatch, lambda: happens(server), None)
    try:
        store.records.write([Put(NOTE)])
    except StoreUnavailable as error:
        assert "may have happened" in str(error)
        assert happens is crashed_and_used_by_others  # the one case in which nobody can tell
    else:
        assert [memory.version for memory in store.records.fetch(["lost"])] == [1]


@pytest.mark.parametrize("happens", [None, restarted])
def test_a_commit_whose_answer_was_lost_is_not_repeated(
    server: TestServer,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[TestServer], None] | None,
) -> None:
    lose_one_commit(monkeypatch, None, None if happens is None else lambda: happens(server))
    store.records.write([Put(NOTE)])
    assert [memory.version for memory in store.records.fetch(["lost"])] == [1]


def test_a_commit_before_a_crash_is_there_and_called_uncertain(
    server: TestServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_one_commit(monkeypatch, None, lambda: crashed(server))
    with pytest.raises(StoreUnavailable, match="may have happened"):
        store.records.write([Put(NOTE)])
    assert [memory.version for memory in store.records.fetch(["lost"])] == [1]
