"""Vectors come while somebody else goes over all of them: afterwards each memory has vectors or waits, never both.

And whoever waits in vain is told that he waited."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import Memory, content_hash
from recollect.ports import Embedded, EmbeddingProgress, Store, VectorIndex
from recollect.stores.postgres import care, vectors
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import eventually, shared_server

pytestmark = pytest.mark.postgres

MADE = [Embedded("m0", content_hash("text 0"), np.eye(1, 2, dtype=np.float32))]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def somebody_waits() -> bool:
    with psycopg.connect(shared_server().address("postgres"), autocommit=True) as asked:
        return asked.execute(WAITING).fetchone() != (0,)


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, others: Callable[[], Any]) -> Thread:
    """When the step is done and not yet committed, others begin, and wait for that, or are done."""
    usual, beside = getattr(module, step), Thread(target=others)

    def slowly(*given: Any) -> None:
        usual(*given)
        beside.start()
        eventually(lambda: somebody_waits() or not beside.is_alive())

    monkeypatch.setattr(module, step, slowly)
    return beside


def two_wait(store: Store) -> VectorIndex:
    store.records.write([Put(Memory(f"m{number}", f"text {number}")) for number in range(2)])
    assert store.vectors is not None
    assert len(store.vectors.missing("m", 5)) == 2
    return store.vectors


def test_a_model_is_forgotten_while_its_vectors_come(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    index = two_wait(store)
    forgetting = meanwhile(monkeypatch, vectors, "_store", lambda: index.forget("m"))
    index.put("m", MADE)
    forgetting.join()
    assert index.progress("m") == EmbeddingProgress(0, 2, 0)
    assert index.stored("m", ["m0", "m1"]) == []
    assert store.care.check() == []


def test_vectors_come_while_the_outbox_is_repaired(store: Store, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = two_wait(store)
    index.put("m", [Embedded("m1", content_hash("text 1"), np.eye(1, 2, dtype=np.float32))])
    shared_server().execute(f"UPDATE {address.rpartition('schema=')[2]}.counts SET tokens = 7")
    putting = meanwhile(monkeypatch, care, "repair_all", lambda: index.put("m", MADE))
    assert [finding.repaired for finding in store.care.check(repair=True)] == [True]
    putting.join()
    assert index.progress("m") == EmbeddingProgress(2, 0, 0)
    assert store.care.check() == []


def test_a_write_that_others_keep_waiting_says_so_and_waits_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = open_postgres(address, wait_s=0.2)
    begun: list[bytes] = []
    usual = psycopg.Connection.execute

    def noted(self: Any, query: Any, *given: Any, **named: Any) -> Any:
        begun.extend([query] if isinstance(query, bytes) and query.startswith(b"BEGIN") else [])
        return usual(self, query, *given, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    with psycopg.connect(shared_server().address("postgres")) as other:
        other.execute(f"LOCK TABLE {address.rpartition('schema=')[2]}.counts".encode())
        with pytest.raises(StoreUnavailable, match="locked"):
            impatient.records.write([Put(Memory("m0", "text"))])
    assert len(begun) == 1
    impatient.close()
