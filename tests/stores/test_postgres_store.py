"""What only PostgreSQL has to prove: migrations, shared work, large indexes, repairs, no session state."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import Corrupt, InvalidInput, StoreTooNew, StoreUnavailable
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, EmbeddingProgress, Store
from recollect.stores.memory import open_memory
from recollect.stores.postgres import lexemes, outbox, vectors
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.address import parsed
from recollect.stores.postgres.filters import TIMES, without_idle_times
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.postgres.schema import MIGRATIONS
from tests.postgres_server import OWNER, shared_server

pytestmark = pytest.mark.postgres
ALL = Filter()
SECRET = "pass%2Fw0rd"


def schema_of(address: str) -> str:
    found = re.search(r"schema=(\w+)", address)
    assert found is not None
    return found[1]


def notes(count: int, **fields: Any) -> list[Memory]:
    return [Memory(f"m{number:04}", f"note number {number}", **fields) for number in range(count)]


# --- what it cannot keep, and what it can ---------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        open_postgres(f"postgresql://me:{SECRET}@127.0.0.1:1/db", wait_s=1.0)
    shown = f"{caught.value} {caught.value.hint} {caplog.text}"
    assert caught.value.hint
    assert SECRET not in shown and "pass/w0rd" not in shown


def test_what_postgresql_cannot_keep_is_refused(store: Store) -> None:
    for memory in (
        Memory("m", "a\0b"),
        Memory("m", "text", tags=("a\0b",)),
        Memory("m", "half \ud800"),
        Memory("m", "text", access_count=2**70),
        Memory("m", "text", scope=Scope("")),
    ):
        with pytest.raises(InvalidInput) as caught:
            store.records.write([Put(Memory("good", "good")), Put(memory)])
        assert caught.value.hint
    assert store.records.scan(ALL) == []


def test_metadata_comes_back_to_the_last_digit(store: Store) -> None:
    metadata = {"b": 1e300, "a": 0.1 + 0.2, "big": 10**30, "nul": "a\0b", "float": 1.0, "é": [True, None]}
    store.records.write([Put(Memory("m", "text", metadata=metadata))])
    (stored,) = store.records.fetch(["m"])
    assert dict(stored.metadata) == metadata
    assert list(stored.metadata) == list(metadata)
    assert isinstance(stored.metadata["float"], float)


def test_an_endless_text_and_endless_words_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexemes, "MOST_BYTES", 10_000)
    assert store.text is not None
    words = [f"{number:x}zq{number * 7919 % 65536:x}" for number in range(1_500)]
    long = "y" * 3000
    store.records.write([Put(Memory("endless", " ".join(words))), Put(Memory("long", f"a {long} b {long}z"))])
    store.records.write([Put(Memory("short", "another text"))])
    for query in (Term(words[777]), Phrase((words[5], words[6])), And((Term(words[0]), Term(words[-1])))):
        assert store.text.match(query, ALL, 5).ids == ("endless",)
    assert store.text.match(Phrase((words[6], words[5])), ALL, 5).ids == ()
    found = store.text.match(Or((Term(long), Prefix(long))), ALL, 5)
    assert found.ids == ("long",)
    assert found.counts[0, :, 0].tolist() == [1, 2]
    assert found.frequencies.tolist() == [1, 1]
    assert store.care.check() == []


# --- opening ------------------------------------------------------------------------------------------------------


def test_many_servers_start_at_once(request: pytest.FixtureRequest) -> None:
    address = shared_server().fresh()
    opened: list[Store] = []
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def begin() -> None:
        start.wait()
        try:
            opened.append(open_postgres(address))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened:
        store.close()
    assert errors == []
    assert {store.care for store in opened}
    again = open_postgres(address, read_only=True)
    assert again.care.stats().schema_version == len(MIGRATIONS)
    again.close()


def test_a_failed_step_leaves_nothing_and_the_next_start_goes_on() -> None:
    address = shared_server().fresh()

    def broken(connection: Any) -> None:
        connection.execute(b"CREATE TABLE half (way int)")
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        open_postgres(address, migrations=[*MIGRATIONS, broken])
    with pytest.raises(StoreUnavailable):
        open_postgres(address, read_only=True)
    open_postgres(address).close()

    def second(connection: Any) -> None:
        connection.execute(b"CREATE TABLE half (way int)")

    open_postgres(address, migrations=[*MIGRATIONS, second]).close()
    with pytest.raises(StoreTooNew):
        open_postgres(address)


def test_other_peoples_tables_are_left_alone() -> None:
    address = shared_server().fresh()
    schema = schema_of(address)
    shared_server().execute(f"CREATE SCHEMA {schema} AUTHORIZATION {OWNER}", f"CREATE TABLE {schema}.theirs (a int)")
    with pytest.raises(Corrupt):
        open_postgres(address)


def test_a_store_for_reading_writes_nothing(store: Store, address: str) -> None:
    store.records.write([Put(memory) for memory in notes(2)])
    reader = open_postgres(address, read_only=True)
    assert reader.vectors is not None
    assert len(reader.records.scan(ALL)) == 2
    assert [pending.id for pending in reader.vectors.missing("m", 5)] == ["m0000", "m0001"]
    with pytest.raises(StoreUnavailable):
        reader.records.write([Erase("m0000")])
    reader.close()
    with pytest.raises(StoreUnavailable):
        reader.records.scan(ALL)


def test_nothing_is_left_behind_in_a_session(store: Store, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler may give every transaction another session: after each one the session is as it was."""
    states: set[tuple[Any, ...]] = set()
    usual = psycopg.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        done = usual(self, query, *arguments, **named)
        if self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            states.add(
                usual(
                    self,
                    b"SELECT current_setting('search_path'),"
                    b" coalesce(current_setting('recollect.namespace', true), ''),"
                    b" current_user, current_setting('statement_timeout'), current_setting('hnsw.ef_search', true),"
                    b" (SELECT count(*) FROM pg_prepared_statements),"
                    b" (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())",
                ).fetchone()
            )
        return done

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    assert store.text is not None and store.vectors is not None
    for _ in range(8):
        store.text.match(Term("note"), ALL, 5)
    store.records.write([Put(memory) for memory in notes(3)])
    store.vectors.missing("m", 5)
    store.vectors.search("m", np.array([1, 0], dtype=np.float32), ALL, 5)
    assert len(store.records.fetch(["m0000", "m0002"])) == 2  # a whole transaction in one message
    assert {state[0] for state in states} == {'"$user", public'}
    assert {state[1] for state in states} == {""}
    assert {state[2:4] + state[5:] for state in states} == {("recollect_owner", "0", 0, 0)}


# --- the shared outbox --------------------------------------------------------------------------------------------


def test_between_the_pieces_in_which_a_new_model_is_asked_others_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "AT_ONCE", 4)
    assert store.vectors is not None
    store.records.write([Put(memory) for memory in notes(10)])
    usual, written = outbox.enter_some, list[str]()

    def and_write(writing: Writing, model: str) -> None:
        if len(written) < 2:
            written.append(f"w{len(written)}")
            store.records.write([Put(Memory(written[-1], "written between two pieces"))])
        usual(writing, model)

    monkeypatch.setattr(vectors, "enter_some", and_write)
    expected = [memory.id for memory in notes(10)] + ["w0", "w1"]
    assert [pending.id for pending in store.vectors.missing("m", 20)] == expected
    assert written == ["w0", "w1"]
    assert store.care.check() == []


def test_a_crash_while_a_new_model_is_asked_is_made_good_by_anybody(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "AT_ONCE", 4)
    assert store.vectors is not None
    others = [Memory("b", "of another tenant", scope=Scope("b"))]
    store.records.write([Put(memory) for memory in [*notes(10), *others, Memory("s", "secret", sensitive=True)]])
    usual, pieces = outbox.enter_some, list[str]()

    def crash(writing: Writing, model: str) -> None:
        pieces.append(model)
        if len(pieces) == 2:
            raise RuntimeError("lost")
        usual(writing, model)

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(vectors, "enter_some", crash)
        store.vectors.missing("m", 20)
    assert store.care.check() == []
    reader = open_postgres(address, read_only=True)
    assert reader.vectors is not None
    assert len(reader.vectors.missing("m", 20)) == 11
    reader.close()
    assert store.vectors.progress("m") == EmbeddingProgress(0, 11, 0)
    bound = open_postgres(f"{address}&namespace=b")
    assert bound.vectors is not None
    assert [pending.id for pending in bound.vectors.missing("m", 20)] == ["b"]
    bound.close()
    assert store.vectors.progress("m") == EmbeddingProgress(0, 11, 0)
    assert [pending.id for pending in store.vectors.missing("m", 20)] == [*(memory.id for memory in notes(10)), "b"]
    assert store.care.check() == []


def test_a_store_of_the_first_version_knows_its_models_as_asked() -> None:
    address = shared_server().fresh()
    open_postgres(address, migrations=MIGRATIONS[:1]).close()
    shared_server().execute(f"INSERT INTO {schema_of(address)}.models (name) VALUES ('m')")
    store = open_postgres(address)
    assert store.vectors is not None
    assert store.vectors.progress("m") == EmbeddingProgress(0, 0, 0)
    assert store.care.stats().schema_version == len(MIGRATIONS)
    store.close()


def test_an_older_store_learns_to_find_words_in_runs_without_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    address = shared_server().fresh()
    with monkeypatch.context() as before:
        before.setattr("recollect.stores.tokens.spread", lambda text: text)
        old = open_postgres(address)
        old.records.write([Put(Memory("a", "长江是河流", tags=("中国地理",))), Put(Memory("b", "a plain text"))])
        assert old.text is not None and old.text.match(Term("长江"), Filter(), 5).ids == ()
        old.close()
    shared_server().set_back(address, 4)
    store = open_postgres(address)
    assert store.text is not None and store.care.stats().schema_version == len(MIGRATIONS)
    for word, ids in {"长江": ("a",), "地理": ("a",), "plain": ("b",)}.items():
        assert store.text.match(Term(word), Filter(), 5).ids == ids
    assert store.care.check() == []
    store.close()


def test_workers_share_the_backlog_and_take_over_from_the_dead(address: str) -> None:
    now = 1_000.0
    first = open_postgres(address, clock=lambda: now)
    second = open_postgres(address, clock=lambda: now)
    assert first.vectors is not None and second.vectors is not None
    memories = notes(10)
    first.records.write([Put(memory) for memory in memories])
    mine = [pending.id for pending in first.vectors.missing("m", 4)]
    assert mine == ["m0000", "m0001", "m0002", "m0003"]
    assert [pending.id for pending in second.vectors.missing("m", 4)] == ["m0004", "m0005", "m0006", "m0007"]
    assert [pending.id for pending in first.vectors.missing("m", 4)] == mine
    now += 61.0
    assert [pending.id for pending in second.vectors.missing("m", 4)] == mine
    second.close()
    assert [pending.id for pending in first.vectors.missing("m", 10)] == [memory.id for memory in memories]
    done = [Embedded(one.id, content_hash(one.content), np.eye(1, 2, dtype=np.float32)) for one in memories]
    first.vectors.put("m", done)
    assert first.vectors.progress("m").done == 10
    first.close()


def test_a_clock_that_went_wrong_keeps_nothing_from_the_others(address: str) -> None:
    ahead, right = (open_postgres(address, clock=lambda now=now: now) for now in (10**10, 1_000.0))
    assert ahead.vectors is not None and right.vectors is not None
    ahead.records.write([Put(memory) for memory in notes(2)])
    assert [pending.id for pending in ahead.vectors.missing("m", 1)] == ["m0000"]
    ahead.vectors.put("m", [Embedded("m0001", content_hash("note number 1"), None, error="failed")])
    assert [pending.id for pending in right.vectors.missing("m", 5)] == ["m0000", "m0001"]
    ahead.close()
    right.close()


def test_a_model_made_known_while_others_write_misses_no_memory(store: Store) -> None:
    assert store.vectors is not None
    start = threading.Barrier(2)

    def write() -> None:
        start.wait()
        for memory in notes(30):
            store.records.write([Put(memory)])

    writer = threading.Thread(target=write)
    writer.start()
    start.wait()
    for number in range(15):
        store.vectors.missing(f"model{number}", 1)
    writer.join()
    for number in range(15):
        assert store.vectors.progress(f"model{number}").pending == 30
    assert store.care.check() == []


# --- large indexes ------------------------------------------------------------------------------------------------

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def crowd(count: int) -> list[Memory]:
    """Words of very different rarity; every text has its own length."""
    chance = np.random.default_rng(5)
    return [
        Memory(
            f"m{number:04}",
            " ".join(
                [word for place, word in enumerate(WORDS) if chance.random() < 0.6**place] + ["fill"] * (number % 9)
            ),
            tags=("even",) if number % 2 == 0 else (),
            scope=Scope(project="pq"[number % 2]),
        )
        for number in range(count)
    ]


LARGE: list[tuple[Node, bool]] = [
    (Or(tuple(map(Term, WORDS))), False),
    (Or((Term("alpha"), Term("theta"), Term("eta"), Term("zeta"))), False),
    (Or((*map(Term, WORDS), Term("eta-theta"), Term("never"))), False),
    (And((Term("alpha"), Term("eta"))), True),
    (Phrase(("alpha", "beta")), True),
    (And((Phrase(("alpha", "beta")), Term("gamma"))), True),
    (Not(Or((Term("eta"), Term("theta"))), Term("alpha")), True),
    (Or((Phrase(("eta", "theta")), Prefix("thet"))), True),
    (Not(Term("eta"), Phrase(("zeta", "eta"))), True),
]


@pytest.mark.parametrize("most_finders", [finding.MOST_FINDERS, 6])
def test_in_a_large_index_the_best_are_still_among_the_candidates(
    store: Store, monkeypatch: pytest.MonkeyPatch, most_finders: int
) -> None:
    small = {"LARGE_INDEX": 10, "FOUND_POSTINGS": 60, "FOUND_SHARE": 0.0, "CANDIDATES": 120, "ALONE_POSTINGS": 30}
    for name, value in {**small, "MOST_FINDERS": most_finders}.items():
        monkeypatch.setattr(finding, name, value)
    oracle = open_memory()
    memories = crowd(600)
    for one_store in (store, oracle):
        one_store.records.write([Put(memory) for memory in memories])
    assert store.text is not None and oracle.text is not None
    for query, _ in LARGE:
        for filter in (ALL, Filter(project="p"), Filter(tags=("even",)), Filter(exclude=frozenset({"m0001"}))):
            expected, got = oracle.text.match(query, filter, 10), store.text.match(query, filter, 10)
            assert set(got.ids) <= set(expected.ids)
            assert got.frequencies.tolist() == expected.frequencies.tolist()
            counts = dict(zip(expected.ids, expected.counts.tolist(), strict=True))
            assert all(counts[id] == found.tolist() for id, found in zip(got.ids, got.counts, strict=True))
            best = ranked(expected)[:10]
            assert set(best[:5]) <= set(got.ids), (query, filter)
            assert len(set(best) & set(got.ids)) >= min(len(best), 9), (query, filter)


def test_of_very_many_words_the_rarest_find(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "LARGE_INDEX", 10)
    text = "alpha beta gamma"
    store.records.write(
        [Put(Memory(f"m{number:03}", f"{text} word{number} pair{number}-part")) for number in range(99)]
    )
    assert store.text is not None
    words = [*text.split(), "never", "pair98-part", *(f"word{number}" for number in range(99))]
    found = store.text.match(Or(tuple(map(Term, words))), ALL, 10)
    queries = found.compiled.split(" | ")
    assert len(queries) == finding.MOST_FINDERS, "each of them is a query of its own"
    assert not any("alpha" in one or "never" in one for one in queries)
    assert "m098" in found.ids, "by a compound, which is proved afterwards"
    assert len(found.units) == len(words) and found.counts[:, :3, 0].all(), "the others are counted"


def ranked(found: Any) -> list[str]:
    inverse = np.maximum(np.log((found.documents - found.frequencies + 0.5) / (found.frequencies + 0.5)), 1e-6)
    occurring = found.counts.sum(axis=2)
    norm = 1.2 * (0.25 + 0.75 * found.lengths / found.average_length)
    scores = (inverse * occurring * 2.2 / (occurring + norm[:, None])).sum(axis=1)
    return [id for _, id in sorted(zip(-np.round(scores, 9), found.ids, strict=True))]


# --- repairs ------------------------------------------------------------------------------------------------------

DAMAGE = {
    "a lost text": "DELETE FROM {s}.texts WHERE number = (SELECT min(number) FROM {s}.texts)",
    "a wrong stream": "UPDATE {s}.texts SET tokens = '\\x00'",
    "a wrong count": "UPDATE {s}.terms SET memories = memories + 1",
    "a lost word": "DELETE FROM {s}.words WHERE word = 'note'",
    "wrong sums": "UPDATE {s}.counts SET tokens = 7",
    "a lost place in the outbox": "DELETE FROM {s}.outbox",
    "a damaged vector": "UPDATE {s}.vectors SET data = overlay(data PLACING '\\xff' FROM 1)",
    "a damaged link": "UPDATE {s}.links SET created_at = created_at + 1",
    "a wrong text hash": "UPDATE {s}.memories SET text_hash = 1",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_drift_is_found_and_mended(store: Store, address: str, damage: str) -> None:
    from recollect.domain.changes import AddLink
    from recollect.domain.memory import Link

    memories = notes(5)
    store.records.write([Put(memory) for memory in memories])
    store.records.write([AddLink(Link("m0000", "see-also", "m0001"))])
    assert store.vectors is not None and store.text is not None
    made = [Embedded(m.id, content_hash(m.content), np.eye(1, 2, dtype=np.float32)) for m in memories[:3]]
    store.vectors.put("m", made)
    assert store.care.check() == []
    shared_server().execute(DAMAGE[damage].format(s=schema_of(address)))
    assert store.care.check()
    assert all(finding.repaired for finding in store.care.check(repair=True))
    assert store.care.check() == []
    assert sorted(store.text.match(Term("note"), ALL, 9).ids) == [memory.id for memory in memories]
    assert store.records.scan(ALL, order="id") == memories


def test_a_damaged_memory_is_an_error_never_an_answer(store: Store, address: str) -> None:
    store.records.write([Put(memory) for memory in notes(2)])
    shared_server().execute(f"UPDATE {schema_of(address)}.memories SET content = 'altered' WHERE id = 'm0000'")
    with pytest.raises(Corrupt):
        store.records.fetch(["m0000"])
    assert [finding.severity for finding in store.care.check() if finding.kind == "memory"] == ["error"]


def test_the_doors_do_not_show_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_postgres(shared_server().kept("shown") + f"&password={SECRET}")
    assert SECRET not in opened.care.stats().location
    opened.close()
    shared_server().end_of_test()


def test_bounds_of_time_that_every_memory_keeps_are_not_asked_of_each(store: Store, address: str) -> None:
    moments = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    store.records.write([Put(Memory(f"m{at.day}", "note", created_at=at)) for at in moments])

    def idle(after: datetime | None, before: datetime | None) -> Filter:
        with psycopg.connect(parsed(address).conninfo) as connection:
            connection.execute(f"SET search_path = {schema_of(address)}; SET recollect.namespace = 'default'")
            ends = connection.execute(f"SELECT {TIMES}".encode(), {"namespace": "default"}).fetchone()
        assert ends is not None
        return without_idle_times(Filter(after=after, before=before), *ends)

    first, _, last = moments
    assert idle(first, last + timedelta(milliseconds=1)) == Filter()
    assert idle(first + timedelta(milliseconds=1), last) == Filter(after=first + timedelta(milliseconds=1), before=last)
    found = store.text.match(Term("note"), Filter(after=moments[1], before=last + timedelta(days=1)), 5)  # type: ignore[union-attr]
    assert sorted(found.ids) == ["m2", "m3"]
