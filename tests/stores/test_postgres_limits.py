"""Where PostgreSQL has limits and settings of its own: what any other store keeps is kept, or refused for a reason."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import Corrupt, InvalidInput, Timeout
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.query import Or, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.stores.postgres.address import parsed
from recollect.stores.postgres.connection import Server, one
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import OWNER, shared_server

pytestmark = pytest.mark.postgres
ALL = Filter()


def unpackable(letters: int, seed: int = 0) -> str:
    """A word that no compression makes shorter by much."""
    return np.random.default_rng(seed).bytes(letters // 2).hex()


@pytest.mark.parametrize("letters", [1_900, 2_700, 6_000, 100_000])
def test_a_word_longer_than_an_index_takes_is_kept_and_found(store: Store, letters: int) -> None:
    assert store.text is not None
    word, other = unpackable(letters), unpackable(letters, seed=1)
    twins = [Put(Memory(f"m{number}", f"blob {word}{'s' * number} end", tags=("tag",))) for number in range(2)]
    store.records.write([*twins, Put(Memory("other", f"{other} {word[:100]}"))])
    found = store.text.match(Or((Term(word), Term(other), Prefix(word[:1_001]))), ALL, 5)
    assert set(found.ids) == {"m0", "m1", "other"}
    assert found.frequencies.tolist() == [1, 1, 2]
    assert store.text.frequencies([word, other, "blob"]) == [1, 1, 2]
    assert [near for near, _ in store.text.similar("blob", 0.9, 5)] == ["blob"]
    assert store.care.check() == []
    store.records.write([Put(Memory("m0", f"shorter {other}"), expected_version=1), Erase("m1")])
    assert store.text.frequencies([word, other, "blob"]) == [0, 2, 0]
    assert store.care.check() == []


def test_an_endless_word_is_nobodys_look_alike(store: Store) -> None:
    assert store.text is not None
    endless = "".join(map(chr, np.random.default_rng(0).integers(0x1200, 0x1248, 8_000).tolist()))  # Ethiopic
    store.records.write([Put(Memory("m", f"{endless} {endless[:600]}"))])
    assert store.text.match(Term(endless), ALL, 5).ids == ("m",)
    assert store.text.similar(endless, 0.3, 5) == []
    assert [word for word, _ in store.text.similar(endless[:600], 0.3, 5)] == [endless[:600]]


def test_endless_words_of_an_older_schema_are_counted_as_new_ones_are() -> None:
    """Those that compression made short enough could be kept before."""
    address, endless = shared_server().fresh(), "y" * 3_000
    schema = address.rpartition("schema=")[2]
    old = open_postgres(address)
    old.records.write([Put(Memory("m", f"{endless} short"))])
    old.close()
    shared_server().set_back(address, 4)
    shared_server().execute(
        f"UPDATE {schema}.terms SET term = '{endless}' WHERE octet_length(term) > 60",
        f"INSERT INTO {schema}.words VALUES ('default', '{endless}', 1, ARRAY['yyy'])",
    )
    store = open_postgres(address)
    assert store.text is not None
    assert store.text.frequencies([endless, "short"]) == [1, 1]
    assert store.care.check() == []
    store.close()


def test_vectors_of_any_size_a_model_has_are_kept(store: Store) -> None:
    assert store.vectors is not None
    store.records.write([Put(Memory(f"m{place}", "text")) for place in range(3)])
    for dimension in (3_072, 4_096, 8_192):
        matrix = np.random.default_rng(dimension).standard_normal((3, dimension)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        made = [Embedded(f"m{place}", content_hash("text"), row[None, :]) for place, row in enumerate(matrix)]
        store.vectors.put(f"model{dimension}", made)
        assert store.vectors.search(f"model{dimension}", matrix[1], ALL, 1)[0].id == "m1"
    assert store.care.check() == []


def test_a_name_too_long_for_an_index_is_bad_input_not_a_lost_server(store: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        store.records.write([Put(Memory("m", "text", key=unpackable(6_000)))])
    assert caught.value.hint


def test_what_a_new_memory_may_not_hold_a_changed_one_may_not_either(store: Store) -> None:
    store.records.write([Put(Memory("m", "text", tags=("\\u0000",)))])
    with pytest.raises(InvalidInput):
        store.records.write([Put(Memory("m", "text", tags=("a\0b",)), expected_version=1)])
    assert [memory.tags for memory in store.records.scan(Filter(tags=("\\u0000",)))] == [("\\u0000",)]


def test_settings_of_the_session_do_not_change_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role or the environment may ask for another encoding, or for rounded numbers."""
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    store = open_postgres(shared_server().fresh(options="-c extra_float_digits=0"))
    memory = Memory("é日", "日本 Ångström", confidence=0.1 + 0.2, scope=Scope("ñ", project="ż"))
    store.records.write([Put(memory)])
    assert store.records.fetch(["é日"]) == store.records.scan(Filter("ñ", project="ż")) == [memory]
    store.close()


def test_upkeep_needs_one_connection_at_a_time() -> None:
    store = open_postgres(shared_server().fresh(pool="1"), wait_s=1.0)
    assert store.care.tidy()["indexed"] == 0
    store.close()


def test_counting_that_takes_too_long_says_so() -> None:
    server = Server(parsed(shared_server().address()), 1.0, 0.05)
    server.open()
    with pytest.raises(Timeout):
        server.read(lambda connection: server.counting(connection, lambda: one(connection, "SELECT pg_sleep(60)")))
    server.close()


def test_whoever_owns_a_schema_need_not_be_allowed_to_make_one() -> None:
    name = shared_server().fresh().rpartition("schema=")[2]
    shared_server().execute(f"CREATE ROLE {name} LOGIN", f"CREATE SCHEMA {name} AUTHORIZATION {name}")
    store = open_postgres(shared_server().address(name, schema=name))
    store.records.write([Put(Memory("m", "text"))])
    assert store.care.check() == []
    store.close()


@pytest.mark.parametrize(("theirs", "row"), [("(version text)", "v1.2"), ("(release int)", "1")])
def test_a_table_of_versions_may_be_somebody_elses(theirs: str, row: str) -> None:
    address = shared_server().fresh()
    table = f"{address.rpartition('schema=')[2]}.versions"
    shared_server().execute(
        f"CREATE SCHEMA {table.partition('.')[0]} AUTHORIZATION {OWNER}",
        f"CREATE TABLE {table} {theirs}",
        f"INSERT INTO {table} VALUES ('{row}')",
        f"ALTER TABLE {table} OWNER TO {OWNER}",
    )
    with pytest.raises(Corrupt):
        open_postgres(address)
