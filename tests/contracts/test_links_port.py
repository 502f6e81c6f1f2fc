"""Links: typed arrows that exist as long as both their ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from contract_cases import at, note, put

from recollect.domain.changes import AddLink, DropLink, Erase, Put
from recollect.domain.errors import NotFound
from recollect.domain.memory import MENTIONS, Link
from recollect.ports import LinkIndex, Store
from recollect.stages.selection import FOLLOWED


def add(store: Store, *links: Link) -> None:
    store.records.write([AddLink(link) for link in links])


@pytest.mark.covers("prior.links")
def test_links_are_found_from_both_ends_once_and_in_order(store: Store, links: LinkIndex) -> None:
    put(store, *(note(id) for id in "abcd"))
    late, early = Link("a", "supersedes", "b", at(2)), Link("c", "part-of", "a", at(1))
    same_time = [
        Link("a", "see-also", "d", at(3)),
        Link("b", "resolved-by", "c", at(3)),
        Link("b", "see-also", "a", at(3)),
    ]
    add(store, late, *reversed(same_time), early)
    assert links.links(["a"]) == [early, late, same_time[0], same_time[2]]
    assert links.links(["b", "a", "b", "nobody"]) == [early, late, *same_time]
    assert links.links(["d"]) == [same_time[0]]
    assert links.links(["nobody"]) == links.links([]) == []


def test_only_links_of_the_types_asked_for(store: Store, links: LinkIndex) -> None:
    put(store, *(note(id) for id in "abcd"))
    resolved, newer = Link("b", "resolved-by", "a", at(1)), Link("a", "supersedes", "b", at(2))
    others = [Link("a", "see-also", "b", at(0)), Link("c", "see-also", "a", at(3)), Link("a", MENTIONS, "d", at(4))]
    add(store, newer, resolved, *others)
    assert links.links(["a"], ("supersedes", "resolved-by")) == links.links(["b", "a"], FOLLOWED) == [resolved, newer]
    assert links.links(["a", "d"], [MENTIONS]) == links.links(["d"]) == [others[2]]
    assert links.links(["c", "d"], ("supersedes",)) == links.links(["a"], ("no such type",)) == []
    assert links.links(["a"], ()) == [others[0], resolved, newer, *others[1:]]


def test_links_are_asked_for_many_memories_at_once(store: Store, links: LinkIndex) -> None:
    put(store, note("a"), note("b"))
    link = Link("a", "see-also", "b", at(0))
    add(store, link)
    assert links.links([*map(str, range(3000)), "b"]) == [link]


def test_adding_again_keeps_the_first_time(store: Store, links: LinkIndex) -> None:
    put(store, note("a"), note("b"))
    first = Link("a", "see-also", "b", at(5))
    add(store, first, Link("a", "see-also", "b", at(9)))
    add(store, Link("a", "see-also", "b", at(1)))
    assert links.links(["a"]) == [first]
    assert store.care.stats().links == 1


def test_source_type_and_target_make_a_link(store: Store, links: LinkIndex) -> None:
    put(store, note("a"), note("b"))
    different = [
        Link("a", "see-also", "b"),
        Link("a", "supersedes", "b"),
        Link("b", "see-also", "a"),
        Link("a", "part-of", "a"),
    ]
    add(store, *different)
    assert len(links.links(["a"])) == 4
    store.records.write([DropLink(Link("a", "see-also", "b", at(77))), DropLink(Link("a", "see-also", "nobody"))])
    assert set(links.links(["a"])) == set(different[1:])
    store.records.write([DropLink(Link("a", "see-also", "b"))])
    add(store, Link("a", "see-also", "b", at(8)))
    assert Link("a", "see-also", "b", at(8)) in links.links(["b"])


@pytest.mark.parametrize(
    "link",
    [
        Link("a", "see-also", "nobody"),
        Link("nobody", "see-also", "a"),
        Link("a", "see-also", "n"),
        Link("nobody", "part-of", "nobody"),
    ],
)
def test_both_ends_must_exist_in_one_namespace(store: Store, links: LinkIndex, link: Link) -> None:
    put(store, note("a"), note("n", namespace="elsewhere"))
    with pytest.raises(NotFound) as caught:
        add(store, link)
    assert caught.value.hint
    assert links.links(["a", "n", "nobody"]) == []


@pytest.mark.covers("more.forget")
def test_links_go_with_either_end_and_do_not_return(store: Store, links: LinkIndex) -> None:
    put(store, *(note(id) for id in "abc"))
    kept = Link("b", "see-also", "c")
    add(store, Link("a", "see-also", "b"), Link("c", "part-of", "a"), kept)
    store.records.write([Erase("a", tombstone=False)])
    put(store, note("a"))
    assert links.links(["a", "b", "c"]) == [kept]
    assert store.care.stats().links == 1


def test_a_replacement_keeps_the_links(store: Store, links: LinkIndex) -> None:
    put(store, note("a"), note("b"))
    link = Link("a", "see-also", "b", at(1))
    add(store, link)
    store.records.write([Put(note("a", "another text"), expected_version=1)])
    assert links.links(["b"]) == [link]


def test_link_times_are_whole_milliseconds(store: Store, links: LinkIndex) -> None:
    put(store, note("a"), note("b"))
    add(store, Link("a", "see-also", "b", at(1) + timedelta(microseconds=1999)))
    assert links.links(["a"]) == [Link("a", "see-also", "b", at(1.001))]
