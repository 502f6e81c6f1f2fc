"""pg_textsearch as a finder: the same memories in the same order as without it, whatever happens to it.

`make postgres-17` runs it, on the server that has the extension.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import Erase, Put
from recollect.domain.memory import Memory, Scope
from recollect.domain.query import Node, Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.legs import bm25
from recollect.ports import Store
from recollect.stores.postgres import ranked
from recollect.stores.postgres.lexemes import phrase_bytes
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import (
    APP,
    OWNER,
    STREAMING,
    TestServer,
    eventually,
    running_server,
    running_standby,
    shared_server,
)

pytestmark = pytest.mark.postgres

WORDS = [f"word{number}" for number in range(60)]
ANY = Or((Term("word1"), Term("word2"), Term("word40"), Term("absent")))
FOUND = f"SELECT find_ranked('x{phrase_bytes(('word1',)).hex()}', '{{word1}}', '{{1}}', 1.0, 1000)"
"""By the extension, in the tenant of the transaction."""
ALL = Filter()
EXTENSION = "&bm25=extension"


@pytest.fixture(autouse=True)
def small_indexes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "LEAST", 1)


@pytest.fixture
def address() -> str:
    return shared_server().fresh()


@contextmanager
def opened(address: str) -> Iterator[Store]:
    store = open_postgres(address)
    try:
        yield store
    finally:
        store.close()


def some_text(chance: random.Random) -> str:
    """Common words are the first of WORDS."""
    return " ".join(WORDS[min(int(chance.expovariate(0.1)), 59)] for _ in range(chance.randrange(3, 30)))


def fill(store: Store, count: int = 300, tenant: str = "default", seed: int = 7) -> None:
    chance = random.Random(seed)
    made = [Memory(f"{tenant}{number}", some_text(chance), scope=Scope(tenant)) for number in range(count)]
    store.records.write([Put(memory) for memory in made])


def best(store: Store, query: Node = ANY, count: int = 20, filter: Filter = ALL) -> list[tuple[str, float]]:
    """The best of the matches by our BM25, with their scores."""
    assert store.text is not None
    matches = store.text.match(query, filter, count)
    scores = bm25.scores(matches, (1.0, 1.0))
    order = np.lexsort((np.array(matches.ids), -scores))[:count]
    return [(matches.ids[at], float(scores[at])) for at in order]


def is_used(store: Store, query: Node = ANY, filter: Filter = ALL) -> bool:
    assert store.text is not None
    return store.text.match(query, filter, 5).compiled.startswith("x")


def schema_of(address: str) -> str:
    return address.rpartition("schema=")[2].partition("&")[0]


def asked(address: str, statement: str) -> list[tuple[object, ...]]:
    """By the superuser, in the store's schema."""
    with psycopg.connect(shared_server().address("postgres"), autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema_of(address)}, public".encode())
        return connection.execute(statement.encode()).fetchall()


def traces(address: str) -> list[tuple[object, ...]]:
    return asked(
        address,
        f"SELECT relname FROM pg_class WHERE relnamespace = '{schema_of(address)}'::regnamespace AND relname ~ 'ranked'"
        f" UNION SELECT proname FROM pg_proc WHERE pronamespace = '{schema_of(address)}'::regnamespace"
        " AND proname IN ('note_later', 'ranked_copy', 'find_ranked') UNION SELECT tgname FROM pg_trigger"
        f" WHERE tgrelid = '{schema_of(address)}.texts'::regclass AND NOT tgisinternal",
    )


def test_a_store_says_which_extension_there_is_and_whether_it_is_used(address: str) -> None:
    with opened(address) as plain:
        assert "pg_textsearch 0.6.1 (not used: the address does not ask" in plain.care.stats().engine_version
    with opened(address + EXTENSION) as store:
        assert "pg_textsearch 0.6.1 (not used: no index here" in store.care.stats().engine_version
        fill(store)
        assert store.care.tidy()["indexed"] == 1
        store.records.write([Put(Memory("later", "word1"))])
        said = store.care.stats().engine_version
        assert "pg_textsearch 0.6.1 (finds among 300 memories, our own finder among 1 later ones)" in said
        assert store.care.tidy()["indexed"] == 0


def test_doctor_says_it(address: str, tmp_path: Path) -> None:
    chosen = {"RECOLLECT_HOME": str(tmp_path), "RECOLLECT_STORE": address, "RECOLLECT_EMBEDDER": "none"}
    command = [sys.executable, "-m", "recollect", "doctor"]
    ended = subprocess.run(command, env={**os.environ, **chosen}, capture_output=True, text=True, check=True)
    assert "pg_textsearch 0.6.1 (not used: the address does not ask for it with bm25=extension)" in ended.stdout


def test_another_extension_is_named_and_not_used() -> None:
    with running_server() as server:
        server.execute("DROP EXTENSION pg_textsearch", "CREATE EXTENSION pg_search")
        with opened(server.fresh() + EXTENSION) as store:
            fill(store)
            assert store.care.tidy()["indexed"] == 0
            assert "pg_search 0.21.14 (not used: only pg_textsearch is known)" in store.care.stats().engine_version
            assert not is_used(store)


def test_it_finds_for_alternatives_in_a_whole_tenant_and_for_nothing_else(address: str) -> None:
    with opened(address + EXTENSION) as store:
        fill(store)
        fill(store, 100, "small")
        assert not is_used(store)
        store.care.tidy()
        assert is_used(store)
        for query in (Term("word1"), Or((Phrase(("word1", "word2")), Term("word3"))), Or((Prefix("wor"), Term("a")))):
            assert not is_used(store, query)
        assert not is_used(store, filter=Filter("small"))
        assert not is_used(store, filter=Filter(types=("fact",)))
        assert not is_used(store, filter=Filter(exclude=frozenset({"default1"})))


def test_a_history_with_it_is_a_history_without_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "COPY", ranked.COPY.replace("greatest(1000", "greatest(12"))
    chance = random.Random(11)
    used = made = 0
    with opened(address) as plain, opened(address + EXTENSION) as store:
        fill(plain, 120)
        held = [f"default{number}" for number in range(120)]
        for step in range(150):
            writer = chance.choice((plain, store))
            match chance.randrange(4):
                case 0:
                    held.append(f"new{step}")
                    writer.records.write([Put(Memory(held[-1], some_text(chance)))])
                case 1:
                    (old,) = writer.records.fetch([chance.choice(held)])
                    writer.records.write([Put(Memory(old.id, some_text(chance)), expected_version=old.version)])
                case 2:
                    writer.records.write([Erase(held.pop(chance.randrange(len(held))))])
                case _:
                    made += store.care.tidy()["indexed"]
            query = Or(tuple(map(Term, chance.sample(WORDS, 5))))
            assert best(store, query) == best(plain, query), step
            used += is_used(store, query)
        assert store.care.check() == []
    assert made > 3
    assert used > 50


def test_what_is_forgotten_is_gone_from_the_copy_at_once(address: str) -> None:
    with opened(address + EXTENSION) as store:
        fill(store)
        store.care.tidy()
        store.records.write([Erase("default7")])
        assert asked(address, "SELECT count(*) FROM ranked_1") == [(299,)]
        store.records.write([Put(Memory("default8", "other words"), expected_version=1)])
        assert asked(address, "SELECT count(*) FROM ranked_1") == [(298,)]
        assert is_used(store)


def test_what_is_forgotten_while_a_copy_is_made_is_not_in_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "COPY", f"{ranked.COPY}SELECT pg_advisory_xact_lock(7);")
    with opened(address + EXTENSION) as store, psycopg.connect(shared_server().address()) as other:
        fill(store)
        other.execute("SELECT pg_advisory_lock(7)")
        making = threading.Thread(target=store.care.tidy)
        making.start()
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted"
        eventually(lambda: asked(address, waiting) != [])
        store.records.write([Erase("default7")])
        other.execute("SELECT pg_advisory_unlock(7)")
        making.join()
        assert is_used(store)
        assert asked(address, "SELECT count(*) FROM ranked_1") == [(299,)]


def test_whoever_reads_while_a_copy_is_replaced_sees_the_old_one_whole(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranked, "COPY", ranked.COPY.replace("greatest(1000", "greatest(12"))
    monkeypatch.setattr(ranked, "LOCK_S", 0.1)
    with opened(address + EXTENSION) as store, psycopg.connect(shared_server().address()) as reader:
        fill(store)
        store.care.tidy()
        reader.execute(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = {schema_of(address)}, public;"
            " SET LOCAL recollect.namespace = 'default'".encode()
        )
        before = reader.execute(FOUND.encode()).fetchall()
        store.records.write([Put(Memory(f"more{number}", "word1")) for number in range(20)])
        assert store.care.tidy()["indexed"] == 1
        assert asked(address, "SELECT copy FROM ranked_state") == [(2,)]
        assert reader.execute(FOUND.encode()).fetchall() == before != []
        reader.rollback()
        assert is_used(store)
        store.records.write([Put(Memory(f"most{number}", "word1")) for number in range(20)])
        store.care.tidy()
        assert ("ranked_3",) in traces(address)
        assert not {("ranked_1",), ("ranked_2",)} & set(traces(address))


def test_an_open_write_keeps_nobody_waiting(address: str) -> None:
    with opened(address + EXTENSION) as store, psycopg.connect(shared_server().address("postgres")) as writer:
        fill(store)
        store.care.tidy()
        writer.execute(f"SET search_path = {schema_of(address)}, public".encode())
        writer.execute("DELETE FROM texts WHERE number % 3 = 0")
        assert is_used(store)
        store.records.write([Put(Memory("other", "word1"))])
        assert "other" in dict(best(store, count=200))
        writer.rollback()


@contextmanager
def of_its_own() -> Iterator[tuple[TestServer, Store, Store]]:
    """A server that may be stopped, a filled store with its copy, and the same store without the extension."""
    with running_server(durable=True) as server:
        address = server.fresh()
        with opened(address + EXTENSION) as store, opened(address) as plain:
            fill(store)
            store.care.tidy()
            yield server, store, plain


def test_after_a_crash_our_own_finder_answers_until_upkeep_has_built_again() -> None:
    with of_its_own() as (server, store, plain):
        store.records.write([Put(Memory("later", "word1 word2")), Erase("default3")])
        assert is_used(store)
        expected = best(store)
        server.stop("immediate")
        server.start()
        assert not is_used(store)
        assert best(store) == best(plain) == expected
        assert "not used: no index here" in store.care.stats().engine_version
        store.records.write([Put(Memory("after", "word1 word2 word40"))])
        assert store.care.tidy()["indexed"] == 1
        assert is_used(store)
        assert best(store) == best(plain)
        assert best(store)[0][0] == "after"


def test_after_a_restart_it_goes_on() -> None:
    with of_its_own() as (server, store, plain):
        store.records.write([Put(Memory("later", "word1 word2"))])
        server.stop("fast")
        server.start()
        assert is_used(store)
        assert best(store) == best(plain)


def test_a_standby_is_never_asked_for_it_and_a_promoted_one_has_none(caplog: pytest.LogCaptureFixture) -> None:
    with running_server(settings=STREAMING) as primary:
        address = primary.fresh()
        with opened(address + EXTENSION) as store:
            fill(store)
            store.care.tidy()
            expected = best(store)
            with running_standby(primary) as standby:
                reading = f"{address}{EXTENSION}&reads=any&replica={standby.folder}"
                with opened(reading) as elsewhere:
                    eventually(lambda: best(elsewhere) == expected)
                    assert is_used(store)
                    assert not is_used(elsewhere)
                assert caplog.records == []
                standby.execute("SELECT pg_promote()")
                moved = address.replace(
                    str(primary.folder).replace("/", "%2F"), str(standby.folder).replace("/", "%2F")
                )
                with opened(moved + EXTENSION) as promoted:
                    assert not is_used(promoted)
                    assert best(promoted) == expected
                    assert promoted.care.tidy()["indexed"] == 1
                    assert is_used(promoted)
                    assert best(promoted) == expected


def test_whatever_fails_our_own_finder_answers_and_the_log_says_so(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(address + EXTENSION) as store:
        fill(store)
        store.care.tidy()
        expected = best(store)
        shared_server().execute("ALTER FUNCTION public.to_bm25query (text, text) RENAME TO broken")
        try:
            with caplog.at_level(logging.WARNING):
                assert best(store) == expected
                assert not is_used(store)
        finally:
            shared_server().execute("ALTER FUNCTION public.broken (text, text) RENAME TO to_bm25query")
        told = [record.message for record in caplog.records if "BM25 extension fails" in record.message]
        assert told == ["the BM25 extension fails, our own finder answers: UndefinedFunction"]


@pytest.mark.parametrize("lost", ["TABLE ranked_1", "INDEX ranked_1_words"])
def test_a_copy_that_somebody_dropped_is_made_again_and_no_write_fails_meanwhile(address: str, lost: str) -> None:
    with opened(address + EXTENSION) as store, opened(address) as plain:
        fill(store)
        store.care.tidy()
        shared_server().execute(f"SET search_path = {schema_of(address)}; DROP {lost}")
        store.records.write([Erase("default1"), Put(Memory("new", "word1 word2"))])
        assert not is_used(store)
        assert best(store) == best(plain)
        assert store.care.tidy()["indexed"] == 1
        assert is_used(store)
        assert best(store) == best(plain)


def test_turned_off_it_leaves_nothing_behind(address: str) -> None:
    with opened(address + EXTENSION) as store, opened(address) as plain:
        fill(store)
        before = traces(address)
        store.care.tidy()
        assert is_used(store)
        assert traces(address) != before == []
        plain.care.tidy()
        assert traces(address) == []
        assert not is_used(store)
        plain.records.write([Erase("default1")])
        assert best(store) == best(plain)


def test_a_role_that_owns_nothing_finds_through_it_and_sees_no_other_tenant() -> None:
    address = shared_server().fresh()
    with opened(f"{address}&role={APP}{EXTENSION}") as owner:
        fill(owner, 300, "a")
        fill(owner, 60, "b")
        owner.care.tidy()
    with opened(address.replace(OWNER, APP) + EXTENSION) as store:
        assert is_used(store, filter=Filter("a"))
        assert {id[0] for id, _ in best(store, filter=Filter("a"), count=400)} == {"a"}
        assert store.care.tidy()["indexed"] == 0
        assert "finds among 360 memories" in store.care.stats().engine_version
        store.records.write([Put(Memory("a-new", "word1 word2", scope=Scope("a")))])
        assert "a-new" in dict(best(store, filter=Filter("a")))
    with psycopg.connect(shared_server().address(APP)) as connection:
        connection.execute(f"SET search_path = {schema_of(address)}, public; SET recollect.namespace = 'b'".encode())
        held = {number for (number,) in connection.execute("SELECT number FROM memories").fetchall()}
        found = {number for (number,) in connection.execute(FOUND.encode()).fetchall()}
        assert found and found <= held
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM ranked_1")


def test_a_text_too_long_for_it_is_found_all_the_same(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "COPY", ranked.COPY.replace("50000", "25"))
    with opened(address + EXTENSION) as store, opened(address) as plain:
        fill(store)
        store.care.tidy()
        held = asked(address, "SELECT (SELECT count(*) FROM ranked_1), (SELECT count(*) FROM ranked_later)")
        assert held[0][0] != 300 and sum(map(int, map(str, held[0]))) == 300
        assert is_used(store)
        assert best(store) == best(plain)
        assert store.care.tidy()["indexed"] == 0


def test_with_too_much_that_came_later_our_own_finder_answers_until_the_next_copy(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranked, "COPY", ranked.COPY.replace("greatest(1000", "greatest(12"))
    with opened(address + EXTENSION) as store, opened(address) as plain:
        fill(store)
        store.care.tidy()
        store.records.write([Put(Memory(f"more{number}", "word1 word2")) for number in range(24)])
        assert is_used(store)
        store.records.write([Put(Memory("one too many", "word1 word2"))])
        assert not is_used(store)
        assert best(store) == best(plain)
        assert "not used: too much came later" in store.care.stats().engine_version
        assert store.care.tidy()["indexed"] == 1
        assert is_used(store)
        said = store.care.stats().engine_version
        assert "finds among 325 memories, our own finder among 0 later ones" in said
