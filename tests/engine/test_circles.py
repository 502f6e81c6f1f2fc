"""Nothing is left in circles: only the collector finds those, and in a server it comes seldom."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

import recollect
from recollect import Draft, Engine
from recollect.profiles import builtin_names

TIMES = 10
numbers = count()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Engine]:
    with recollect.open(tmp_path / "s.db", home=tmp_path, embedder="fake", background=False) as engine:
        engine.remember_many([Draft(f"shelf {n} of the kitchen holds tea number {n}") for n in range(40)])
        engine.upkeep()
        yield engine


@contextmanager
def collector_away() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def left_in_circles(work: Callable[[], object]) -> int:
    """How many objects a piece of work leaves to the collector, not counting what it does the first time.

    Threads that other tests have left may leave some as well, but not every time.
    """
    work()
    found: list[int] = []
    for _ in range(3):
        with collector_away():
            for _ in range(TIMES):
                work()
            found.append(gc.collect() // TIMES)
    return min(found)


@pytest.mark.parametrize("profile", builtin_names())
def test_a_recall_leaves_nothing_in_circles(memory: Engine, profile: str) -> None:
    questions = ("which shelf holds the tea?", "kitchne shelf", '"shelf 3" OR (tea AND NOT kitchen)', "type:fact")
    for question in questions:
        assert left_in_circles(lambda asked=question: memory.recall(asked, profile=profile).render()) == 0, question


def test_a_write_leaves_nothing_in_circles(memory: Engine) -> None:
    def remember() -> None:
        memory.remember(f"jar {next(numbers)}", metadata={"place": {"rows": [1, "left"]}})

    assert left_in_circles(remember) == 0
    assert left_in_circles(lambda: memory.capture(f"[MEMORY] jar {next(numbers)} is empty")) == 0
    assert left_in_circles(lambda: memory.capture(f"remember that jar {next(numbers)} is full", said_by="user")) == 0
    assert left_in_circles(lambda: memory.forget(memory.remember(f"jar {next(numbers)}").id)) == 0
    assert left_in_circles(memory.upkeep) == 0
