"""A turn of a conversation knows the turns around it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from contract_cases import embedded, failed, one

from recollect.domain.changes import Erase, Put
from recollect.domain.memory import Memory, Scope
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


def turn(id: str, minute: int, session: str | None = "s", type: str = "episode", project: str | None = None) -> Put:
    made = START + timedelta(minutes=minute)
    return Put(Memory(id, f"turn {id}", type, scope=Scope(project=project, session=session), created_at=made))


def test_neighbours_are_the_turns_of_the_same_conversation_in_order(store: Store) -> None:
    assert store.links is not None
    store.records.write([turn(id, minute) for id, minute in [("e", 5), ("a", 1), ("b", 2), ("c", 3), ("d", 3)]])
    store.records.write(
        [turn("other", 2, "t"), turn("note", 2, type="fact"), turn("loose", 2, None), turn("p", 2, project="p")]
    )
    found = store.links.neighbours(["c", "a", "other", "note", "loose", "unknown"], before=2, after=3)
    assert found.get("c") == [(-2, "a"), (-1, "b"), (1, "d"), (2, "e")]
    assert found.get("a") == [(1, "b"), (2, "c"), (3, "d")]
    assert not found.get("other") and not found.get("note") and not found.get("loose") and not found.get("unknown")
    assert store.links.neighbours(["c"], before=0, after=1)["c"] == [(1, "d")]
    store.records.write([Erase("b")])
    assert store.links.neighbours(["c"], before=1, after=0)["c"] == [(-1, "a")]


def test_a_search_by_words_that_tells_turns_tells_all_of_them(store: Store) -> None:
    assert store.text is not None
    store.records.write([turn("a", 1), turn("note", 2, type="fact"), turn("loose", 2, None), turn("b", 3, "t")])
    found = store.text.match(Term("turn"), Filter(), 10)
    assert found.turns in (None, {"a", "b"}) and sorted(found.ids) == ["a", "b", "loose", "note"]


def test_a_turn_waits_again_when_a_turn_before_it_comes_changes_or_goes(store: Store) -> None:
    vectors = store.vectors
    assert vectors is not None

    def waiting() -> list[str]:
        found = vectors.missing("m", 50)
        vectors.put("m", [embedded(one(store, pending.id), [1.0, 0.0]) for pending in found])
        return sorted(pending.id for pending in found)

    store.records.write([turn(id, minute) for id, minute in [("b", 2), ("d", 4), ("e", 5), ("f", 6)]])
    store.records.write([turn("other", 3, "t"), turn("note", 5, type="fact")])
    assert waiting() == ["b", "d", "e", "f", "note", "other"]
    store.records.write([turn("g", 7)])
    assert waiting() == ["g"]
    store.records.write([turn("c", 3)])
    assert waiting() == ["c", "d", "e"]
    store.records.write([Put(replace(one(store, "b"), content="something else"), expected_version=1)])
    assert waiting() == ["b", "c", "d"]
    store.records.write([Put(replace(one(store, "c"), pinned=True), expected_version=1)])
    assert waiting() == []
    store.records.write([Erase("e")])
    assert waiting() == ["f", "g"]
    store.records.write([*(turn(f"x{place}", 10) for place in range(8)), turn("a", 1)])
    assert waiting() == ["a", "b", "c", *(f"x{place}" for place in range(8))]


def test_a_turn_that_failed_rests_on_when_a_turn_before_it_comes(store: Store) -> None:
    vectors = store.vectors
    assert vectors is not None
    store.records.write([turn("b", 2), turn("c", 3)])
    assert [pending.id for pending in vectors.missing("m", 9)] == ["b", "c"]
    vectors.put("m", [embedded(one(store, "b"), [1.0, 0.0]), failed(one(store, "c"))])
    store.records.write([turn("a", 1)])
    progress = vectors.progress("m")
    assert (progress.pending, progress.failed) == (2, 1), "a and b are asked for; c has its pause before it"
