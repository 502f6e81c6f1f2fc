"""Look-alike words: whatever pairs of trigrams find, it is what looking at every word would have found.

And what becomes of an address that asks for an extension where there is none; with pg_textsearch, see `make
postgres-17`, with pg_trgm `make postgres-contrib`.
"""

from __future__ import annotations

import random

import psycopg
import pytest

from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.legs import bm25
from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.stores.postgres import alike, ranked
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.lexemes import ENDLESS, Tokens, quoted, vector_text
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import APP, OWNER, shared_server

pytestmark = pytest.mark.postgres

LETTERS = "abcde"


def some_words(chance: random.Random) -> list[str]:
    """Of every length from one letter to far beyond what is asked for by pairs, of few letters so that they share."""
    made = ["".join(chance.choices(LETTERS, k=1 + number % 12)) for number in range(150)]
    long = ["".join(chance.choices("abcdefghij", k=70)) for _ in range(4)]
    return [
        *made,
        *long,
        *(word[:60] + "z" + word[61:] for word in long),
        "мемори",
        "меморы",
        "naïveté",
        "o'clock",
        "$a",
    ]


@pytest.mark.parametrize("minimum", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
def test_pairs_of_trigrams_lose_no_word(store: Store, minimum: float) -> None:
    chance = random.Random(7)
    words = some_words(chance)
    oracle = open_memory()
    for each in (store, oracle):
        each.records.write([Put(Memory(f"m{number}", word)) for number, word in enumerate(words)])
    assert store.text is not None and oracle.text is not None
    found = 0
    for word in [*chance.sample(words, 60), *words[-13:], "мемора", "zzzz"]:
        expected = oracle.text.similar(word, minimum, 12)
        assert store.text.similar(word, minimum, 12) == expected, word
        found += len(expected)
    assert found > 70


def test_without_an_extension_for_bm25_our_own_finder_answers_and_the_store_says_so(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranked, "DETECTED", f"{ranked.DETECTED} AND false")
    monkeypatch.setattr(ranked, "LEAST", 1)
    store = open_postgres(f"{address}&bm25=extension")
    store.records.write([Put(Memory(f"m{number}", f"alpha beta{number}")) for number in range(30)])
    assert store.care.tidy()["indexed"] == 0
    assert store.care.stats().engine_version.endswith(", no BM25 extension")
    assert store.text is not None
    assert set(store.text.match(Or((Term("beta7"), Term("beta8"))), Filter(), 5).ids) == {"m7", "m8"}
    store.close()


def test_without_pg_trgm_our_own_index_answers_and_the_store_says_so(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alike, "STATE", alike.STATE.replace("'pg_trgm'", "'no such extension'"))
    store = open_postgres(address.replace("schema=", "trigrams=extension&schema="))
    store.records.write([Put(Memory("m", "kestrel"))])
    assert store.care.tidy()["indexed"] == 0
    assert ", no pg_trgm, " in store.care.stats().engine_version
    assert store.text is not None
    assert store.text.similar("kestrels", 0.3, 5) == [("kestrel", 6 / 9)]
    assert not caplog.records
    store.close()


def test_tidying_merges_what_every_search_would_read_through(address: str) -> None:
    owner, app = open_postgres(f"{address}&role={APP}"), open_postgres(address.replace(OWNER, APP))
    owner.records.write([Put(Memory(f"m{number}", f"alpha beta{number}")) for number in range(30)])
    assert app.care.tidy()["merged"] == 0  # only the owner can
    assert owner.care.tidy()["merged"] > 0
    assert owner.care.tidy()["merged"] == 0
    for store in (owner, app):
        store.close()


@pytest.mark.parametrize("query", [Or((Term("kestrel"), Term("falcon"))), Term("kestrel")])
@pytest.mark.parametrize(("columns", "best"), [((1.0, 8.0), "tagged"), ((0.0, 1.0), "tagged"), ((8.0, 0.0), "m000")])
def test_what_a_tag_counts_decides_who_is_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch, query: Or | Term, columns: tuple[float, float], best: str
) -> None:
    """A large index counts words in its most promising texts only: a tag may make a long one promising."""
    monkeypatch.setattr(finding, "LARGE_INDEX", 10)
    monkeypatch.setattr(finding, "CANDIDATES", 20)
    short = [Put(Memory(f"m{number:03}", "a kestrel")) for number in range(100)]
    store.records.write([*short, Put(Memory("tagged", "one two three four", tags=("kestrel",)))])
    assert store.text is not None
    found = store.text.match(query, Filter(), 1, columns)
    scored = bm25.scores(found, columns)
    assert found.ids[int(scored.argmax())] == best
    assert ("tagged" in found.ids) == (best == "tagged")


def test_a_word_of_a_tag_is_marked_in_the_tsvector(address: str) -> None:
    store = open_postgres(address)
    store.records.write([Put(Memory("m", "deploys by hand", tags=("Ops Deploys", "x:1A")))])
    schema = address.rpartition("schema=")[2]
    with psycopg.connect(shared_server().address("postgres")) as connection:
        held = connection.execute(f"SELECT ts_filter(terms, '{{a}}')::text FROM {schema}.texts".encode()).fetchone()
    assert held == ("'1a':1A 'deploi':1A 'op':1A 'x':1A",)
    assert store.care.check() == []
    store.close()


def test_a_text_of_more_terms_than_a_tsvector_holds_is_endless() -> None:
    """Every term has a position, which takes room too: 150,000 short ones are more than the server takes."""
    tokens = Tokens()
    for count, fits in ((90_000, True), (150_000, False)):
        text = tokens.text(" ".join(f"{number:x}" for number in range(count)), ())
        vector = vector_text(Memory("m", ""), text, ())
        assert (quoted(ENDLESS) in vector) != fits
        with psycopg.connect(shared_server().address("postgres")) as connection:
            assert connection.execute("SELECT length(%s::tsvector) > 0", (vector,)).fetchone() == (True,)
