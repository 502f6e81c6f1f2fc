"""Records: what a write does, and every way to read it back."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from contract_cases import ALL, at, embedded, ids, note, one, put

from recollect.domain.changes import AddLink, DropLink, Erase, Put, SetSetting, Touch
from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import EPOCH, Link
from recollect.domain.pages import Behind
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.ports import ScanOrder, Store, VectorIndex


def refuses(store: Store, change: Put) -> Conflict:
    with pytest.raises(Conflict) as caught:
        store.records.write([change])
    assert caught.value.hint
    return caught.value


def test_every_field_comes_back(store: Store) -> None:
    memory = note(
        "m1",
        'Ünïcode "quotes" \U0001f980\nand lines',
        type="gotcha",
        tags=("zeta", "alpha", "two words"),
        confidence=0.1 + 0.2,
        importance=1 / 3,
        namespace="n",
        project="p",
        session="s",
        source="cli",
        key="k",
        created_at=at(0.001),
        updated_at=at(0.002),
        accessed_at=at(0.003),
        access_count=7,
        pinned=True,
        sensitive=True,
        metadata={"path": "a/b", "deep": {"list": [1, 2.5, None, True]}, "ключ": "значение"},
        version=4,
    )
    bare = note("m2")
    put(store, memory, bare)
    assert store.records.fetch(["m1", "m2"]) == [memory, bare]


def test_a_zero_with_a_sign_comes_back(store: Store) -> None:
    put(store, note("m1", confidence=-0.0, importance=-0.0))
    assert (one(store, "m1").confidence, one(store, "m1").importance) == (0, 0)


def test_times_are_kept_in_utc_and_whole_milliseconds(store: Store) -> None:
    east = timezone(timedelta(hours=5))
    moment = (at(0) + timedelta(microseconds=1999)).astimezone(east)
    without_zone = moment.astimezone(UTC).replace(tzinfo=None)
    put(
        store,
        note("east", created_at=moment, updated_at=moment, accessed_at=moment),
        note("bare", created_at=without_zone, updated_at=without_zone, accessed_at=without_zone),
        note("before", created_at=EPOCH),
    )
    for stored in store.records.fetch(["east", "bare"]):
        for kept in (stored.created_at, stored.updated_at, stored.accessed_at):
            assert kept == at(0.001)
            assert kept.utcoffset() == timedelta(0)
    for given in (moment, without_zone):
        assert ids(store.records.scan(Filter(after=given))) == ["east", "bare"]
        assert ids(store.records.scan(Filter(before=given))) == ["before"]


def test_times_before_1970_are_cut_down_too(store: Store) -> None:
    put(store, note("old", created_at=EPOCH - timedelta(microseconds=1)))
    assert one(store, "old").created_at == EPOCH - timedelta(milliseconds=1)


def test_fetch_answers_in_the_order_asked(store: Store) -> None:
    put(store, note("a"), note("b"), note("c"))
    assert ids(store.records.fetch(["c", "nobody", "a", "c"])) == ["c", "a", "c"]
    assert store.records.fetch([]) == []


def test_fetch_takes_many_ids_at_once(store: Store) -> None:
    many = [f"m{number:04}" for number in range(3000)]
    put(store, *(note(id) for id in many))
    assert ids(store.records.fetch(many[::-1])) == many[::-1]


def test_metadata_is_a_private_copy(store: Store) -> None:
    given = {"list": [1], "pair": (1, 2)}
    put(store, note("m", metadata=given))
    given["list"].append(2)
    one(store, "m").metadata["list"].append(3)
    assert one(store, "m").metadata == {"list": [1], "pair": [1, 2]}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan")])
def test_metadata_must_be_json(store: Store, value: object) -> None:
    with pytest.raises(InvalidInput):
        store.records.write([Put(note("good")), Put(note("m", metadata={"value": value}))])
    assert store.records.fetch(["good", "m"]) == []


def test_an_insert_keeps_the_version_it_carries_and_refuses_a_known_id(store: Store) -> None:
    put(store, note("m", "first", version=9))
    assert refuses(store, Put(note("m", "second"))).existing_id == "m"
    assert one(store, "m") == note("m", "first", version=9)


def test_a_replacement_needs_the_stored_version_and_raises_it_by_one(store: Store) -> None:
    put(store, note("m", "first"))
    store.records.write([Put(note("m", "second", version=77), expected_version=1)])
    assert one(store, "m") == note("m", "second", version=2)
    for wrong in (0, 1, 3):
        assert refuses(store, Put(note("m", "third"), expected_version=wrong)).existing_id == "m"
    assert one(store, "m") == note("m", "second", version=2)


def test_replacing_what_is_not_there_is_not_found(store: Store) -> None:
    put(store, note("foreign", namespace="n1"))
    for memory in (note("nobody"), note("foreign", namespace="n2")):
        with pytest.raises(NotFound):
            store.records.write([Put(memory, expected_version=1)])
    assert store.records.fetch(["nobody", "foreign"]) == [note("foreign", namespace="n1")]


def test_a_replacement_never_turns_touches_back(store: Store) -> None:
    put(store, note("m", accessed_at=at(10), access_count=3))
    stale = note("m", "changed", accessed_at=at(5), access_count=2)
    store.records.write([Put(stale, expected_version=1)])
    assert one(store, "m") == replace(stale, accessed_at=at(10), access_count=3, version=2)
    later = note("m", "again", accessed_at=at(20), access_count=5)
    store.records.write([Put(later, expected_version=2)])
    assert one(store, "m") == replace(later, version=3)


def test_a_key_belongs_to_one_memory_of_a_namespace(store: Store) -> None:
    put(store, note("a", key="k", project="p"), note("b", key="k", namespace="other"), note("c"), note("d"))
    assert refuses(store, Put(note("e", key="k"))).existing_id == "a"
    assert refuses(store, Put(note("c", key="k"), expected_version=1)).existing_id == "a"
    store.records.write([Put(note("a", "changed", key="k", project="p"), expected_version=1)])
    store.records.write([Erase("a"), Put(note("e", key="k"))])
    assert store.records.lookup("default", key="k").key_id == "e"


SAME = ["Use  tabs,\nnot spaces É ß", "use tabs, not spaces é SS", " USE TABS, NOT SPACES E\u0301 ss "]


@pytest.mark.parametrize("content", SAME)
def test_once_refuses_the_same_text_in_the_same_project(store: Store, content: str) -> None:
    put(store, note("z", SAME[0], project="p"), note("y", SAME[0], project="p"))
    assert refuses(store, Put(note("n", content, project="p"), once=True)).existing_id == "y"
    store.records.write([Put(note("n", content, project="p"))])


def test_once_minds_neither_other_places_nor_other_texts_nor_itself(store: Store) -> None:
    put(store, note("a", "text", project="p"))
    store.records.write(
        [
            Put(note("b", "text"), once=True),
            Put(note("c", "text", project="q"), once=True),
            Put(note("d", "text", project="p", namespace="n"), once=True),
            Put(note("e", "texts", project="p"), once=True),
            Put(note("a", "TEXT", project="p"), expected_version=1, once=True),
        ]
    )
    assert refuses(store, Put(note("f", "text"), once=True)).existing_id == "b"
    assert refuses(store, Put(note("e", "text", project="p"), expected_version=1, once=True)).existing_id == "a"


@pytest.mark.covers("more.forget")
@pytest.mark.parametrize("content", SAME)
def test_an_erased_text_stays_away_from_its_namespace(store: Store, content: str) -> None:
    put(store, note("m", SAME[0], project="p"), note("twin", SAME[0], project="q"), note("other", "else"))
    store.records.write([Erase("m")])
    assert store.records.lookup("default", content=content).buried
    assert not store.records.lookup("n", content=content).buried
    for change in (Put(note("back", content)), Put(note("other", content), expected_version=1)):
        assert refuses(store, change).existing_id is None
    store.records.write([Put(note("elsewhere", content, namespace="n"))])
    store.records.write([Put(note("twin", content, project="q", tags=("t",)), expected_version=1)])
    assert one(store, "twin").tags == ("t",)


@pytest.mark.covers("more.forget")
def test_revive_takes_the_tombstone_away(store: Store) -> None:
    put(store, note("m", "text"))
    store.records.write([Erase("m")])
    store.records.write([Put(note("n", "Text"), revive=True)])
    assert not store.records.lookup("default", content="text").buried
    put(store, note("o", "text"))


def test_erasing_without_a_tombstone_lets_the_text_return(store: Store) -> None:
    put(store, note("m", "text"))
    store.records.write([Erase("m", tombstone=False)])
    assert not store.records.lookup("default", content="text").buried
    put(store, note("m", "text"))


def test_the_key_is_checked_before_the_text_and_the_text_before_the_tombstone(store: Store) -> None:
    put(store, note("buried", "text", project="q"), note("live", "text"), note("keyed", "else", key="k"))
    store.records.write([Erase("buried")])
    assert refuses(store, Put(note("new", "text", key="k"), once=True)).existing_id == "keyed"
    assert refuses(store, Put(note("new", "text"), once=True)).existing_id == "live"
    assert refuses(store, Put(note("new", "text"))).existing_id is None


def test_erasing_the_unknown_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.records.write([Erase("nobody")])
    assert store.care.stats().tombstones == 0


def test_erasing_what_has_changed_since_it_was_read_is_a_conflict(store: Store) -> None:
    put(store, note("m", "text"))
    store.records.write([Put(note("m", "other text"), expected_version=1)])
    with pytest.raises(Conflict, match="version 2, not 1") as refused:
        store.records.write([Erase("m", expected_version=1)])
    assert refused.value.existing_id == "m"
    assert [one.content for one in store.records.fetch(["m"])] == ["other text"]
    store.records.write([Erase("m", expected_version=2)])
    assert store.records.fetch(["m"]) == []


def test_an_erased_memory_is_nowhere(store: Store) -> None:
    put(store, note("m", "text", key="k", project="p", session="s"))
    store.records.write([Erase("m")])
    assert store.records.fetch(["m"]) == []
    assert store.records.scan(ALL) == []
    assert store.records.recent(ALL, 10, embedded=False) == []
    looked_up = store.records.lookup("default", key="k", content="text", project="p", session="s")
    assert looked_up == Lookup(buried=True)


@pytest.mark.covers("two-stage.touch")
def test_a_touch_moves_access_forwards_only(store: Store) -> None:
    before = [note("a", accessed_at=at(10), access_count=1), note("b", accessed_at=at(30))]
    put(store, *before)
    moment = at(20) + timedelta(microseconds=999)
    store.records.write([Touch(("a", "nobody", "b", "a"), moment, count=2), Touch(("a",), at(15))])
    assert store.records.fetch(["a", "b"]) == [
        replace(before[0], accessed_at=at(20), access_count=3),
        replace(before[1], access_count=2),
    ]


FAILING = [
    Put(note("known")),
    Put(note("nobody"), expected_version=1),
    Put(note("known"), expected_version=2),
    Put(note("new", key="taken")),
    Put(note("new", "the text of known"), once=True),
    Put(note("new", "forgotten")),
    Put(note("new", metadata={"bad": object()})),
    Erase("nobody"),
    AddLink(Link("known", "see-also", "nobody")),
    SetSetting("bad", object()),
]


@pytest.mark.parametrize("failing", FAILING, ids=lambda change: type(change).__name__)
def test_a_write_is_all_or_nothing(store: Store, failing: Put) -> None:
    put(store, note("known", key="taken"), note("doomed", "forgotten"), note("other"), note("linked"))
    kept = Link("known", "see-also", "linked")
    store.records.write([Erase("doomed"), AddLink(kept), SetSetting("kept", 1)])
    before = (store.records.scan(ALL), store.care.stats(), store.care.settings())
    good = [
        Put(note("fresh", "a fresh text")),
        Put(note("other", "another text"), expected_version=1),
        Touch(("known",), at(99), count=5),
        AddLink(Link("known", "part-of", "fresh")),
        DropLink(kept),
        SetSetting("kept", 2),
        Erase("linked"),
    ]
    with pytest.raises((Conflict, NotFound, InvalidInput)):
        store.records.write([*good, failing])
    memories, stats, settings = before
    assert store.records.scan(ALL) == memories
    assert replace(store.care.stats(), bytes=stats.bytes) == stats
    assert store.care.settings() == settings
    assert store.links is not None
    assert store.links.links(["known"]) == [kept]
    assert store.text is not None
    assert store.text.frequencies(store.text.tokens("fresh another")) == [0, 0]
    assert not store.records.lookup("default", content="the text of linked").buried
    store.records.write(good)


def test_changes_see_those_before_them(store: Store) -> None:
    store.records.write(
        [
            Put(note("a", "one", key="k")),
            Put(note("a", "two", key="k"), expected_version=1),
            Erase("a"),
            Put(note("b", "one", key="k")),
            Put(note("c")),
            AddLink(Link("b", "supersedes", "c")),
            Touch(("b",), at(1), count=1),
        ]
    )
    assert one(store, "b").access_count == 1
    assert store.records.lookup("default", content="two").buried
    assert not store.records.lookup("default", content="one").buried
    store.records.write([])


def test_scan_orders_by_time_newest_first_or_by_id(store: Store) -> None:
    put(
        store,
        note("b", created_at=at(1), accessed_at=at(9)),
        note("a", created_at=at(1), accessed_at=at(7)),
        note("d", created_at=at(3), accessed_at=at(7)),
        note("c", created_at=at(2), accessed_at=at(8)),
    )
    assert ids(store.records.scan(ALL)) == ["d", "c", "b", "a"]
    assert ids(store.records.scan(ALL, order="accessed_at")) == ["b", "c", "d", "a"]
    assert ids(store.records.scan(ALL, order="id")) == ["a", "b", "c", "d"]
    assert ids(store.records.scan(ALL, order="id", limit=2)) == ["a", "b"]


@pytest.mark.parametrize("order", ["created_at", "accessed_at", "id"])
def test_pages_show_every_memory_in_scope_once(store: Store, order: str) -> None:
    put(
        store,
        *(
            note(
                f"m{number * 7 % 23:02}",
                created_at=at(number % 3),
                accessed_at=at(number % 4),
                project="pq"[number % 2],
            )
            for number in range(23)
        ),
    )
    wanted = Filter(project="p")
    pages: list[list[str]] = []
    while page := ids(store.records.scan(wanted, order=order, limit=5, after=pages[-1][-1] if pages else None)):
        pages.append(page)
    assert [id for page in pages for id in page] == ids(store.records.scan(wanted, order=order))
    assert sum(len(page) for page in pages) == 12
    assert all(len(page) == 5 for page in pages[:-1])


def test_a_page_can_follow_a_memory_outside_the_filter(store: Store) -> None:
    put(store, *(note(id, created_at=at(number), project=id) for number, id in enumerate("abc")))
    assert ids(store.records.scan(Filter(project="a"), after="b")) == ["a"]
    assert ids(store.records.scan(Filter(project="c"), after="b")) == []


def test_a_page_after_a_lost_memory_goes_on_by_id_only(store: Store) -> None:
    put(store, note("a"), note("b"), note("c"), note("foreign", namespace="n"))
    store.records.write([Erase("b")])
    assert ids(store.records.scan(ALL, order="id", after="b")) == ["c"]
    for lost in ("b", "foreign"):
        for order in ("created_at", "accessed_at"):
            with pytest.raises(NotFound):
                store.records.scan(ALL, order=order, after=lost)


@pytest.mark.parametrize("order", ["created_at", "accessed_at", "id"])
def test_a_page_goes_on_behind_the_place_of_a_memory_that_was_forgotten(store: Store, order: ScanOrder) -> None:
    put(
        store,
        *(note(id, created_at=at(number // 2), accessed_at=at(number // 2)) for number, id in enumerate("abcdef")),
    )
    listed = ids(store.records.scan(ALL, order=order))
    for number, id in enumerate(listed[:-1]):
        place = Behind(at("abcdef".index(id) // 2), id)
        assert ids(store.records.scan(ALL, order=order, after=place)) == listed[number + 1 :]
        store.records.write([Erase(id)])
        assert ids(store.records.scan(ALL, order=order, after=place)) == listed[number + 1 :]


@pytest.mark.parametrize("order", ["created_at", "accessed_at"])
def test_a_page_after_what_can_be_no_id_is_refused(store: Store, order: ScanOrder) -> None:
    put(store, note("a"))
    with pytest.raises((InvalidInput, NotFound)):
        store.records.scan(ALL, order=order, after="half of a pair: \ud800")
    for odd in ("half of a pair: \ud800", "nothing: \0"):
        with contextlib.suppress(InvalidInput):  # or a page, where a store has a place for it
            assert ids(store.records.scan(ALL, order=order, after=Behind(EPOCH - timedelta(days=1), odd))) == []


@pytest.mark.covers("two-stage.pool")
def test_recent_is_by_last_access_with_newer_ids_first(store: Store, vectors: VectorIndex) -> None:
    memories = {id: note(id, accessed_at=at(second)) for id, second in {"a": 2, "b": 2, "c": 0.125, "d": 5}.items()}
    put(store, *memories.values())
    hits = store.records.recent(ALL, 10, embedded=False)
    assert hits == [Hit(id, memories[id].accessed_at.timestamp()) for id in "dbac"]
    assert store.records.recent(ALL, 2, embedded=False) == hits[:2]
    assert store.records.recent(ALL, 10, embedded=True) == []
    vectors.put("one", [embedded(memories["a"], [1, 0])])
    vectors.put("two", [embedded(memories["c"], [1, 0, 0])])
    assert [hit.id for hit in store.records.recent(ALL, 10, embedded=True)] == ["a", "c"]
    assert [hit.id for hit in store.records.recent(ALL, 1, embedded=True)] == ["a"]


def test_lookup_answers_only_what_is_asked(store: Store) -> None:
    put(
        store,
        note("b", "Text", key="k1", project="p", session="s"),
        note("a", "text", key="k2", project="p", session="s"),
        note("c", "text", session="s"),
        note("d", "text", project="a", session="s"),
        note("e", "text", project="z", session="t"),
        note("f", "text", project="n", session="s", namespace="n", key="k1"),
        note("g", "else", project="without session"),
    )
    lookup = store.records.lookup
    assert lookup("default") == Lookup()
    assert lookup("default", project="p") == Lookup()
    assert lookup("default", key="k1") == Lookup(key_id="b")
    assert lookup("n", key="k1") == Lookup(key_id="f")
    assert lookup("default", key="K1") == Lookup()
    assert lookup("default", content=" TEXT") == Lookup(content_id="c", alike=("c",))
    assert lookup("default", content="text", project="p") == Lookup(content_id="a", alike=("a", "b"))
    assert lookup("default", content="the texts") == Lookup(alike=("c",))
    assert lookup("default", content="words") == Lookup()
    assert lookup("default", session="s") == Lookup(session_projects=("a", "p"))
    assert lookup("default", session="s", project="a") == Lookup(session_projects=("a", "p"))
    assert lookup("default", session="nobody") == Lookup()


def test_many_lookups_are_answered_as_each_would_be(store: Store) -> None:
    put(
        store,
        note("a", "The build runs twice", key="k1"),
        note("b", "the builds run twice", project="p"),
        note("c", "Builds run twice!", project="p"),
        note("d", "Build runs twice", project="p", type="episode"),
        note("e", "Something else", project="p", key="k2"),
        note("gone", "Forget the old build"),
        note("n", "the builds run twice", project="p", namespace="n", key="k1"),
    )
    store.records.write([Erase("gone")])
    wanted = [
        Wanted("k2", "builds run TWICE", "p"),
        Wanted(),
        Wanted(content="builds run TWICE"),
        Wanted(key="k1", project="p"),
        Wanted("nobody", "forget the OLD build"),
        Wanted(content="build runs twice", project="p"),
        Wanted(content="builds run TWICE", project="q"),
    ]
    found = store.records.lookups("default", wanted)
    assert found == [
        Lookup("e", None, ("b", "c")),
        Lookup(),
        Lookup(None, None, ("a",)),
        Lookup("a"),
        Lookup(buried=True),
        Lookup(None, "d", ("b", "c")),
        Lookup(),
    ]
    lookup = store.records.lookup
    assert found == [lookup("default", key=one.key, content=one.content, project=one.project) for one in wanted]
    assert store.records.lookups("n", wanted[:1]) == [Lookup(None, None, ("n",))]
    assert store.records.lookups("default", []) == []


def test_of_very_many_that_are_alike_some_are_told(store: Store) -> None:
    put(store, *(note(f"m{number:02}", f"Release {'the ' * number}app") for number in range(30)))
    put(store, note("m99", "The release of the app", session="s"))
    (found,) = store.records.lookups("default", [Wanted(content="app release")])
    assert found == Lookup(alike=tuple(f"m{number:02}" for number in range(20)))
    (found,) = store.records.lookups("default", [Wanted(content="app release", session="s")])
    assert found.alike == ("m99", *(f"m{number:02}" for number in range(19)))


def test_what_is_changed_is_alike_with_its_new_text(store: Store) -> None:
    put(store, note("m", "The build runs twice"))
    store.records.write([Put(note("m", "Tea is served at noon"), expected_version=1)])
    assert store.records.lookup("default", content="builds run twice") == Lookup()
    assert store.records.lookup("default", content="at noon, tea is served").alike == ("m",)


def test_once_minds_the_text_and_not_what_is_alike(store: Store) -> None:
    put(store, note("a", "The build runs twice"))
    store.records.write(
        [Put(note("b", "the builds run twice"), once=True), Put(note("c", "build runs twice"), once=True)]
    )
    assert refuses(store, Put(note("d", "the build RUNS twice"), once=True)).existing_id == "a"
    same = [Put(note("e", "Tea at noon"), once=True), Put(note("f", "tea at NOON"), once=True)]
    with pytest.raises(Conflict):
        store.records.write(same)
    assert store.records.fetch(["d", "e", "f"]) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_means_no_memories(store: Store, limit: int) -> None:
    put(store, note("a"), note("b"), note("c"))
    assert store.records.scan(ALL, limit=limit) == []
    assert store.records.recent(ALL, limit, embedded=False) == []


def test_a_lasting_store_keeps_everything(lasting_backend, tmp_path: Path) -> None:
    path = tmp_path / "lasting.db"
    memories = [note("a", key="k", tags=("t",), metadata={"deep": [1]}), note("b", project="p", sensitive=True)]
    first = lasting_backend.open(path)
    put(first, *memories, note("gone", "gone"))
    link = Link("a", "see-also", "b", created_at=at(3))
    first.records.write([Erase("gone"), AddLink(link), SetSetting("weight", 0.5)])
    first.vectors.put("model", [embedded(memories[0], [0.6, 0.8], passages=((0, 4),))])
    before = (first.care.stats(), first.vectors.similarities("model", embedded(memories[0], [1, 0]).vectors[0], ["a"]))
    first.close()
    again = lasting_backend.open(path)
    assert again.records.fetch(["a", "b", "gone"]) == memories
    assert again.records.lookup("default", content="gone").buried
    assert again.links.links(["b"]) == [link]
    assert again.care.settings() == {"weight": 0.5}
    assert again.text.frequencies(again.text.tokens("text")) == [2]
    assert replace(again.care.stats(), bytes=before[0].bytes) == before[0]
    assert again.vectors.similarities("model", embedded(memories[0], [1, 0]).vectors[0], ["a"]) == before[1]
    again.close()
