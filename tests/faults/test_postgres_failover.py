"""A standby takes over: what was acknowledged is there, own writes are seen, nothing is called undone that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import recollect
from recollect.domain.changes import Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import Memory
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.postgres import connection, opening
from recollect.stores.postgres.connection import Connection, Server
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import STREAMING, TestServer, eventually, running_server, running_standby

pytestmark = pytest.mark.postgres

NOTE = Memory("m", "written while the primary goes away")
PLACE = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint"
RECEIVED = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"


@contextmanager
def pair() -> Iterator[tuple[TestServer, TestServer]]:
    with running_server(settings=STREAMING) as primary, running_standby(primary) as standby:
        yield primary, standby


def told(server: TestServer, question: str) -> int:
    with psycopg.connect(server.address("postgres"), autocommit=True) as asked:
        (answer,) = asked.execute(question.encode()).fetchone() or (0,)
    return answer


def found(store: Store, word: str) -> list[str]:
    assert store.text is not None
    return list(store.text.match(Term(word), Filter(), 5).ids)


def either(primary: TestServer, standby: TestServer) -> str:
    """An address that takes whichever of the two answers."""
    one, other = quote(str(primary.folder), safe=""), quote(str(standby.folder), safe="")
    return primary.fresh().replace(f"host={one}", f"host={one},{other}")


def lose_one_answer(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """The next commit is done, then something happens, and its answer is never read."""
    commit, answers = Server._commit, iter([True])  # pyright: ignore[reportPrivateUsage]

    def losing(self: Server, lent: Connection, number: str | None) -> None:
        if not next(answers, False):
            return commit(self, lent, number)
        lent.execute("COMMIT")
        happens()
        raise psycopg.OperationalError("the answer is lost")

    monkeypatch.setattr(Server, "_commit", losing)


def test_a_standby_that_has_not_replayed_a_commit_does_not_call_it_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RESOLVE_S", 1.0)
    with pair() as (primary, standby), closing(open_postgres(either(primary, standby))) as store:
        standby.execute("SELECT pg_wal_replay_pause()")

        def lost() -> None:
            place = told(primary, PLACE)
            eventually(lambda: told(standby, RECEIVED) >= place)
            primary.stop()

        lose_one_answer(monkeypatch, lost)
        with pytest.raises(StoreUnavailable, match="may have happened"):
            store.records.write([Put(NOTE)])
        # Whoever waits inside a statement for the promotion may keep the log from being replayed.
        standby.execute("SELECT pg_wal_replay_resume()", "SELECT pg_promote(false)")
        eventually(lambda: told(standby, "SELECT pg_is_in_recovery()::int") == 0)
        assert store.records.fetch(["m"]) == [NOTE]


def test_an_own_write_whose_answer_was_lost_is_seen_while_the_standby_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (primary, standby), closing(open_postgres(primary.fresh(replica=str(standby.folder)))) as store:
        store.records.write([Put(Memory("before", "something else"))])
        eventually(lambda: told(standby, "SELECT count(*) FROM pg_tables WHERE tablename = 'texts'") > 0)
        standby.execute("SELECT pg_wal_replay_pause()")
        lose_one_answer(monkeypatch, lambda: None)
        store.records.write([Put(NOTE)])
        assert found(store, "primary") == ["m"]


def test_a_standby_that_was_promoted_answers_no_recall_for_the_old_primary() -> None:
    with pair() as (primary, standby), closing(open_postgres(primary.fresh(replica=str(standby.folder)))) as store:
        store.records.write([Put(NOTE)])
        eventually(lambda: found(store, "primary") == ["m"])
        standby.execute("SELECT pg_promote()")
        store.records.write([Put(Memory("later", "after the two went apart"))])
        assert found(store, "apart") == ["later"]


def test_after_a_failover_all_goes_on() -> None:
    with pair() as (primary, standby), closing(open_postgres(either(primary, standby))) as store:
        store.records.write([Put(NOTE)])
        place = told(primary, PLACE)
        eventually(lambda: told(standby, RECEIVED) >= place)
        primary.stop()
        standby.execute("SELECT pg_promote()")
        assert store.records.fetch(["m"]) == [NOTE]
        store.records.write([Put(Memory("later", "on the new primary"))])
        assert found(store, "primary") == ["m", "later"]
        assert store.care.check() == []


def test_a_store_that_was_opened_on_a_standby_is_kept_up_once_it_is_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LOOK_S", 0.0)
    with pair() as (primary, standby):
        address = primary.fresh()
        with closing(open_postgres(address)) as store:
            store.records.write([Put(NOTE)])
        place = told(primary, PLACE)
        eventually(lambda: told(standby, "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint") >= place)
        there = address.replace(quote(str(primary.folder), safe=""), quote(str(standby.folder), safe=""))
        with recollect.open(there, embedder="fake", reranker="none", home=tmp_path) as engine:
            assert not engine.store.writable()
            standby.execute("SELECT pg_promote()")
            eventually(engine.store.writable)
            eventually(lambda: all_embedded(engine, 1))
            engine.remember("written after the promotion")
            eventually(lambda: all_embedded(engine, 2))
            engine.recall("primary", explicit=True)
            eventually(lambda: engine.get("m").access_count == 1)


def all_embedded(engine: recollect.Engine, count: int) -> bool:
    progress = engine.embedding_progress()
    return progress is not None and progress.done == count
