"""A turn of a conversation knows the turns around it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.domain.changes import Erase, Put
from recollect.domain.memory import Memory, Scope
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
