"""Concepts by a model on every store: what waits, what is marked, what is linked, and what is left when it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from contract_cases import at, failed, note, one, put

from recollect.domain.changes import AddLink, Erase, Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import MENTIONS, Link, Memory
from recollect.encoders.chat import Chat
from recollect.encoders.concepts import ChatExtractor
from recollect.ports import EmbeddingProgress, Extractor, Store
from recollect.upkeep import ExtractReport, drop_concepts, extract_backlog
from recollect.upkeep.concepts import MAX_ATTEMPTS, Marked, marks
from tests.chat_server import Answer, ChatServer, chat_server, names

SERVICE = note("m1", "the billing service writes invoices at night")
OWNER = note("m2", "ana from the platform team owns the billing service")
TITLED = note("m3", "platform team\nfour people who keep the servers alive")
OTHER = note("m4", "nothing here has a name of its own", namespace="elsewhere")
KNOWN: dict[str, Answer] = {
    SERVICE.content: names("billing service"),
    OWNER.content: names("ana", "billing service", "platform team"),
    TITLED.content: names(""),  # its title says what it is about
    OTHER.content: names("", "billing service"),
}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(lambda text: KNOWN.get(text, names(""))) as running:
        yield running


@pytest.fixture
def extractor(server: ChatServer) -> Extractor:
    return ChatExtractor(Chat(server.url, "", "small"))


@pytest.fixture
def read(store: Store, extractor: Extractor) -> Callable[[], ExtractReport]:
    return lambda: extract_backlog(store, extractor, now=at(0))


def linked(store: Store, *ids: str) -> set[tuple[str, str]]:
    assert store.links is not None
    return {(link.source, link.target) for link in store.links.links(ids) if link.type == MENTIONS}


def progress(store: Store, extractor: Extractor) -> EmbeddingProgress:
    assert store.vectors is not None
    return store.vectors.progress(extractor.id)


def changed(store: Store, memory: Memory, content: str, sensitive: bool = False) -> None:
    store.records.write([Put(note(memory.id, content, sensitive=sensitive), one(store, memory.id).version)])


@pytest.mark.parametrize("order", [(SERVICE, OWNER, TITLED, OTHER), (OTHER, TITLED, OWNER, SERVICE)])
def test_a_memory_leads_to_those_that_are_about_what_it_names(
    store: Store, extractor: Extractor, read: Callable[[], ExtractReport], order: tuple[Memory, ...]
) -> None:
    put(store, *order)
    assert read() == ExtractReport(extracted=4, linked=2)
    assert linked(store, "m1", "m2", "m3", "m4") == {("m2", "m1"), ("m2", "m3")}
    assert marks(store, extractor.id, ["m2", "m4"]) == {
        "m2": Marked(("ana",), frozenset({("billing", "service"), ("platform", "team")})),
        "m4": Marked(),
    }
    assert progress(store, extractor) == EmbeddingProgress(done=4, pending=0, failed=0)
    assert store.care.check() == []


@pytest.mark.parametrize("owner", ["shop", None])
@pytest.mark.parametrize("turned", [False, True])
def test_links_stay_within_the_project(
    store: Store, read: Callable[[], ExtractReport], owner: str | None, turned: bool
) -> None:
    service = note("m1", SERVICE.content, project="shop")
    named = note("m2", OWNER.content, project=owner)
    put(store, *((named, service) if turned else (service, named)))
    read()
    assert linked(store, "m1", "m2") == ({("m2", "m1")} if owner == "shop" else set())


def test_what_was_read_is_not_read_again(store: Store, server: ChatServer, read: Callable[[], ExtractReport]) -> None:
    put(store, SERVICE)
    assert read().extracted == 1
    assert read() == ExtractReport()
    assert server.notes == [SERVICE.content]


def test_a_changed_text_is_read_again_and_its_links_follow(
    store: Store, extractor: Extractor, read: Callable[[], ExtractReport]
) -> None:
    put(store, SERVICE, OWNER, TITLED)
    read()
    changed(store, SERVICE, TITLED.content)
    assert progress(store, extractor).pending == 1
    read()
    assert linked(store, "m1", "m2", "m3") == {("m2", "m1"), ("m2", "m3")}
    changed(store, OWNER, "nobody owns anything")
    read()
    assert linked(store, "m1", "m2", "m3") == set()


def test_a_forgotten_memory_leaves_nothing(
    store: Store, extractor: Extractor, read: Callable[[], ExtractReport]
) -> None:
    put(store, SERVICE, OWNER)
    read()
    store.records.write([Erase("m1")])
    assert linked(store, "m2") == set()
    assert marks(store, extractor.id, ["m1", "m2"]).keys() == {"m2"}
    assert progress(store, extractor) == EmbeddingProgress(done=1, pending=0, failed=0)


def test_sensitive_memories_are_never_shown(
    store: Store, server: ChatServer, extractor: Extractor, read: Callable[[], ExtractReport]
) -> None:
    put(store, note("m1", "the code is 1234", sensitive=True), OWNER)
    read()
    changed(store, OWNER, OWNER.content, sensitive=True)
    read()
    assert server.notes == [OWNER.content]
    assert marks(store, extractor.id, ["m1", "m2"]) == {}


def test_a_text_of_which_the_model_makes_nothing_is_given_up_after_a_while(
    store: Store, server: ChatServer, extractor: Extractor
) -> None:
    server.answer = lambda text: names("") if "minutes" in text else "I would rather not."
    put(store, SERVICE)
    assert extract_backlog(store, extractor, now=at(0)) == ExtractReport(failed=1)
    assert progress(store, extractor) == EmbeddingProgress(done=0, pending=0, failed=1)
    assert store.vectors is not None
    for _ in range(MAX_ATTEMPTS - 1):  # without waiting for their turn
        store.vectors.put(extractor.id, [failed(SERVICE)])
    asked = len(server.notes)
    assert extract_backlog(store, extractor, now=at(0)) == ExtractReport()
    assert len(server.notes) == asked
    changed(store, SERVICE, OWNER.content)
    server.answer = lambda text: KNOWN.get(text, names(""))
    assert extract_backlog(store, extractor, now=at(0)).extracted == 1


def test_a_model_that_is_down_costs_nobody_anything(store: Store, extractor: Extractor, server: ChatServer) -> None:
    server.answer = lambda _: 401
    put(store, SERVICE)
    assert extract_backlog(store, extractor, now=at(0)).stopped == "the model is unavailable"
    assert progress(store, extractor) == EmbeddingProgress(done=0, pending=1, failed=0)


def test_who_was_stopped_goes_on_where_it_was(store: Store, extractor: Extractor, server: ChatServer) -> None:
    put(store, SERVICE, OWNER, TITLED)
    assert extract_backlog(store, extractor, now=at(0), budget_seconds=0).stopped == "out of time"
    assert extract_backlog(store, extractor, now=at(0), stop=lambda: True).stopped == "asked to stop"
    assert server.notes == [SERVICE.content]
    extract_backlog(store, extractor, now=at(0))
    assert server.notes == [SERVICE.content, OWNER.content, TITLED.content]
    assert linked(store, "m1", "m2", "m3") == {("m2", "m1"), ("m2", "m3")}


@pytest.mark.parametrize("port", ["records.write", "vectors.put"])
def test_a_crash_while_the_work_is_kept_is_made_good(
    store: Store,
    extractor: Extractor,
    read: Callable[[], ExtractReport],
    port: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    put(store, SERVICE)
    read()
    put(store, OWNER)
    with monkeypatch.context() as patched:
        where, method = port.split(".")
        patched.setattr(getattr(store, where), method, crash)
        with pytest.raises(StoreUnavailable):
            read()
    assert progress(store, extractor) == EmbeddingProgress(done=1, pending=1, failed=0)
    assert read().extracted == 1
    assert linked(store, "m1", "m2") == {("m2", "m1")}


def test_a_text_that_changes_while_it_is_read_is_read_again(
    store: Store, server: ChatServer, extractor: Extractor, read: Callable[[], ExtractReport]
) -> None:
    seen: list[set[tuple[str, str]]] = []

    def change(text: str) -> Answer:
        if text == OWNER.content:
            changed(store, OWNER, "nobody owns the platform team")
        seen.append(linked(store, "m2"))
        return KNOWN.get(text, names("", "platform team"))

    put(store, TITLED, OWNER)
    server.answer = change
    read()
    assert server.notes == [TITLED.content, OWNER.content, "nobody owns the platform team"]
    assert seen == [set(), set(), set()]
    assert linked(store, "m2") == {("m2", "m3")}
    assert marks(store, extractor.id, ["m2"]) == {"m2": Marked((), frozenset({("platform", "team")}))}


def test_dropping_takes_all_of_it_and_nothing_else(
    store: Store, extractor: Extractor, read: Callable[[], ExtractReport]
) -> None:
    put(store, SERVICE, OWNER, TITLED, OTHER)
    store.records.write([AddLink(Link("m1", "see-also", "m2", at(0)))])
    read()
    assert drop_concepts(store, None) == 2
    assert store.links is not None
    assert [link.type for link in store.links.links(["m1", "m2", "m3"])] == ["see-also"]
    assert marks(store, extractor.id, ["m1", "m2", "m3", "m4"]) == {}
    assert store.care.check() == []
    assert read() == ExtractReport(extracted=4, linked=2)


def test_a_name_that_stands_everywhere_leads_nowhere(store: Store, read: Callable[[], ExtractReport]) -> None:
    titled = note("m0", "billing service\nruns at night")
    alarms = [note(f"n{number:02}", f"{number} billing service alarms") for number in range(30)]
    put(store, titled, SERVICE, *alarms, OWNER)
    read()
    assert linked(store, "m0", "m1", "m2") == set()


def test_another_model_reads_everything_anew(store: Store, server: ChatServer, extractor: Extractor) -> None:
    put(store, SERVICE, OWNER)
    extract_backlog(store, extractor, now=at(0))
    server.answer = lambda _: names("")
    larger = ChatExtractor(Chat(server.url, "", "large"))
    assert extract_backlog(store, larger, now=at(0)).extracted == 2
    assert linked(store, "m1", "m2") == set()
