"""Metadata are jsonb for whoever asks the database, and come back as they were given all the same."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import shared_server

pytestmark = pytest.mark.postgres

ODD: dict[str, dict[str, Any]] = {
    "plain": {"path": "docs/db.md", "line": 7},
    "names in another order": {"zebra": 1, "a": {"long name": 1, "b": [True, None, {}]}},
    "large numbers": {"whole": 10**40, "real": 1e22, "small": 1e-7, "least": 5e-324},
    "zeros": {"signed": -0.0, "real": 0.0, "whole": 0, "long": 100000.0},
    "letters": {"quote": 'a "b" \\ / \b\f\n\r\t\x1f\x7f', "wide": "日本 🙂  ñ"},
    "a NUL": {"text": "a\0b", "kept": 1},
    "almost a NUL": {"text": "\\u0000"},
    "blanks": {"a b": 1, "ab": 1, "a  b": 1},
    "deep": json.loads('{"deep": ' + "[" * 300 + "]" * 300 + "}"),
}


def as_written(memory: Memory) -> str:
    return json.dumps(dict(memory.metadata))


def asked(address: str, condition: str) -> list[str]:
    """The ids of the memories that a condition in SQL finds."""
    schema = address.rpartition("schema=")[2]
    statement = f"SELECT id FROM {schema}.memories WHERE {condition} ORDER BY id"
    with psycopg.connect(shared_server().address("postgres")) as connection:
        return [id for (id,) in connection.execute(statement.encode()).fetchall()]


@pytest.mark.parametrize("name", ODD)
def test_metadata_come_back_to_the_letter(store: Store, name: str) -> None:
    many = [Put(Memory(f"m{number}", f"text {number}", metadata=ODD[name])) for number in range(10)]
    store.records.write([Put(Memory("m", "text", metadata=ODD[name])), Put(Memory("other", "text"))])
    store.records.write(many)
    store.records.write([Put(Memory("other", "text", metadata=ODD[name]), expected_version=1)])
    for memory in store.records.fetch(["m", "other", "m5"]):
        assert as_written(memory) == json.dumps(ODD[name])
    assert store.care.check() == []


NUMBERS = count()
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_whatever_json_can_say_comes_back(store: Store, metadata: dict[str, Any]) -> None:
    id = f"m{next(NUMBERS)}"
    store.records.write([Put(Memory(id, "text", metadata=metadata))])
    (memory,) = store.records.fetch([id])
    assert as_written(memory) == json.dumps(metadata)


def test_the_database_can_be_asked_by_metadata(address: str) -> None:
    store = open_postgres(address)
    store.records.write([Put(Memory(name, name, metadata=ODD[name])) for name in ODD])
    assert asked(address, """metadata @> '{"path": "docs/db.md"}'""") == ["plain"]
    assert asked(address, """metadata @> '{"a": {"b": [true]}}'""") == ["names in another order"]
    assert asked(address, "metadata_exact IS NULL") == ["almost a NUL", "deep"]
    assert asked(address, "metadata = '{}'") == ["a NUL"]
    store.close()


def test_metadata_of_an_older_store_become_jsonb_and_stay_what_they_are() -> None:
    address = shared_server().fresh()
    memories = [Memory(name, name, metadata=ODD[name]) for name in sorted(ODD)]
    old = open_postgres(address)
    old.records.write([Put(memory) for memory in memories])
    old.close()
    shared_server().set_back(address, 9)
    store = open_postgres(address)
    assert [as_written(one) for one in store.records.scan(Filter(), "id")] == [as_written(one) for one in memories]
    assert asked(address, "metadata ? 'path'") == ["plain"]
    assert store.care.check() == []
    store.close()


def test_jsonb_that_somebody_changed_is_told_and_mended(address: str) -> None:
    store = open_postgres(address)
    odd = ODD["names in another order"]
    store.records.write([Put(Memory("m", "text", metadata=odd)), Put(Memory("other", "text", metadata={"a": 1}))])
    schema = address.rpartition("schema=")[2]
    shared_server().execute(f"""UPDATE {schema}.memories SET metadata = '{{"b": 2}}' WHERE id = 'm'""")
    assert [finding.kind for finding in store.care.check()] == ["metadata"]
    assert [finding.repaired for finding in store.care.check(repair=True)] == [True]
    assert asked(address, "metadata ? 'zebra'") == ["m"] and store.care.check() == []
    shared_server().execute(f"""UPDATE {schema}.memories SET metadata = '{{"b": 2}}' WHERE id = 'other'""")
    assert "memory" in [finding.kind for finding in store.care.check()]  # there is no other text than the wrong one
    store.close()
