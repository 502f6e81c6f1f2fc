"""What a server that shards by the namespace demands: keys, references and joins of tenants' tables carry it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import AddLink, Erase, Put, Touch
from recollect.domain.memory import EPOCH, Link, Memory, Scope, content_hash
from recollect.domain.query import Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.postgres import nearest
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.postgres.tables import FINDERS
from tests.postgres_server import shared_server

pytestmark = pytest.mark.postgres

TENANTS = {"memories", "texts", "vectors", "outbox", "links", "tombstones", "terms", "words", "counts", "tallies"}
EAST = np.array([1, 0], dtype=np.float32)
NAMED = re.compile(rf"(?:\b(?:FROM|JOIN|USING|UPDATE)|,)\s+(?:{'|'.join(sorted(TENANTS))})\s+(?:AS\s+)?([a-z])\b")
"""A tenants' table with its alias; a table without one is joined with nothing."""


def test_every_key_of_a_tenants_table_begins_with_the_tenant(address: str) -> None:
    open_postgres(address).close()
    schema = address.rpartition("schema=")[2]
    with psycopg.connect(shared_server().address("postgres")) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = %s AND column_name = 'namespace'",
            (schema,),
        ).fetchall()
        unique = connection.execute(
            "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
            " WHERE i.indisunique AND c.relnamespace = %s::regnamespace",
            (schema,),
        ).fetchall()
        references = connection.execute(
            "SELECT k.conrelid::regclass::text, r.relname, a.attname, b.attname FROM pg_constraint k"
            " JOIN pg_class r ON r.oid = k.confrelid"
            " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]"
            " JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]"
            " WHERE k.contype = 'f' AND k.connamespace = %s::regnamespace",
            (schema,),
        ).fetchall()
    assert {name for (name,) in tables} == TENANTS
    assert {column for table, column in unique if table in TENANTS} == {"namespace"}
    shared = {"models"}
    assert all(one == other == "namespace" for _, table, one, other in references if table not in shared)
    assert references


def everything(store: Store) -> None:
    """One of every kind of statement that recalls and writes send."""
    assert store.text is not None and store.vectors is not None and store.links is not None
    memories = [
        Memory(
            f"m{number}", f"note number {number} of words", scope=Scope("a", "p", "s"), type="episode", key=f"k{number}"
        )
        for number in range(12)
    ]
    store.records.write([Put(memory) for memory in memories])
    store.records.write([Put(Memory("more", "one more", scope=Scope("a")), once=True)])
    store.records.write([AddLink(Link("m0", "see-also", "m1")), Touch(("m0", "m1"), EPOCH, 1)])
    store.vectors.missing("model", 20)
    store.vectors.put("model", [Embedded(one.id, content_hash(one.content), EAST[None, :]) for one in memories])
    store.care.tidy()
    for wanted in (Filter("a"), Filter("a", project="p"), Filter("a", exclude=frozenset({"m1"}))):
        store.records.scan(wanted)
        store.records.recent(wanted, 5, embedded=True)
        store.vectors.search("model", EAST, wanted, 2)
        for query in (Term("note"), Or((Term("note"), Term("words"))), Phrase(("note", "number")), Prefix("not")):
            store.text.match(query, wanted, 1)
        store.text.about([("note",)], wanted, 5)
    store.records.fetch(["m0"])
    store.records.lookup("a", key="k1", content="one more", session="s")
    store.vectors.similarities("model", EAST, ["m0"])
    store.vectors.stored("model", ["m0"])
    store.vectors.progress("model")
    store.text.similar("nots", 0.1, 3)
    store.links.links(["m0"])
    store.links.neighbours(["m3"], 1, 1)
    store.records.write([Erase("m2")])
    store.care.check(repair=True)
    store.care.stats()


def strangers(statement: str) -> set[str]:
    """The aliases of tenants' tables, of several in a statement, that no condition ties to a tenant."""
    aliases = set(NAMED.findall(statement))
    tied = r"\b{0}\.namespace = |\.namespace = {0}\.namespace|\b{0} USING \(namespace"
    return {one for one in aliases if len(aliases) > 1 and not re.search(tied.format(one), statement)}


def test_every_join_of_tenants_tables_carries_the_tenant(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: set[str] = set()
    usual = psycopg.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        sent.add(query.decode() if isinstance(query, bytes) else "")
        return usual(self, query, *arguments, **named)

    for module, name in ((nearest, "EXACT_SCOPE"), (finding, "LARGE_INDEX")):
        monkeypatch.setattr(module, name, 3)  # so that the ways of a large index are gone as well
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    store = open_postgres(address)
    sent.clear()
    everything(store)
    store.close()
    joins = {statement for statement in sent if len(set(NAMED.findall(statement))) > 1}
    assert len(joins) > 10
    assert [(strangers(statement), statement) for statement in sorted(joins) if strangers(statement)] == []
    bodies = [body for body in FINDERS.split("CREATE OR REPLACE FUNCTION") if "memories m" in body]
    assert len(bodies) == 3
    assert all("m.namespace = t.namespace" in body for body in bodies)
