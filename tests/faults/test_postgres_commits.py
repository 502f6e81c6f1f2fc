"""The connection is lost during a commit: nothing that is not in the store is acknowledged, nothing is done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from recollect.domain.changes import Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.stores.postgres import connection
from recollect.stores.postgres.connection import Connection, Server
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import STREAMING, TestServer, running_server

pytestmark = pytest.mark.postgres

NOTE = Memory("lost", "written while the server goes away")
# The log is written by commits alone, so that a crash loses what was not committed, numbers of transactions included.
LAZY = {"wal_writer_delay": "10s", **STREAMING}
ENDED = """DO $$ BEGIN
    WHILE (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep') = 0
    LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP;
END $$"""
"""End the session that waits for a standby, as soon as there is one."""


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

    def losing(self: Server, lent: Connection, number: str | None) -> None:
        if not next(commits, False):
            return commit(self, lent, number)
        if before is not None:
            before()
        commit(self, lent, number)
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


def test_a_commit_of_nothing_is_not_uncertain(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.vectors is not None
    assert store.vectors.missing("m", 5) == []
    lose_one_commit(monkeypatch, None, None)
    assert store.vectors.missing("m", 5) == []


def test_a_server_that_only_follows_is_not_asked_what_was_committed(
    server: TestServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not have come so far yet: what it does not know may still be there when it takes over."""
    monkeypatch.setattr(connection, "RESOLVE_S", 0.3)
    monkeypatch.setattr(connection, "STATUS", connection.STATUS.replace("pg_is_in_recovery()", "true"))
    lose_one_commit(monkeypatch, None, None)
    with pytest.raises(StoreUnavailable, match="may have happened"):
        store.records.write([Put(NOTE)])


def test_a_commit_that_no_standby_confirmed_is_called_uncertain(server: TestServer, store: Store) -> None:
    """The primary keeps it although the session was ended while it waited for a standby that has to have it too."""
    alone = "SET synchronous_commit = local"  # for ourselves: changing the settings must not wait
    server.execute(alone, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    ended = threading.Thread(target=server.execute, args=(ENDED,))
    ended.start()
    try:
        with pytest.raises(StoreUnavailable, match="may have happened"):
            store.records.write([Put(NOTE)])
    finally:
        ended.join()
        server.execute(alone, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


def test_a_commit_before_a_crash_is_there_and_called_uncertain(
    server: TestServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_one_commit(monkeypatch, None, lambda: crashed(server))
    with pytest.raises(StoreUnavailable, match="may have happened"):
        store.records.write([Put(NOTE)])
    assert [memory.version for memory in store.records.fetch(["lost"])] == [1]
