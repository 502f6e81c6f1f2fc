"""Consolidation over windows: twins meet however many memories lie between them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from upkeep_cases import NOW, get, keep

from recollect.domain.changes import AddLink
from recollect.domain.memory import Link, Scope
from recollect.ports import Store
from recollect.upkeep import consolidation
from recollect.upkeep.consolidation import Consolidation, consolidate

LATER = NOW + timedelta(hours=1)
TWINS = ("SQLite WAL is important", "SQLite WAL mode matters")
FILLERS = [f"Subject {n} has colour {n * 7} and nothing else of note {n}" for n in range(20)]


def rounds(store: Store, limit: int = 4, most: int = 20) -> list[Consolidation]:
    """Runs until one comes to the end."""
    runs: list[Consolidation] = []
    while not runs or runs[-1].cursor is not None:
        runs.append(consolidate(store, now=LATER, limit=limit))
        assert len(runs) <= most
    return runs


def merged(runs: list[Consolidation]) -> list[tuple[str, str]]:
    return [(merge.kept, merge.merged) for run in runs for merge in run.merges]


@pytest.mark.parametrize("twins", [TWINS, ("Redis is fast", "redis is fast"), ("はい", "はい"), ("ok", "ok")])
def test_twins_of_different_windows_are_merged(store: Store, twins: tuple[str, str]) -> None:
    keep(store, twins[0], *FILLERS, twins[1])
    runs = rounds(store)
    assert sorted(map(sorted, merged(runs))) == [["m001", "m022"]]
    assert all(run.examined <= 4 for run in runs)
    assert merged(rounds(store)) == []


def test_a_dry_run_tells_them_too(store: Store) -> None:
    keep(store, TWINS[0], *FILLERS, TWINS[1])
    planned = consolidate(store, now=LATER, limit=4, dry_run=True)
    assert planned.merges == consolidate(store, now=LATER, limit=4).merges != ()


def test_the_guard_and_the_walls_hold_over_windows(store: Store) -> None:
    keep(store, TWINS[0], "The cache holds 100 entries")
    keep(store, *FILLERS)
    keep(store, TWINS[1], scope=Scope(project="p"))
    keep(store, TWINS[1], scope=Scope(session="s"))
    keep(store, TWINS[1], sensitive=True)
    keep(store, TWINS[1], type="episode")
    keep(store, TWINS[1], scope=Scope("elsewhere"))
    keep(store, "The cache holds 200 entries")
    assert merged(rounds(store)) == []


def test_a_pinned_memory_outside_the_window_stands(store: Store) -> None:
    keep(store, TWINS[0])
    keep(store, *FILLERS)
    keep(store, TWINS[1], pinned=True)
    assert merged(rounds(store)) == [("m022", "m001")]
    assert get(store, "m022").pinned


def test_what_is_superseded_outside_the_window_takes_no_part(store: Store) -> None:
    keep(store, TWINS[0], *FILLERS, TWINS[1], "Everything moved to York")
    store.records.write([AddLink(Link("m023", "supersedes", "m022", NOW))])
    assert merged(rounds(store)) == []


def test_a_namespace_that_fits_one_run_is_asked_for_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> list[str]:
        raise AssertionError("everything was compared already")

    monkeypatch.setattr(consolidation, "_outside", never)
    keep(store, TWINS[0], *FILLERS, TWINS[1])
    assert len(consolidate(store, now=LATER).merges) == 1


def test_of_many_twins_all_come_together(store: Store) -> None:
    keep(store, *(text for filler in FILLERS for text in (TWINS[0], filler)))
    first, second = rounds(store), rounds(store)
    assert len(merged(first)) == 19 and merged(second) == []
