"""The wall between tenants stands in the database: our own conditions taken away, no foreign row is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import AddLink, Erase, Put, SetSetting, Touch
from recollect.domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from recollect.domain.memory import EPOCH, Link, Memory, Scope, content_hash
from recollect.domain.query import And, Node, Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.importers import copying
from recollect.importers.copying import copy_store
from recollect.ports import Embedded, Store
from recollect.stores.memory import open_memory
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.connection import EVERYONE, Server
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.postgres.schema import MIGRATIONS
from recollect.stores.scope_terms import scope_token
from tests.postgres_server import APP, shared_server

pytestmark = pytest.mark.postgres

EAST = np.array([1, 0], dtype=np.float32)


def fill(store: Store) -> None:
    """Two tenants with the same words, and a secret word each."""
    memories = [
        Memory(f"{tenant}{number}", f"shared words number {number} secret{tenant}", scope=Scope(tenant, session="s"))
        for tenant in ("a", "b")
        for number in range(4)
    ]
    store.records.write([Put(memory) for memory in memories])
    store.records.write([AddLink(Link("a0", "see-also", "a1")), AddLink(Link("b0", "see-also", "b1")), Erase("b3")])
    assert store.vectors is not None
    entries = [Embedded(memory.id, content_hash(memory.content), EAST[None, :]) for memory in memories]
    store.vectors.put("model", entries)


@pytest.fixture
def address() -> Iterator[str]:
    """A filled store, its tables owned by one role and used by another."""
    given = shared_server().fresh(role=APP)
    store = open_postgres(given)
    fill(store)
    store.close()
    yield given
    shared_server().end_of_test()


QUERIES: list[Node] = [
    Term("shared"),
    Prefix("shar"),
    Phrase(("shared", "words")),
    Or((Term("secretb"), Term("number"))),
    And((Term("shared"), Prefix("secret"))),
]
FINDERS: dict[str, Callable[[Store, Filter], list[str]]] = {
    "scan": lambda store, filter: [memory.id for memory in store.records.scan(filter)],
    "recent": lambda store, filter: [hit.id for hit in store.records.recent(filter, 50, embedded=False)],
    "embedded": lambda store, filter: [hit.id for hit in store.records.recent(filter, 50, embedded=True)],
    "search": lambda store, filter: [hit.id for hit in store.vectors.search("model", EAST, filter, 50)],  # type: ignore[union-attr]
    "match": lambda store, filter: [
        id
        for query in QUERIES
        for id in store.text.match(query, filter, 50).ids  # type: ignore[union-attr]
    ],
}


@pytest.fixture
def without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our code, with every condition on the namespace of rows made true before it reaches the server."""
    usual = psycopg.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(query, bytes):
            query = re.sub(rb"(?<!counts WHERE )(?<![\w.])((\w\.)?namespace = (%s|'\w+'))", rb"(\1 OR true)", query)
        return usual(self, query, *arguments, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    monkeypatch.setattr(finding, "scope_query", lambda *_: ["!'nothing'"])


@pytest.mark.parametrize("finder", FINDERS)
@pytest.mark.parametrize("filter", [Filter("a"), Filter("a", sessions=("s",)), Filter("a", exclude=frozenset({"a1"}))])
def test_without_our_own_conditions_no_foreign_row_is_seen(
    address: str, without_conditions: None, finder: str, filter: Filter
) -> None:
    store = open_postgres(address)
    found = FINDERS[finder](store, filter)
    store.close()
    assert found
    assert {id[0] for id in found} == {"a"}


@pytest.mark.parametrize("finder", sorted(set(FINDERS) - {"match"}))
def test_the_wall_is_the_databases(address: str, without_conditions: None, finder: str) -> None:
    """The same as a superuser, whom row-level security does not bind: the foreign rows are there to be seen."""
    store = open_postgres(address.replace("recollect_owner@", "postgres@").replace(f"&role={APP}", ""))
    found = FINDERS[finder](store, Filter("a"))
    store.close()
    assert {id[0] for id in found} == {"a", "b"}


def test_a_connection_that_names_no_tenant_sees_nothing(address: str) -> None:
    schema = re.search(r"schema=(\w+)", address)
    assert schema is not None
    for user, tables in (
        ("recollect_owner", ("memories", "links", "vectors", "outbox", "tombstones", "terms", "counts", "tallies")),
        (APP, ("memories", "links", "vectors", "outbox", "tombstones", "terms", "counts", "tallies", "texts", "words")),
    ):
        with psycopg.connect(shared_server().address(user)) as connection:
            for table in tables:
                counted = connection.execute(f"SELECT count(*) FROM {schema[1]}.{table}".encode()).fetchone()
                assert counted == (0,), (user, table)


def test_a_bound_store_knows_one_tenant_alone(address: str) -> None:
    store = open_postgres(f"{address}&namespace=a")
    assert store.text is not None and store.vectors is not None and store.links is not None
    assert store.records.fetch(["a0", "b0"]) == store.records.fetch(["a0"])
    assert store.records.scan(Filter("b")) == []
    assert store.links.links(["b0", "b1"]) == []
    assert set(store.vectors.similarities("model", EAST, ["a0", "b0"])) == {"a0"}
    stats = store.care.stats()
    assert (stats.memories, stats.tombstones, stats.links, stats.vectors) == (4, 0, 1, 4)
    assert dict(stats.namespaces) == {"a": 4}
    assert store.text.frequencies(["share", "secretb"]) == [4, 0]
    assert store.text.match(Term("shared"), Filter("a"), 9).documents == 4
    assert store.text.similar("secretb", 0.9, 5) == []
    with pytest.raises(NotFound):
        store.records.write([Erase("b0")])
    store.records.write([Touch(("b0",), EPOCH, count=9)])
    with pytest.raises(InvalidInput) as caught:
        store.records.write([Put(Memory("c", "text", scope=Scope("b")))])
    assert "namespace" in caught.value.hint
    store.close()
    whole = open_postgres(address)
    assert [memory.access_count for memory in whole.records.fetch(["b0"])] == [0]
    assert whole.care.check() == []
    whole.close()


@pytest.mark.parametrize(("tenant", "demanded"), [("a", True), ("b", False)])
def test_a_bound_store_asks_the_shared_index_for_its_own_tenant(
    tenant: str, demanded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the counts of its own tenant are known to it; still it asks for that alone, unless it is most of all."""
    given = shared_server().fresh()
    whole = open_postgres(given)
    fill(whole)
    whole.records.write([Put(Memory(f"more{n}", f"shared words {n}", scope=Scope("b"))) for n in range(9)])
    whole.close()
    bound = open_postgres(f"{given}&namespace={tenant}")
    asked: dict[str, Any] = {}
    usual, usual_from = finding.one, Server.read_from
    monkeypatch.setattr(finding, "one", lambda *given: asked.update({given[1]: given[2]}) or usual(*given))
    monkeypatch.setattr(Server, "read_from", lambda *given: asked.update({given[1]: given[2]}) or usual_from(*given))
    assert bound.text is not None
    mark = scope_token("namespace", tenant, "")
    assert mark in bound.text.match(Term("shared"), Filter(tenant), 9).compiled  # nobody knows yet who holds how much
    shared_server().execute(f"ANALYZE {given.rpartition('schema=')[2]}.texts")
    found = bound.text.match(Or((Term("shared"), Phrase(("shared", "words")))), Filter(tenant), 20)
    assert found.documents == len(found.ids) == found.frequencies[1] == (4 if tenant == "a" else 12)
    assert (mark in found.compiled) == demanded
    assert mark in asked["SELECT count_texts(%s, %s)"][0]  # nor does it count everybody's phrases
    assert "FROM terms WHERE term = u.term AND namespace = %(tenant)s" in "".join(asked)
    bound.close()


def test_row_level_security_refuses_what_our_code_would_let_through(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.postgres.records._require_own", lambda *_: None)
    store = open_postgres(f"{address}&namespace=a")
    with pytest.raises(StoreUnavailable):
        store.records.write([Put(Memory("c", "text", scope=Scope("b")))])
    store.close()


def test_a_repair_in_a_bound_store_leaves_the_other_tenants_alone() -> None:
    """Also as the owner of the tables, who could see all full texts."""
    given = shared_server().fresh()
    whole = open_postgres(given)
    fill(whole)
    shared_server().execute(f"UPDATE {given.rpartition('schema=')[2]}.counts SET tokens = 7 WHERE namespace = 'a'")
    bound = open_postgres(f"{given}&namespace=a")
    assert [finding.repaired for finding in bound.care.check(repair=True)] == [True]
    bound.close()
    assert whole.care.check() == []
    assert whole.text is not None
    assert sorted(whole.text.match(Term("shared"), Filter("b"), 9).ids) == ["b0", "b1", "b2"]
    assert [word for word, _ in whole.text.similar("secretb", 0.9, 5)] == ["secretb"]
    whole.close()


@pytest.mark.parametrize("user", ["recollect_owner", APP])
def test_a_copy_into_a_bound_store_leaves_the_other_tenants_tombstones_valid(address: str, user: str) -> None:
    source = open_memory()
    source.records.write([Put(Memory("c0", "of another store", scope=Scope("c")))])
    given = address.replace("recollect_owner@", f"{user}@")
    given = given if user == APP else given.replace(f"&role={APP}", "")
    bound = open_postgres(f"{given}&namespace=c")
    assert copy_store(source, bound).memories == 1
    bound.close()
    whole = open_postgres(address)
    assert whole.records.lookup("b", content="shared words number 3 secretb").buried
    whole.close()


def test_a_copy_into_a_bound_store_leaves_the_settings_of_all_alone(address: str) -> None:
    source, whole = open_memory(), open_postgres(address)
    source.records.write([Put(Memory("c0", "of another store", scope=Scope("c"))), SetSetting("their own", 2)])
    whole.records.write([SetSetting("everybody's", 1)])
    bound = open_postgres(f"{address}&namespace=c")
    assert copy_store(source, bound).memories == 1
    assert whole.care.settings() == {"everybody's": 1}
    bound.close()
    whole.close()


def test_a_copy_into_a_bound_store_that_will_be_refused_does_not_begin(address: str) -> None:
    source = open_memory()
    source.records.write([Put(Memory(id, f"text {id}", scope=Scope("c"))) for id in ("c0", "c1")])
    source.records.write([Erase("c1")])
    bound = open_postgres(f"{address}&namespace=c")
    with pytest.raises(Conflict, match="tombstones"):
        copy_store(source, bound)
    assert bound.care.stats().memories == 0 and bound.care.settings() == {}
    source.records.write([Erase("c0", tombstone=False), Put(Memory("e0", "of no tenant here", scope=Scope("e")))])
    source.records.write([Put(Memory("c2", "text c1", scope=Scope("c")), revive=True), Erase("c2", tombstone=False)])
    with pytest.raises(InvalidInput, match="bound to the namespace c"):
        copy_store(source, bound)
    assert bound.care.settings() == {}
    bound.close()


def test_a_copy_that_needs_the_owner_does_not_begin_without_him() -> None:
    source, target = open_memory(), open_postgres(shared_server().fresh(role=APP))
    source.records.write([Put(Memory("a", "kept")), Put(Memory("b", "forgotten"))])
    source.records.write([Erase("b")])
    with pytest.raises(StoreUnavailable, match="the role may not do this"):
        copy_store(source, target)
    assert target.care.stats().memories == 0 and target.care.settings() == {}
    target.close()


def test_an_interrupted_copy_of_one_tenant_keeps_no_other_from_theirs(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {tenant: open_memory() for tenant in ("c", "d")}
    for tenant, source in sources.items():
        source.records.write([Put(Memory(f"{tenant}0", "of another store", scope=Scope(tenant)))])
    bound = {tenant: open_postgres(f"{address}&namespace={tenant}") for tenant in sources}
    with monkeypatch.context() as broken:
        broken.setattr(copying, "_copy_links", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            copy_store(sources["c"], bound["c"])
    assert [copy_store(sources[tenant], bound[tenant]).memories for tenant in ("d", "c")] == [1, 1]
    assert bound["c"].care.settings() == {}
    for store in bound.values():
        store.close()


def test_no_tenant_has_the_name_of_all(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_postgres(f"{address}&namespace={quote(EVERYONE)}")
    assert caught.value.field == "namespace"
    store = open_postgres(address)
    with pytest.raises(InvalidInput):
        store.records.write([Put(Memory("c", "text", scope=Scope(EVERYONE)))])
    store.close()


def test_what_a_later_version_makes_is_for_the_app_role_too() -> None:
    """The owner migrates without naming the role that was let in before."""
    given = shared_server().fresh()
    open_postgres(f"{given}&role={APP}", migrations=MIGRATIONS[:1]).close()
    open_postgres(given).close()
    store = open_postgres(given.replace("recollect_owner@", f"{APP}@"))
    fill(store)
    assert store.text is not None
    assert [word for word, _ in store.text.similar("secretb", 0.9, 5)] == ["secretb"]
    store.close()


def test_the_app_role_owns_nothing_and_needs_nothing_more(address: str) -> None:
    store = open_postgres(address.replace("recollect_owner@", f"{APP}@"))
    assert store.text is not None
    store.records.write([Put(Memory("new", "fresh words", scope=Scope("a")))])
    assert store.text.match(Term("fresh"), Filter("a"), 5).ids == ("new",)
    assert store.care.check() == []
    store.close()
    schema = re.search(r"schema=(\w+)", address)
    assert schema is not None
    with psycopg.connect(shared_server().address(APP)) as connection, pytest.raises(psycopg.Error):
        connection.execute(f"ALTER TABLE {schema[1]}.memories NO FORCE ROW LEVEL SECURITY".encode())


def test_doctor_says_that_no_wall_binds_a_superuser() -> None:
    """Connected as one, everything works and no tenant is walled off: nobody would notice."""
    given = shared_server().fresh(role=APP).replace("recollect_owner@", "postgres@")
    store = open_postgres(given.replace(f"&role={APP}", ""))
    assert [(one.kind, one.severity) for one in store.care.check()] == [("superuser", "warning")]
    store.close()
    store = open_postgres(given)
    assert store.care.check() == []
    store.close()
