"""Legs run beside each other: none of them can hold up another."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from recollect.domain.errors import Corrupt, StoreUnavailable
from tests.world import Counting, World, ids


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


def test_what_words_found_is_read_while_meaning_is_searched() -> None:
    """The vector search is let go only once the memories and cosines of what words found have been read."""
    world = World()
    world.remember("a", "deploy notes", degrees=0)
    world.remember("b", "deploy later", degrees=30)
    records, vectors = world.store.records, world.store.vectors
    assert vectors is not None
    read, compared = threading.Event(), threading.Event()
    seen: list[bool] = []

    class WatchedRecords:
        def __getattr__(self, name: str) -> Any:
            return getattr(records, name)

        def fetch(self, ids: Any) -> Any:
            read.set()
            return records.fetch(ids)

    class WaitingVectors:
        def __getattr__(self, name: str) -> Any:
            return getattr(vectors, name)

        def search(self, *args: Any, **named: Any) -> Any:
            seen.extend((read.wait(10), compared.wait(10)))
            return vectors.search(*args, **named)

        def similarities(self, *args: Any) -> Any:
            compared.set()
            return vectors.similarities(*args)

    world.store = replace(world.store, records=WatchedRecords(), vectors=WaitingVectors())  # type: ignore[arg-type]
    answer = world.ask("balanced", "deploy")
    assert seen == [True, True] and ids(answer) == ["a", "b"]


def test_vectors_that_cannot_be_read_leave_an_answer_by_words() -> None:
    """Nothing that fails while it is read ahead takes the answer with it."""
    world = World()
    world.remember("a", "deploy notes", degrees=0)

    class Damaged:
        def search(self, *_: Any) -> Any:
            raise Corrupt("a vector fails its checksum", "run doctor")

        similarities = search

    world.store = replace(world.store, vectors=Damaged())  # type: ignore[arg-type]
    answer = world.ask("balanced", "deploy")
    assert ids(answer) == ["a"] and answer.trace.legs["dense"].error == "a vector fails its checksum"
    assert ids(world.ask("balanced", "quetzalcoatl")) == [], "words have answered: they found nothing"


def test_links_that_change_no_answer_are_not_read() -> None:
    world = World()
    for id, content in (("old", "deploy by hand"), ("new", "deploy by robot"), ("aside", "lunch at noon")):
        world.remember(id, content, degrees=10)
    world.link("new", "supersedes", "old")
    world.link("old", "see-also", "aside")
    links = world.store.links
    assert links is not None
    counting = Counting(links)
    world.store = replace(world.store, links=counting)  # type: ignore[arg-type]
    assert "old" not in ids(world.ask("balanced", "deploy by hand"))
    assert {link.type for asked, _ in counting.named("links") for link in links.links(*asked)} == {"supersedes"}


@pytest.mark.parametrize("profile", ["balanced", "importance-prior", "retry-ladder", "live-weights", "token-budget"])
@pytest.mark.parametrize("fails", ["all", "words of a store without a model"])
def test_where_no_leg_that_stands_by_itself_could_answer_that_is_told(profile: str, fails: str) -> None:
    """What only follows others finds nothing when they fail, and an empty answer would say that nothing is known."""
    world = World()
    world.remember("a", "deploy notes", degrees=0)

    class Broken:
        def __init__(self, port: Any, broken: str) -> None:
            self._port, self._broken = port, broken

        def __getattr__(self, name: str) -> Any:
            if name == self._broken:
                raise StoreUnavailable("the disk is gone")
            return getattr(self._port, name)

    broken: dict[str, Any] = {"text": Broken(world.store.text, "match")}
    if fails == "all":
        broken["vectors"] = Broken(world.store.vectors, "search")
    else:
        world.embedder = None
    world.store = replace(world.store, **broken)
    with pytest.raises(StoreUnavailable, match="the disk is gone"):
        world.ask(profile, "deploy", options={"legs.lexical.weight": 1.0} if profile == "live-weights" else {})
