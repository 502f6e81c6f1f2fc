"""A memory to which thousands lead: answers stay bounded, and whoever needs all of its links can walk over them."""

from __future__ import annotations

import io

import pytest
from contract_cases import at, note, put

from recollect.domain.changes import AddLink
from recollect.domain.memory import Link
from recollect.domain.question import Filter
from recollect.importers import copy_store, export
from recollect.ports import MOST_LINKS, LinkIndex, Store
from recollect.stores.memory import open_memory
from recollect.upkeep.concepts import drop_concepts
from recollect.writing import forget


def spokes(store: Store, count: int, *kinds: tuple[str, bool], text: str = "spoke {}") -> list[Link]:
    """A hub with so many links of each kind, each a second younger than the last; True: they lead away from the hub."""
    put(store, note("hub", text.format("")), *(note(f"s{n:04}", text.format("")) for n in range(count)))
    made = [
        Link("hub", type, f"s{n:04}", at(n)) if away else Link(f"s{n:04}", type, "hub", at(n))
        for n in range(count)
        for type, away in kinds
    ]
    store.records.write([AddLink(link) for link in made])
    return made


def test_of_every_type_and_direction_the_newest_are_told(store: Store, links: LinkIndex) -> None:
    made = spokes(store, 12, ("see-also", False), ("see-also", True), ("part-of", False))
    rare = Link("s0000", "supersedes", "hub", at(-5))
    store.records.write([AddLink(rare)])
    expected = [rare, *(link for link in made if link.created_at >= at(9))]
    assert links.links(["hub"], limit=3) == sorted(expected, key=lambda link: (link.created_at, link.source, link.type))
    assert links.links(["hub"], limit=0) == []


def test_one_with_many_links_takes_nothing_from_others(store: Store, links: LinkIndex) -> None:
    spokes(store, 12, ("see-also", False))
    own = Link("s0001", "part-of", "s0002", at(-9))
    store.records.write([AddLink(own)])
    found = links.links(["hub", "s0001", "s0002"], limit=3)
    newest = [Link(f"s{n:04}", "see-also", "hub", at(n)) for n in (1, 2, 9, 10, 11)]
    assert found == [own, *newest]


def test_without_a_limit_an_answer_is_bounded(store: Store, links: LinkIndex) -> None:
    made = spokes(store, MOST_LINKS + 50, ("see-also", False))
    assert links.links(["hub"]) == made[50:]


def test_links_of_one_moment_are_bounded_too(store: Store, links: LinkIndex) -> None:
    put(store, note("hub"), *(note(f"s{n}") for n in range(9)))
    store.records.write([AddLink(Link(f"s{n}", "see-also", "hub", at(1))) for n in range(9)])
    assert len(links.links(["hub"], limit=4)) == 4
    assert links.links(["hub"], limit=4) == links.links(["hub"], limit=4)


def test_all_links_that_leave_a_memory_come_page_by_page(store: Store, links: LinkIndex) -> None:
    made = spokes(store, 7, ("see-also", True), ("part-of", True), ("supersedes", False))
    seen: list[Link] = []
    while page := links.leaving("hub", seen[-1] if seen else None, 3):
        assert len(page) <= 3
        seen += page
    wanted = [link for link in made if link.source == "hub"]
    assert seen == sorted(wanted, key=lambda link: (link.type, link.target))
    assert links.leaving("hub", Link("hub", "part-of", "s0005a"), 1) == [Link("hub", "part-of", "s0006", at(6))]
    assert links.leaving("nobody", None, 3) == links.leaving("hub", None, 0) == []


def test_exports_and_copies_have_all_links(store: Store) -> None:
    made = spokes(store, MOST_LINKS + 50, ("see-also", True), ("mentions", True), ("part-of", False))
    out = io.StringIO()
    assert export(store, out).links == len(made) - MOST_LINKS - 50  # mentions are made again
    assert out.getvalue().count('"kind":"link"') == len(set(out.getvalue().splitlines())) - 1 - MOST_LINKS - 51
    target = open_memory()
    copy_store(store, target)
    assert target.care.stats().links == len(made)


def test_forgetting_a_memory_takes_all_its_twins(store: Store) -> None:
    spokes(store, MOST_LINKS + 50, ("supersedes", True), text="The build server runs in Leeds{}")
    assert len(forget(store, ["hub"])) == MOST_LINKS + 51
    assert store.records.scan(Filter()) == []


@pytest.mark.parametrize("away", [True, False])
def test_all_links_of_models_are_dropped(store: Store, away: bool) -> None:
    spokes(store, MOST_LINKS + 50, ("mentions", away))
    assert drop_concepts(store, None) == MOST_LINKS + 50
    assert store.care.stats().links == 0
