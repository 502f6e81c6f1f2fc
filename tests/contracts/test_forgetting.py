"""Forgetting, on every store: what said the same goes too, and no older version comes back while a newer one stands."""

from __future__ import annotations

from itertools import pairwise

import pytest
from contract_cases import ALL, at, ids, note, put

from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.upkeep import consolidate
from recollect.writing import forget, link

pytestmark = pytest.mark.covers("more.forget")


def left(store: Store) -> list[str]:
    return ids(store.records.scan(ALL, "id"))


def superseded(store: Store) -> list[tuple[str, str]]:
    assert store.links is not None
    return [(one.source, one.target) for one in store.links.links(left(store)) if one.type == "supersedes"]


def supersede(store: Store, *chain: Memory) -> None:
    """Each of them supersedes the one before."""
    put(store, *chain)
    for number, (older, newer) in enumerate(pairwise(chain)):
        link(store, newer.id, "supersedes", older.id, now=at(number))


def test_what_was_merged_into_a_memory_is_forgotten_with_it(store: Store) -> None:
    put(store, note("a", "SQLite WAL is important"), note("b", "SQLite WAL mode matters"), note("c", "another thing"))
    consolidate(store, now=at(1))
    put(store, note("d", "SQLite WAL is crucial", confidence=0.9))
    consolidate(store, now=at(2))
    assert superseded(store) == [("b", "a"), ("d", "b")]
    assert sorted(forget(store, ["d"])) == ["a", "b", "d"]
    assert left(store) == ["c"]
    assert store.records.lookup("default", content="sqlite wal is IMPORTANT").buried


def test_another_version_stands_again_when_the_newer_one_is_forgotten(store: Store) -> None:
    supersede(store, note("a", "we deploy on Fridays"), note("b", "nobody deploys on Fridays any more"))
    assert forget(store, ["b"]) == ["b"]
    assert left(store) == ["a"]


def test_an_older_version_stays_behind_the_newest_when_those_between_are_forgotten(store: Store) -> None:
    supersede(store, *(note(id, f"the {name} of them") for id, name in zip("abcd", ("first", "next", "third", "last"))))
    assert forget(store, ["c", "b"]) == ["c", "b"]
    assert superseded(store) == [("d", "a")]


def test_what_is_forgotten_together_leaves_every_chain_its_own(store: Store) -> None:
    supersede(store, note("a", "we deploy on Fridays"), note("b", "on Mondays"), note("c", "whenever it is green"))
    supersede(store, note("x", "lunch is at noon"), note("y", "it moved to one"), note("z", "everybody eats alone"))
    assert forget(store, ["b", "y"]) == ["b", "y"]
    assert sorted(superseded(store)) == [("c", "a"), ("z", "x")]
