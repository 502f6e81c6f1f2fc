"""Forgetting on PostgreSQL: whatever stops it on the way, everything is as it was; and then nothing is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import AddLink, Change, Erase, Put
from recollect.domain.memory import EPISODE, Link, Memory, Scope, content_hash
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from tests.postgres_server import shared_server

pytestmark = pytest.mark.postgres

TABLES = ("memories", "texts", "terms", "words", "counts", "tallies", "vectors", "outbox", "links", "tombstones")
EAST = np.array([1, 0], dtype=np.float32)
SCOPE = Scope("default", "p", "s")


class Crash(BaseException):
    """The process ends here, as far as the server can tell."""


def fill(store: Store) -> None:
    """A conversation with a vector for every turn and links between them, and one turn that waits for its vector."""
    turns = [Memory(f"m{number}", f"words of turn {number}", type=EPISODE, scope=SCOPE) for number in range(4)]
    store.records.write([Put(turn) for turn in turns])
    store.records.write([AddLink(Link("m1", "see-also", "m2")), AddLink(Link("m0", "see-also", "m1"))])
    assert store.vectors is not None
    store.vectors.missing("model", 9)
    store.vectors.put("model", [Embedded(turn.id, content_hash(turn.content), EAST[None, :]) for turn in turns])
    store.records.write([Put(Memory("late", "words that wait", scope=SCOPE))])


def everything(address: str) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    schema = address.rpartition("schema=")[2]
    with psycopg.connect(shared_server().address("postgres")) as connection:
        return {
            table: sorted(row for (row,) in connection.execute(f"SELECT t::text FROM {schema}.{table} t".encode()))
            for table in TABLES
        }


DELETIONS: dict[str, Callable[[Store], None]] = {
    "one memory": lambda store: store.records.write([Erase("m1")]),
    "several": lambda store: store.records.write([Erase("m0"), Erase("m1"), Erase("late")]),
    "a text for another": lambda store: store.records.write(_replacing()),
    "what a model made": lambda store: store.vectors.forget("model"),  # type: ignore[union-attr]
}


def _replacing() -> Sequence[Change]:
    return [Put(Memory("m1", "other words", type=EPISODE, scope=SCOPE), expected_version=1), Erase("m2")]


@pytest.mark.parametrize("deletion", DELETIONS)
def test_a_crash_before_any_statement_leaves_everything_as_it_was(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch, deletion: str
) -> None:
    fill(store)
    before = everything(address)
    usual = psycopg.Connection.execute
    sent: list[Any] = []
    last = [0]

    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        if query != b"ROLLBACK":
            sent.append(query)
            if len(sent) == last[0]:
                raise Crash
        return usual(self, query, *arguments, **named)

    done = False
    while not done:
        last[0] += 1
        sent.clear()
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", execute)
            try:
                DELETIONS[deletion](store)
                done = True
            except Crash:
                done = "COMMIT" in sent[:-1]  # what comes after it only calls the workers
        assert done or everything(address) == before, sent[-1]
    assert last[0] > 5
    assert everything(address) != before
    assert store.care.check() == []


def test_what_is_forgotten_is_gone_from_every_table(store: Store, address: str) -> None:
    fill(store)
    store.records.write([Put(Memory("secret", "unheard xylophone", tags=("xylotag",), scope=SCOPE))])
    store.records.write([Erase("secret")])
    assert "xylo" not in str(everything(address))
    assert len(everything(address)["tombstones"]) == 1
    store.records.write([Erase(f"m{number}") for number in range(4)] + [Erase("late")])
    rows = everything(address)
    assert len(rows.pop("tombstones")) == 6
    assert not any(rows.values())
    assert store.text is not None
    assert store.text.match(Term("words"), Filter(), 9).documents == 0
    assert store.care.check() == []


def held_by_the_server(word: bytes) -> list[Path]:
    """The files of tables and indexes that hold a word, of whatever database."""
    server = shared_server()
    server.execute("CHECKPOINT")
    return [file for file in (server.folder / "data" / "base").rglob("*") if file.is_file() and word in _bytes(file)]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:  # the server has just dropped it
        return b""


def test_what_the_docs_tell_to_prove_an_erasure_leaves_no_byte(store: Store, address: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text()
    schema = address.rpartition("schema=")[2]
    statements = [
        found.replace("recollect.", f"{schema}.") for found in re.findall(r"^    (VACUUM [^;]+);", page, re.M)
    ]
    assert len(statements) == 2
    many = [Memory(f"x{number:03}", f"about a xylophone{number:03}x", scope=SCOPE) for number in range(200)]
    store.records.write([Put(memory) for memory in many])
    shared_server().execute("ANALYZE")  # the planner keeps samples
    assert held_by_the_server(b"xylophone123x")
    store.records.write([Erase("x123")])
    shared_server().execute(*statements)
    assert held_by_the_server(b"xylophone123x") == []
    assert held_by_the_server(b"xylophone124x")
