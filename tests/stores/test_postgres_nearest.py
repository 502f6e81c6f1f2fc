"""The vector index of PostgreSQL: it is built when it is due, and finds what comparing with every vector finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recollect.domain.changes import Put
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store, VectorIndex
from recollect.stores.postgres import care, nearest, vectors
from recollect.stores.sqlite import open_sqlite

pytestmark = pytest.mark.postgres
ALL = Filter()


def vectors_of(count: int, dimension: int, seed: int) -> Any:
    made = np.random.default_rng(seed).normal(size=(count, dimension))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def halves(count: int) -> list[Memory]:
    """Every second one is in project p, of those every second one in session s0."""
    return [
        Memory(
            f"m{number:04}", f"note number {number}", scope=Scope(project="pq"[number % 2], session=f"s{number % 4}")
        )
        for number in range(count)
    ]


def filled(store: Store, rows: Any, passages: tuple[tuple[int, int], ...] = ()) -> VectorIndex:
    """A memory for each row, which is the vector of all its passages."""
    memories = halves(len(rows))
    store.records.write([Put(memory) for memory in memories])
    assert store.vectors is not None
    copies = max(len(passages), 1)
    store.vectors.put(
        "m",
        [
            Embedded(memory.id, content_hash(memory.content), np.repeat(row[None, :], copies, axis=0), passages)
            for memory, row in zip(memories, rows, strict=True)
        ],
    )
    return store.vectors


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every query for vectors; scopes of more than 50 memories are large."""
    for module in (nearest, care):
        monkeypatch.setattr(module, "EXACT_SCOPE", 50)
    seen: list[str] = []
    usual = vectors.rows
    monkeypatch.setattr(vectors, "rows", lambda *given, **named: seen.append(given[1]) or usual(*given, **named))
    return seen


@pytest.mark.parametrize("wanted", [ALL, Filter(project="p"), Filter(project="p", sessions=("s0",))])
def test_an_index_is_built_and_finds_what_a_scan_finds(store: Store, asked: list[str], wanted: Filter) -> None:
    made = vectors_of(401, 24, 3)
    index = filled(store, made[:-1])
    scanned = index.search("m", made[-1], wanted, 20)
    assert not any("halfvec(24)" in query for query in asked)
    assert store.care.tidy()["indexed"] == 1
    assert store.care.tidy()["indexed"] == 0
    found = index.search("m", made[-1], wanted, 20)
    assert any("halfvec(24)" in query for query in asked)
    assert len({hit.id for hit in found} & {hit.id for hit in scanned}) >= 18
    assert found[0] == scanned[0]


def test_a_forgotten_model_comes_back_with_vectors_of_another_length(store: Store, asked: list[str]) -> None:
    index = filled(store, vectors_of(100, 24, 3))
    assert store.care.tidy()["indexed"] == 1
    index.forget("m")
    made = vectors_of(100, 16, 3)
    index.put("m", [Embedded(one.id, content_hash(one.content), row[None, :]) for one, row in zip(halves(100), made)])
    assert index.search("m", made[7], ALL, 1)[0].id == "m0007"
    assert store.care.tidy()["indexed"] == 1
    assert index.search("m", made[7], ALL, 1)[0].id == "m0007"
    assert any("halfvec(16)" in query for query in asked)
    assert store.care.check() == []


def test_memories_of_many_passages_do_not_send_the_search_past_its_index(store: Store, asked: list[str]) -> None:
    around = vectors_of(100, 24, 4)
    index = filled(store, around, passages=tuple((start, start + 2) for start in range(4)))
    assert store.care.tidy()["indexed"] == 1
    asked.clear()
    found = index.search("m", around[0], ALL, 40)
    assert (len(found), found[0].id) == (40, "m0000")
    assert len(asked) == 2
    assert not any("judged" in query for query in asked)


def test_cosines_are_those_of_a_file_to_the_last_bit(store: Store) -> None:
    """Or the two would break ties differently."""
    rows, file = vectors_of(40, 64, 7), open_sqlite(":memory:")
    ours, theirs = (filled(one, rows).search("m", rows[0], ALL, 40) for one in (store, file))
    assert ours == theirs
    file.close()
