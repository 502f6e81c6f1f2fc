"""Legs run beside each other: none of them can hold up another."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from tests.world import World


def test_the_vector_search_does_not_wait_for_slow_words() -> None:
    """The words are let go only once the vectors have been searched: one after the other would never end."""
    world = World()
    world.remember("a", "deploy notes", degrees=0)
    text, vectors = world.store.text, world.store.vectors
    assert text is not None and vectors is not None
    searched = threading.Event()
    seen: list[bool] = []

    class SlowWords:
        def __getattr__(self, name: str) -> Any:
            return getattr(text, name)

        def match(self, *args: Any, **named: Any) -> Any:
            seen.append(searched.wait(10))
            return text.match(*args, **named)

    class WatchedVectors:
        def __getattr__(self, name: str) -> Any:
            return getattr(vectors, name)

        def search(self, *args: Any, **named: Any) -> Any:
            searched.set()
            return vectors.search(*args, **named)

    world.store = replace(world.store, text=SlowWords(), vectors=WatchedVectors())  # type: ignore[arg-type]
    answer = world.ask("retry-ladder", "deploy")
    assert seen == [True] and set(answer.trace.lists) == {"lexical", "dense"}
