"""Every finder obeys the same Filter, before its limit: no leg can see what another may not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from contract_cases import ALL, at, embedded, note, put

from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Store

MEMORIES = [
    note("a", type="fact", tags=("x", "y"), project="p", session="s1", created_at=at(1)),
    note("b", type="decision", tags=("x",), project="p", session="s2", created_at=at(2)),
    note("c", type="fact", tags=(), project="q", session="s1", created_at=at(3)),
    note("d", type="Fact", tags=("X", "xy"), created_at=at(4)),
    note("e", type="episode", tags=("x", "y", "z"), session="s3", created_at=at(5)),
    note("f", type="fact", tags=("x", "y"), namespace="n", project="p", session="s1", created_at=at(1)),
]

CASES = [
    (ALL, "abcde"),
    (Filter(namespace="n"), "f"),
    (Filter(namespace="N"), ""),
    (Filter(project="p"), "ab"),
    (Filter(project=""), ""),
    (Filter(sessions=("s1",)), "ac"),
    (Filter(sessions=("s2", "s3", "nobody")), "be"),
    (Filter(types=("fact",)), "ac"),
    (Filter(types=("decision", "episode")), "be"),
    (Filter(tags=("x",)), "abe"),
    (Filter(tags=("x", "y")), "ae"),
    (Filter(tags=("x", "x")), "abe"),
    (Filter(without_types=("fact", "episode")), "bd"),
    (Filter(without_tags=("y",)), "bcd"),
    (Filter(without_tags=("z", "xy")), "abc"),
    (Filter(after=at(3)), "cde"),
    (Filter(before=at(3)), "ab"),
    (Filter(after=at(2), before=at(4)), "bc"),
    (Filter(after=at(2) + timedelta(microseconds=999)), "bcde"),
    (Filter(before=at(2) + timedelta(microseconds=999)), "a"),
    (Filter(exclude=frozenset("ace")), "bd"),
    (Filter(exclude=frozenset({"nobody"})), "abcde"),
    (Filter(only=frozenset("bcf")), "bc"),
    (Filter(only=frozenset()), ""),
    (Filter(only=frozenset("abc"), exclude=frozenset("b")), "ac"),
    (Filter(project="p", sessions=("s1", "s2"), types=("fact",), tags=("y",), before=at(9)), "a"),
    (Filter(exclude=frozenset(map(str, range(3000)))), "abcde"),
    (Filter(only=frozenset([*map(str, range(3000)), "a", "d"])), "ad"),
    (Filter(sessions=tuple(f"s{number}" for number in range(2, 3000))), "be"),
]

Finder = Callable[[Store, Filter, int], list[str]]


def by_scan(store: Store, filter: Filter, limit: int) -> list[str]:
    return [memory.id for memory in store.records.scan(filter, limit=limit)]


def by_recency(store: Store, filter: Filter, limit: int) -> list[str]:
    return [hit.id for hit in store.records.recent(filter, limit, embedded=False)]


def by_recency_of_embedded(store: Store, filter: Filter, limit: int) -> list[str]:
    return [hit.id for hit in store.records.recent(filter, limit, embedded=True)]


def by_words(store: Store, filter: Filter, limit: int) -> list[str]:
    assert store.text is not None
    return list(store.text.match(Term("text"), filter, limit).ids)


def by_meaning(store: Store, filter: Filter, limit: int) -> list[str]:
    assert store.vectors is not None
    return [hit.id for hit in store.vectors.search("model", np.array([1, 0], dtype=np.float32), filter, limit)]


FINDERS: list[Finder] = [by_scan, by_recency, by_recency_of_embedded, by_words, by_meaning]


@pytest.fixture
def filled(store: Store) -> Store:
    put(store, *MEMORIES)
    assert store.vectors is not None
    store.vectors.put("model", [embedded(memory, [0.6, 0.8]) for memory in MEMORIES])
    return store


@pytest.mark.parametrize("find", FINDERS)
@pytest.mark.covers("live.scope")
def test_every_field_of_the_filter_binds_every_finder(filled: Store, find: Finder) -> None:
    found = [(filter, "".join(sorted(find(filled, filter, 100)))) for filter, _ in CASES]
    assert found == CASES


@pytest.mark.parametrize("find", FINDERS)
@pytest.mark.covers("live.recent")
def test_the_filter_comes_before_the_limit(filled: Store, find: Finder) -> None:
    """Whichever single memory is let through, it is found although the limit is one and the others crowd the top."""
    for id in "abcde":
        assert find(filled, Filter(only=frozenset(id)), 1) == [id]
