"""Qdrant beside PostgreSQL: stores that are bound to one tenant each share collections, and clean up their own only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.qdrant import with_qdrant

pytestmark = pytest.mark.postgres

EAST = np.array([1, 0], dtype=np.float32)


@pytest.fixture
def qdrant(tmp_path: Path) -> str:
    return str(tmp_path / "qdrant")


def opened(address: str, qdrant: str, tenant: str) -> Store:
    return with_qdrant(open_postgres(f"{address}&namespace={tenant}"), qdrant)


def filled(address: str, qdrant: str, tenant: str, *ids: str) -> Store:
    store = opened(address, qdrant, tenant)
    memories = [Memory(id, f"text of {tenant} {id}", scope=Scope(tenant)) for id in ids]
    store.records.write([Put(memory) for memory in memories])
    assert store.vectors is not None
    store.vectors.put("m", [Embedded(one.id, content_hash(one.content), EAST[None, :]) for one in memories])
    return store


def found(store: Store, tenant: str) -> list[str]:
    assert store.vectors is not None
    return [hit.id for hit in store.vectors.search("m", EAST, Filter(tenant), 5)]


def test_what_others_have_in_qdrant_is_not_left_over(address: str, qdrant: str) -> None:
    filled(address, qdrant, "a", "a0", "a1").close()
    theirs = filled(address, qdrant, "b", "b0", "b1")
    while theirs.care.tidy()["mirrored"]:
        pass
    assert theirs.care.check(repair=True) == []
    theirs.close()
    ours = opened(address, qdrant, "a")
    assert ours.care.check() == []
    assert found(ours, "a") == ["a0", "a1"]
    ours.close()


def test_a_tenant_that_drops_its_vectors_leaves_those_of_others(address: str, qdrant: str) -> None:
    filled(address, qdrant, "a", "a0", "a1").close()
    theirs = filled(address, qdrant, "b", "b0", "b1")
    assert theirs.vectors is not None
    theirs.vectors.forget("m")
    assert theirs.care.check() == [] and found(theirs, "b") == []
    theirs.close()
    ours = opened(address, qdrant, "a")
    assert ours.care.check() == [] and found(ours, "a") == ["a0", "a1"]
    ours.close()


def test_two_tenants_may_have_the_same_id(address: str, qdrant: str) -> None:
    """Stores that are bound do not see that the other has it."""
    filled(address, qdrant, "a", "same").close()
    theirs = filled(address, qdrant, "b", "same")
    assert found(theirs, "b") == ["same"]
    theirs.records.write([Erase("same")])
    theirs.close()
    ours = opened(address, qdrant, "a")
    assert ours.care.check() == [] and found(ours, "a") == ["same"]
    ours.close()


def test_a_question_of_another_length_is_a_mistake_and_no_outage(address: str, qdrant: str) -> None:
    store = filled(address, qdrant, "a", "a0")
    assert store.vectors is not None
    with pytest.raises(InvalidInput):
        store.vectors.search("m", np.ones(3, dtype=np.float32), Filter("a"), 5)
    store.close()
