"""A memory with what surrounds it: bounded, however many memories lead to it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from recollect import engine as library
from recollect.domain.changes import AddLink, Put
from recollect.domain.memory import EPOCH, Link, Memory
from recollect.engine import Engine
from recollect.settings import load
from recollect.stores.memory import open_memory


def test_of_many_links_the_newest_are_shown(tmp_path: Path) -> None:
    count = library.MOST_LINKS + 50
    with Engine(open_memory(), load(home=tmp_path), background=False) as engine:
        parts = [Memory(f"m{number:03}", f"part {number}") for number in range(count)]
        engine.store.records.write([Put(one) for one in (Memory("hub", "the whole"), *parts)])
        links = [Link(one.id, "part-of", "hub", EPOCH + timedelta(hours=n)) for n, one in enumerate(parts)]
        engine.store.records.write([AddLink(link) for link in links])
        found = engine.expand("hub")
    assert list(found.links) == links[50:]
    assert [one.id for one in found.neighbours] == [one.id for one in parts[50:]]
