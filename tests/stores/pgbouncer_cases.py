"""What is different behind PgBouncer in transaction mode; `make test-pgbouncer` runs it, with the contracts."""

from __future__ import annotations

import threading

import psycopg
import pytest

from recollect.domain.changes import Put
from recollect.domain.memory import Memory, Scope
from recollect.domain.question import Filter
from recollect.stores.postgres.address import parsed
from recollect.stores.postgres.listening import is_direct
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import eventually, shared_server

pytestmark = pytest.mark.postgres

THREADS = 12
WRITES = 10


def test_a_pooler_is_seen_and_nobody_listens_through_it(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with psycopg.connect(parsed(address).conninfo, autocommit=True) as connection:
        assert not is_direct(connection)
    with psycopg.connect(shared_server().address("postgres"), autocommit=True) as connection:
        assert is_direct(connection)
    calls: list[str] = []
    store = open_postgres(address)
    store.subscribe(lambda: calls.append("called"))
    eventually(lambda: "a pooler stands before PostgreSQL" in caplog.text)
    store.close()
    assert calls == []


def test_more_clients_than_connections_of_all_tenants_write_and_read_their_own(address: str) -> None:
    stores = [open_postgres(f"{address}&pool=4") for _ in range(3)]
    wrong: list[object] = []

    def work(number: int) -> None:
        store, tenant = stores[number % 3], f"tenant{number}"
        for place in range(WRITES):
            store.records.write([Put(Memory(f"{tenant}-{place}", f"note {place}", scope=Scope(tenant)))])
            seen = store.records.scan(Filter(tenant), limit=100)
            if len(seen) != place + 1 or {memory.scope.namespace for memory in seen} != {tenant}:
                wrong.append((tenant, place, len(seen)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert stores[0].care.stats().memories == THREADS * WRITES
    for store in stores:
        store.close()
