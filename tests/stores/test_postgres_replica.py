"""A standby that really follows its primary: it answers recalls, own writes are seen, and its loss is survived."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import recollect
from recollect.domain.changes import Erase, Put
from recollect.domain.errors import InvalidInput, StoreUnavailable
from recollect.domain.memory import Memory, content_hash
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.postgres import replica
from recollect.stores.postgres.address import parsed
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import STREAMING, TestServer, eventually, running_server, running_standby

pytestmark = pytest.mark.postgres

PAUSED = "DO $$ BEGIN WHILE pg_get_wal_replay_pause_state() <> 'paused' LOOP PERFORM pg_sleep(0.01); END LOOP; END $$"
EAST = np.array([1, 0], dtype=np.float32)


@pytest.fixture(scope="module")
def primary() -> Iterator[TestServer]:
    with running_server(settings=STREAMING) as server:
        yield server


@pytest.fixture(scope="module")
def standby(primary: TestServer) -> Iterator[TestServer]:
    with running_standby(primary) as server:
        yield server


@contextmanager
def opened(address: str, **options: float) -> Iterator[Store]:
    store = open_postgres(address, **options)
    try:
        yield store
    finally:
        store.close()


def addressed(primary: TestServer, standby: TestServer, **options: str) -> str:
    return primary.fresh(replica=str(standby.folder), **options)


@contextmanager
def stalled(standby: TestServer) -> Iterator[None]:
    """The standby answers, and learns nothing new."""
    standby.execute("SELECT pg_wal_replay_pause()", PAUSED)
    try:
        yield
    finally:
        standby.execute("SELECT pg_wal_replay_resume()")


def found(store: Store, word: str) -> list[str]:
    assert store.text is not None
    return list(store.text.match(Term(word), Filter(), 5).ids)


def write(store: Store, id: str, text: str) -> None:
    """A memory with its vector."""
    assert store.vectors is not None
    store.records.write([Put(Memory(id, text))])
    store.vectors.put("m", [Embedded(id, content_hash(text), EAST[None, :])])


def seen_everywhere(store: Store, id: str, word: str) -> bool:
    """Whether words, vectors and the order of use find it."""
    assert store.vectors is not None
    by_use = [hit.id for hit in store.records.recent(Filter(), 5, embedded=True)]
    by_vector = [hit.id for hit in store.vectors.search("m", EAST, Filter(), 5)]
    cosines = store.vectors.similarities("m", EAST, [id])
    return found(store, word) == [id] and id in by_use and id in by_vector and id in cosines


def test_a_late_standby_answers_where_that_is_allowed(primary: TestServer, standby: TestServer) -> None:
    address = addressed(primary, standby, reads="any")
    with opened(address) as store, opened(address.replace("reads=any", "reads=own")) as careful:
        write(careful, "m1", "before the stall")
        assert seen_everywhere(careful, "m1", "before")  # waits, so the standby has it now
        with stalled(standby):
            write(store, "m2", "during the stall")
            assert found(store, "during") == []
            assert found(store, "before") == ["m1"]


def test_a_store_sees_its_own_writes_even_while_the_standby_is_late(primary: TestServer, standby: TestServer) -> None:
    with opened(addressed(primary, standby)) as store:
        with stalled(standby):
            write(store, "m1", "written during the stall")
            assert seen_everywhere(store, "m1", "stall")
        write(store, "m2", "written after it")
        assert seen_everywhere(store, "m2", "after")


def test_own_writes_are_seen_at_once_many_times_over(
    primary: TestServer, standby: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "CATCH_UP_S", 30.0)  # so that it is the standby that has to know
    with opened(addressed(primary, standby)) as store:
        for number in range(60):
            store.records.write([Put(Memory(f"m{number}", f"word{number}"))])
            assert found(store, f"word{number}") == [f"m{number}"]


def test_what_was_forgotten_is_never_read_from_a_late_standby(primary: TestServer, standby: TestServer) -> None:
    with opened(addressed(primary, standby, reads="any")) as store:
        store.records.write([Put(Memory("m1", "to be forgotten"))])
        with stalled(standby):
            store.records.write([Erase("m1")])
            assert store.records.fetch(["m1"]) == []
            assert store.records.lookup("default", content="to be forgotten").content_id is None


def test_without_the_standby_the_primary_answers_until_it_is_back(
    primary: TestServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replica, "AWAY_S", 0.0)
    with running_standby(primary) as standby, opened(addressed(primary, standby, reads="any")) as store:
        assert found(store, "nothing") == []
        standby.stop()
        store.records.write([Put(Memory("m1", "found on the primary"))])
        assert found(store, "primary") == ["m1"]
        assert "the standby does not answer" in caplog.text
        standby.start()

        def answers() -> bool:
            caplog.clear()
            return found(store, "nothing") == [] and "the standby does not answer" not in caplog.text

        eventually(answers)  # it has our tables again: stalled before that, it would never get them
        with stalled(standby):
            store.records.write([Put(Memory("m2", "unknown to the standby"))])
            eventually(lambda: found(store, "unknown") == [])


def test_a_store_that_is_opened_on_a_standby_only_reads(
    primary: TestServer, standby: TestServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = primary.fresh()
    with opened(address) as store:
        assert store.writable()
        store.records.write([Put(Memory("m1", "read on the standby"))])
        eventually(lambda: standby_knows(standby, address))
    there = address.replace(quote(str(primary.folder), safe=""), quote(str(standby.folder), safe=""))
    with recollect.open(there, embedder="fake", reranker="none", home=tmp_path) as engine:
        assert [hit.id for hit in engine.recall("standby")] == ["m1"]
        assert not engine.store.writable()
        with pytest.raises(StoreUnavailable) as caught:
            engine.remember("written on the standby")
        assert "primary" in caught.value.hint
        assert not engine._background_step()  # pyright: ignore[reportPrivateUsage]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def standby_knows(standby: TestServer, address: str) -> bool:
    schema = address.rpartition("schema=")[2]
    with psycopg.connect(standby.address("postgres")) as connection:
        found = connection.execute("SELECT to_regclass(%s)", (f"{schema}.memories",)).fetchone()
        if found == (None,):
            return False
        return connection.execute(f"SELECT count(*) FROM {schema}.memories".encode()).fetchone() == (1,)


def test_with_both_lost_the_error_is_ours() -> None:
    with (
        running_server(settings=STREAMING) as primary,
        running_standby(primary) as standby,
        opened(addressed(primary, standby), wait_s=1.0) as store,
    ):
        standby.stop()
        primary.stop()
        with pytest.raises(StoreUnavailable):
            found(store, "anything")


def test_a_standby_that_never_answered_does_not_keep_the_store_from_opening(primary: TestServer) -> None:
    with opened(primary.fresh(replica="/nowhere")) as store:
        store.records.write([Put(Memory("m1", "alone"))])
        assert found(store, "alone") == ["m1"]


@pytest.mark.parametrize(
    ("given", "hosts", "ports"),
    [
        ("db2", "db2", "6432"),
        ("db2:5433,db3", "db2,db3", "5433,6432"),
        ("[::1]:5433", "::1", "5433"),
        ("[::1]", "::1", "6432"),
        ("%2Ffolder", "/folder", "6432"),
    ],
)
def test_the_standby_is_reached_as_the_primary_is_but_for_the_host(given: str, hosts: str, ports: str) -> None:
    address = parsed(f"postgresql://me:secret@db1:6432/memories?target_session_attrs=read-write&replica={given}")
    found = conninfo_to_dict(replica._conninfo(address))
    assert (found["host"], found["port"], found["target_session_attrs"]) == (hosts, ports, "prefer-standby")
    assert (found["user"], found["password"], found["dbname"]) == ("me", "secret", "memories")


@pytest.mark.parametrize("option", ["replica=", "reads=mine", "bm25=theirs"])
def test_a_wrong_option_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput):
        parsed(f"postgresql://host/db?{option}")
