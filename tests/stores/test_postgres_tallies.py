"""What a PostgreSQL store tells of itself is tallied by every write: nothing is counted row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlite_cases import note, put

from recollect.domain.changes import AddLink, DropLink, Erase, Put
from recollect.domain.memory import Link, Memory, content_hash
from recollect.ports import Embedded, Store
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import shared_server

pytestmark = pytest.mark.postgres

ROWS = np.array([[1, 0], [0, 1]], dtype=np.float32)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with closing(open_postgres(address)) as opened:
        yield opened


def schema_of(address: str) -> str:
    return address.rpartition("schema=")[2]


def embed(store: Store, memory: Memory, passages: int = 1, model: str = "m") -> None:
    assert store.vectors is not None
    spans = ((0, 1), (1, 2)) if passages == 2 else ()
    made = Embedded(memory.id, content_hash(memory.content), ROWS[:passages], spans)
    store.vectors.put(model, [made])


def told(store: Store) -> tuple[Any, ...]:
    assert store.vectors is not None
    assert store.care.check() == []
    stats = store.care.stats()
    return dict(stats.types), dict(stats.projects), stats.vectors, stats.links, store.vectors.models()


def test_every_write_keeps_the_tallies(store: Store) -> None:
    assert store.vectors is not None
    a, b = note("a", "one", project="p"), note("b", "two", type="lesson", namespace="n")
    turns = [note(f"t{n}", f"turn {n}", type="episode", session="s") for n in range(3)]
    put(store, a, b, *turns)
    assert told(store) == ({"fact": 1, "lesson": 1, "episode": 3}, {"p": 1}, 0, 0, [])
    for memory in (a, b, *turns):
        embed(store, memory, 2)
        embed(store, memory, 1, "other")
    embed(store, a)
    store.records.write([AddLink(Link("a", "see-also", "t0")), AddLink(Link("t1", "part-of", "a"))])
    store.records.write([AddLink(Link("a", "see-also", "t0"))])
    assert told(store)[2:] == (14, 2, ["m", "other"])
    store.records.write([Put(note("a", "another", type="lesson", project="q"), expected_version=1)])
    assert told(store) == ({"lesson": 2, "episode": 3}, {"q": 1}, 12, 2, ["m", "other"])
    store.records.write([Put(note("t0", "changed", type="episode", session="s"), expected_version=1)])
    assert told(store)[2] == 3  # of b alone: the turns behind it are made again
    store.records.write([DropLink(Link("a", "see-also", "t0")), DropLink(Link("a", "see-also", "t0"))])
    assert told(store)[3] == 1
    store.records.write([Erase("a"), Erase("t0")])
    assert told(store) == ({"lesson": 1, "episode": 2}, {}, 3, 0, ["m", "other"])
    store.vectors.forget("m")
    assert told(store)[2:] == (1, 0, ["other"])
    store.records.write([Erase("b"), Erase("t1"), Erase("t2")])
    assert told(store) == ({}, {}, 0, 0, [])


def test_nothing_is_left_of_a_tenant_that_has_gone(store: Store, address: str) -> None:
    b = note("b", "two", project="p", namespace="n")
    put(store, b, note("c", "three", namespace="n"))
    embed(store, b)
    store.records.write([AddLink(Link("b", "see-also", "c"))])
    store.records.write([Erase("b"), Erase("c")])
    with psycopg.connect(shared_server().address("postgres")) as connection:
        assert connection.execute(f"SELECT * FROM {schema_of(address)}.tallies".encode()).fetchall() == []


def test_a_tenant_is_told_its_own(address: str) -> None:
    with closing(open_postgres(address)) as store:
        memories = [note("a", "one", namespace="x"), note("b", "two", type="lesson", project="p", namespace="y")]
        put(store, *memories)
        for memory in memories:
            embed(store, memory)
        embed(store, memories[1], 1, "other")
    with closing(open_postgres(f"{address}&namespace=x")) as bound:
        assert told(bound) == ({"fact": 1}, {}, 1, 0, ["m"])


def test_stats_count_no_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    usual = psycopg.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        sent.append(query.decode() if isinstance(query, bytes) else "")
        return usual(self, query, *arguments, **named)

    put(store, note("a", "one"))
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    store.care.stats()
    assert store.vectors is not None and store.vectors.models() == []
    assert sent and not [one for one in sent for table in ("memories", "vectors", "links") if f"FROM {table}" in one]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE {}.tallies SET held = held + 1 WHERE kind = 'type'",
        "DELETE FROM {}.tallies WHERE kind = 'vectors'",
        "INSERT INTO {}.tallies VALUES ('default', 'links', '', 3, 5)",
        "DELETE FROM {}.vectors",
    ],
)
def test_the_doctor_finds_and_heals_wrong_tallies(store: Store, address: str, sql: str) -> None:
    memory = note("a", "one", project="p")
    put(store, memory)
    embed(store, memory)
    shared_server().execute(sql.format(schema_of(address)))
    assert "counters" in {finding.kind for finding in store.care.check()}
    assert all(finding.repaired for finding in store.care.check(repair=True))
    assert told(store)[0] == {"fact": 1}


def test_tables_of_version_7_are_counted_once(address: str) -> None:
    with closing(open_postgres(address)) as store:
        put(store, note("a", "one", project="p"), note("b", "two", namespace="n"))
        embed(store, note("b", "two"))
        before = told(store)
    shared_server().set_back(address, 7)
    with closing(open_postgres(address)) as store:
        assert told(store) == before == ({"fact": 2}, {"p": 1}, 1, 0, ["m"])


def test_embedders_and_linkers_of_one_tenant_do_not_wait_for_each_other(store: Store, address: str) -> None:
    """Each connection has a row of its own for what writers do not take turns at."""
    with psycopg.connect(shared_server().address("postgres")) as connection:
        connection.execute(f"SET search_path = {schema_of(address)}".encode())
        keys = connection.execute(
            b"SELECT a.attname FROM pg_index i JOIN pg_attribute a"
            b" ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
            b" WHERE i.indrelid = 'tallies'::regclass AND i.indisunique ORDER BY a.attnum"
        ).fetchall()
        put(store, note("a", "one"), note("b", "two"))
        store.records.write([AddLink(Link("a", "see-also", "b"))])
        held = connection.execute(b"SELECT kind, slot FROM tallies ORDER BY kind").fetchall()
    assert [name for (name,) in keys] == ["namespace", "kind", "name", "slot"]
    assert [kind for kind, _ in held] == ["links", "type"] and held[1][1] == 0
