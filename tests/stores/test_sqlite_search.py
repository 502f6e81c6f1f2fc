"""Two-phase search against a bare FTS5 table; exact counts; vectors followed across processes; bounded queries."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import numpy as np
import pytest
from sqlite_cases import embed, note, put, text_of, vectors_of

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import Conflict, InvalidInput
from recollect.domain.memory import EPOCH, Memory, Scope
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Store, TextMatches
from recollect.stores.sqlite import filters, finding, fulltext, open_sqlite, scan, scopes
from recollect.stores.sqlite.connection import connect
from recollect.stores.sqlite.postings import Postings
from recollect.stores.sqlite.scopes import rows_in_scope
from recollect.stores.tokens import MARK

WORDS = [
    f"{a}{b}{c}" for a in ("ba", "ce", "di", "fo") for b in ("lo", "mu", "na") for c in ("t", "rk", "ning", "s", "ed")
]


def corpus(count: int) -> list[Memory]:
    """Texts in which a few words are in almost every one and most are rare."""
    rng = random.Random(5)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return [
        note(
            f"n{number:04d}",
            " ".join(rng.choices(WORDS, weights, k=rng.randint(4, 30))),
            tags=tuple(rng.sample(WORDS, rng.randint(0, 2))),
            project=f"p{number % 5}",
            session=f"s{number % 3}",
            type=rng.choice(["fact", "decision"]),
        )
        for number in range(count)
    ]


def bm25(found: TextMatches, weights: tuple[float, float]) -> dict[str, float]:
    rarity = np.log((found.documents - found.frequencies + 0.5) / (found.frequencies + 0.5))
    counts = found.counts @ np.array(weights)
    norm = 1.2 * (0.25 + 0.75 * found.lengths / found.average_length)
    scores = (np.where(rarity > 0, rarity, 1e-6) * counts * 2.2 / (counts + norm[:, None])).sum(axis=1)
    return dict(zip(found.ids, scores.tolist()))


class Bare:
    """The judge: the same texts in a plain FTS5 table, ranked by FTS5 itself."""

    def __init__(self, memories: list[Memory]) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, content, tags, tokenize='porter unicode61')"
        )
        for memory in memories:
            self.connection.execute(
                "INSERT INTO t VALUES (?, ?, ?)", (memory.id, memory.content, " ".join(memory.tags))
            )

    def best(self, expression: str, weights: tuple[float, float]) -> dict[str, float]:
        found = self.connection.execute(
            "SELECT id, -bm25(t, 0.0, ?, ?) FROM t WHERE t MATCH ? ORDER BY 2 DESC, id", (*weights, expression)
        )
        return {id: score for id, score in found}  # noqa: C416


def any_of(*numbers: int) -> tuple[Or, str]:
    """Some of WORDS, for us and for FTS5."""
    words = [WORDS[number] for number in numbers]
    return Or(tuple(Term(word) for word in words)), " OR ".join(words)


NINE = any_of(*range(9))
FOUR = any_of(3, 20, 21, 22)
CASES: list[tuple[Node, str]] = [
    NINE,
    any_of(0, 40, 50, 55),
    (And((Term(WORDS[1]), Term(WORDS[2]))), f"{WORDS[1]} AND {WORDS[2]}"),
    (Phrase((WORDS[0], WORDS[1])), f'"{WORDS[0]} {WORDS[1]}"'),
    (Or((Prefix("balo"), Term(WORDS[30]))), f"balo* OR {WORDS[30]}"),
    (Not(FOUR[0], Term(WORDS[0])), f"({FOUR[1]}) NOT {WORDS[0]}"),
]


@pytest.fixture(params=["all words find", "rare words find"])
def two_phase(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "rare words find":
        monkeypatch.setattr(finding, "LARGE_INDEX", 10)
        monkeypatch.setattr(finding, "FOUND_POSTINGS", 300)
        monkeypatch.setattr(finding, "LISTED_CANDIDATES", 200)
        monkeypatch.setattr(finding, "COUNTED_SCOPE", 10)
        monkeypatch.setattr(fulltext, "COMMON_COUNT", 20)
        monkeypatch.setattr(filters, "SMALL_SCOPE", 10)


@pytest.mark.covers("two-stage.bm25")
@pytest.mark.parametrize(("query", "expression"), CASES, ids=[expression for _, expression in CASES])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0, 0.5)])
def test_two_phases_find_and_score_as_fts5_does(
    tmp_path: Path, two_phase: None, query: Node, expression: str, weights: tuple[float, float]
) -> None:
    memories = corpus(600)
    store, bare = open_sqlite(tmp_path / "s.db"), Bare(memories)
    put(store, *memories)
    for _ in range(2):  # the second time, common terms are counted by the writer
        found = bm25(text_of(store).match(query, Filter(), 50, weights), weights)
        expected = bare.best(expression, weights)
        assert {id: expected.get(id) for id in found} == pytest.approx(found, abs=1e-9)
        best = sorted(found, key=lambda id: (-found[id], id))[:50]
        assert len(set(best) & set(list(expected)[:50])) >= 0.98 * min(50, len(expected))
        store.records.write([])
    store.close()


@pytest.mark.covers("two-stage.index")
def test_the_latest_of_a_large_scope_come_from_two_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "SMALL_SCOPE", 10)
    store = open_sqlite(tmp_path / "s.db")
    memories = [note(f"m{n:02}", f"text {n}", accessed_at=EPOCH + timedelta(days=n * 7 % 20)) for n in range(40)]
    put(store, *memories)
    for memory in memories[::3]:
        embed(store, memory, 1.0, 2.0)
    for embedded, wanted in ((True, memories[::3]), (False, memories)):
        latest = sorted(wanted, key=lambda one: (one.accessed_at, one.id), reverse=True)
        for limit in (1, 9, 50):
            found = store.records.recent(Filter(), limit, embedded=embedded)
            assert [hit.id for hit in found] == [one.id for one in latest[:limit]]
    store.close()


def test_scopes_are_searched_inside_the_index(tmp_path: Path, two_phase: None) -> None:
    memories = corpus(600)
    store, bare = open_sqlite(tmp_path / "s.db"), Bare(memories)
    put(store, *memories)
    put(store, note("foreign", " ".join(WORDS), namespace="other", project="p1", session="s1"))
    by_id = {memory.id: memory for memory in memories}
    query, expression = NINE
    tag = next(memory.tags[0] for memory in memories if memory.tags)
    for filter in (
        Filter(project="p1"),
        Filter(sessions=("s1", "s2"), types=("decision",)),
        Filter(tags=(tag,)),
        Filter(project="p2", without_types=("fact",), without_tags=(WORDS[0],)),
        Filter(exclude=frozenset(["n0001", "n0002"]), only=frozenset(f"n{n:04d}" for n in range(80))),
    ):
        expected = {id for id in bare.best(expression, (1.0, 1.0)) if filter.allows(by_id[id])}
        assert expected
        found = set(text_of(store).match(query, filter, 600).ids)
        assert found == expected
    store.close()


def test_counts_stay_exact_while_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulltext, "COMMON_COUNT", 3)
    path = tmp_path / "s.db"
    first, second = open_sqlite(path), open_sqlite(path)
    put(first, *(note(f"a{n}", f"common word {n}") for n in range(5)))
    assert text_of(first).frequencies(["common"]) == [5]
    put(second, note("sync", "the promotion is committed before this"))
    put(first, note("sync2", "and seen here"))
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT memories FROM common_terms WHERE term = 'common'").get == 5
    put(second, note("b1", "common again"), note("b2", "rare"))
    first.records.write([Erase("a0"), Put(note("a1", "no more"), 1)])
    assert text_of(first).frequencies(["common", "rare", "nothing"]) == [4, 1, 0]
    assert connection.execute("SELECT memories FROM common_terms WHERE term = 'common'").get == 4
    connection.close()
    assert second.care.check() == []
    first.close()
    second.close()


def test_no_text_can_look_like_a_scope(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "mine", project="secret"))
    connection = connect(str(path))
    scope = connection.execute("SELECT scope FROM indexed_texts").get
    connection.close()
    assert MARK in scope
    put(store, note("b", f"let me in {scope} {MARK}x", namespace="other"))
    assert text_of(store).match(Term("let"), Filter(project="secret"), 5).ids == ()
    assert text_of(store).match(Term(scope), Filter(), 5).ids == ()
    assert store.care.check() == []
    store.close()


@pytest.mark.parametrize(
    "query",
    [
        Or(tuple(Term(f"w{n}") for n in range(257))),
        And(tuple(Term(f"w{n}") for n in range(65))),
        Not(Or(tuple(Term(f"w{n}") for n in range(64))), Term("x")),
        Or(tuple(Term(f"w{n}-x") for n in range(65))),
        Phrase(tuple(f"w{n}" for n in range(65))),
        Or(tuple(Prefix(f"w{n}") for n in range(9))),
        Or((Prefix("a"), Prefix("b"))),
        Term("x-" * 5000),
    ],
    ids=["words", "all words", "but one", "compounds", "phrase", "prefixes", "short prefixes", "one long word"],
)
def test_a_query_bomb_is_refused(tmp_path: Path, query: Node) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "w1 w2"))
    with pytest.raises(InvalidInput):
        text_of(store).match(query, Filter(), 5)
    store.close()


def deep(levels: int) -> Node:
    node: Node = Term("w1")
    for _ in range(levels):
        node = And((node, Term("w2")))
    return node


def test_a_deep_query_is_refused_and_odd_words_are_harmless(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", 'w1 w2 say "NEAR" AND OR'))
    with pytest.raises(InvalidInput):
        text_of(store).match(deep(300), Filter(), 5)
    assert text_of(store).match(deep(20), Filter(), 5).ids == ("a",)
    for odd in ('"', '""', "w1 OR", "NEAR(w1", "content:w1", "w1\0w2", "^w1", "*", "(", "-w1", "{scope} : x", "\ud800"):
        text_of(store).match(Or((Term(odd), Phrase((odd, odd)), Prefix(odd))), Filter(), 5)
    assert text_of(store).match(Term("w1\0w2"), Filter(), 5).ids == ("a",)
    store.close()


def test_vectors_of_another_process_are_seen_at_the_next_search(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    first, second = open_sqlite(path), open_sqlite(path)
    query = np.array([1.0, 0.0], dtype=np.float32)

    def best(store: Store) -> list[str]:
        return [hit.id for hit in vectors_of(store).search("m", query, Filter(), 10)]

    a, b = note("a", "one"), note("b", "two")
    put(first, a, b)
    embed(first, a, 0.6, 0.8)
    assert (best(first), best(second)) == (["a"], ["a"])
    embed(second, b, 1.0, 0.0)
    assert (best(first), best(second)) == (["b", "a"], ["b", "a"])
    first.records.write([Erase("b")])
    assert (best(first), best(second)) == (["a"], ["a"])
    second.records.write([Put(note("a", "changed"), 1)])
    assert (best(first), best(second)) == ([], [])
    first.close()
    second.close()


def test_a_process_that_missed_the_log_reads_everything_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.ledger.LOGGED_VECTORS", 2)
    path = tmp_path / "s.db"
    first, second = open_sqlite(path), open_sqlite(path)
    memories = [note(f"n{n}", f"text {n}") for n in range(8)]
    put(first, *memories)
    query = np.array([1.0, 0.0], dtype=np.float32)
    embed(first, memories[0], 0.0, 1.0)
    assert len(vectors_of(second).search("m", query, Filter(), 10)) == 1
    for n, memory in enumerate(memories):
        embed(first, memory, 1.0, float(n))
    assert len(vectors_of(second).search("m", query, Filter(), 10)) == 8
    first.close()
    second.close()


def test_a_process_that_missed_the_log_takes_the_index_that_another_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.ledger.LOGGED_VECTORS", 2)
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 2)
    first, second = open_sqlite(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db")
    memories = [note(f"n{n}", f"text {n}") for n in range(8)]
    put(first, *memories)
    query = np.array([1.0, 0.0], dtype=np.float32)
    embed(first, memories[0], 0.0, 1.0)
    assert len(vectors_of(second).search("m", query, Filter(), 10)) == 1
    for n, memory in enumerate(memories[:7]):
        embed(first, memory, 1.0, float(n))
    assert len(vectors_of(first).search("m", query, Filter(), 10)) == 7
    first.care.tidy()
    embed(first, memories[7], 1.0, 7.0)

    def build_again(*_: object) -> None:
        raise AssertionError("all vectors were read again")

    monkeypatch.setattr("recollect.stores.sqlite.scan._add_all", build_again)
    assert len(vectors_of(second).search("m", query, Filter(), 10)) == 8
    first.close()
    second.close()


def test_a_model_whose_vectors_were_dropped_may_come_back_with_longer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 1)
    store, other = open_sqlite(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db")
    memories = [note(f"n{n}", f"text {n}") for n in range(3)]
    put(store, *memories)
    for number, memory in enumerate(memories):
        embed(store, memory, 1.0, float(number))
    short, long = np.array([1.0, 0.0], np.float32), np.array([0.0, 0.0, 1.0], np.float32)
    for one in (store, other):
        assert len(vectors_of(one).search("m", short, Filter(), 5)) == 3
    vectors_of(store).forget("m")
    assert other.care.tidy()["saved"] == 0
    for number, memory in enumerate(memories[:2]):
        embed(other, memory, 1.0, 0.0, float(number))
    with pytest.raises(InvalidInput, match="2 numbers, the model's others have 3"):
        embed(store, memories[2], 1.0, 2.0)
    for one in (store, other):
        one.care.tidy()
        assert [hit.id for hit in vectors_of(one).search("m", long, Filter(), 5)] == ["n1", "n0"]
        one.care.tidy()
        assert one.care.check() == []
        one.close()


def test_an_index_that_had_to_be_built_is_there_for_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 2)
    store = open_sqlite(tmp_path / "s.db")
    memories = [note(f"n{n}", f"text {n}") for n in range(3)]
    put(store, *memories)
    for number, memory in enumerate(memories):
        embed(store, memory, 1.0, float(number))
    query = np.array([1.0, 0.0], dtype=np.float32)
    found = vectors_of(store).search("m", query, Filter(), 3)
    store.close()

    def build_again(*_: object) -> None:
        raise AssertionError("all vectors were read again")

    monkeypatch.setattr("recollect.stores.sqlite.scan._add_all", build_again)
    store = open_sqlite(tmp_path / "s.db")
    assert vectors_of(store).search("m", query, Filter(), 3) == found
    store.close()


def test_lists_in_memory_follow_every_change(tmp_path: Path, two_phase: None) -> None:
    """New, edited, moved and erased memories, seen by a store that has searched before and by one that has not."""
    memories = corpus(300)
    query = any_of(3, 20, 21, 22)[0]
    store, other = open_sqlite(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db")
    put(store, *memories)

    def both(filter: Filter = Filter()) -> set[str]:  # noqa: B008
        seen = [set(text_of(one).match(query, filter, 400).ids) for one in (store, other)]
        fresh = open_sqlite(tmp_path / "s.db")
        expected = set(text_of(fresh).match(query, filter, 400).ids)
        fresh.close()
        assert seen == [expected, expected]
        return expected

    before = both()
    put(store, note("new", f"{WORDS[20]} {WORDS[21]}", project="p1"))
    assert both() == before | {"new"}
    assert "new" in both(Filter(project="p1")) and "new" not in both(Filter(project="p2"))
    held = store.records.fetch(["new"])[0]
    store.records.write([Put(replace(held, scope=Scope(project="p2")), expected_version=1)])
    assert "new" not in both(Filter(project="p1")) and "new" in both(Filter(project="p2"))
    store.records.write([Put(replace(held, content="nothing of the kind"), expected_version=2)])
    assert both() == before
    store.records.write([Put(held, expected_version=3)])
    assert both() == before | {"new"}
    store.records.write([Erase("new", tombstone=False)])
    gone = min(before)
    store.records.write([Erase(gone)])
    assert both() == before - {gone}
    store.close()
    other.close()


def test_bounds_of_time_that_all_memories_keep_cost_nothing_and_the_others_hold(
    tmp_path: Path, two_phase: None
) -> None:
    store = open_sqlite(tmp_path / "s.db")
    moments = [datetime(2026, 1, 1 + n, tzinfo=UTC) for n in range(28)]
    put(store, *[note(f"n{n:02d}", WORDS[n % 3], created_at=moment) for n, moment in enumerate(moments)])
    query = any_of(0, 1, 2, 3)[0]
    for after, before in ((None, moments[27]), (moments[3], None), (moments[5], moments[9]), (moments[0], None)):
        found = text_of(store).match(query, Filter(after=after, before=before), 50).ids
        kept = [n for n, at in enumerate(moments) if (not after or at >= after) and (not before or at < before)]
        assert sorted(found) == [f"n{n:02d}" for n in kept]
    store.close()


def test_many_new_memories_are_stored_as_one_by_one(tmp_path: Path) -> None:
    memories = [
        *corpus(30),
        note("odd", "İstanbul ſtraße ﬁne", tags=("ümlaut", "two words")),
        note("secret", "hidden words", sensitive=True, key="k1", metadata={"a": [1, 2]}),
    ]
    bulk, single = open_sqlite(tmp_path / "bulk.db"), open_sqlite(tmp_path / "single.db")
    for store in (bulk, single):
        vectors_of(store).missing("m", 1)  # the model is known, so that the outbox fills
    put(bulk, *memories)
    for memory in memories:
        put(single, memory)
    query = any_of(0, 1, 20)[0]
    answers = [text_of(store).match(query, Filter(), 50) for store in (bulk, single)]
    ids = [memory.id for memory in memories]
    assert bulk.records.fetch(ids) == single.records.fetch(ids) == memories
    assert [one.id for one in vectors_of(bulk).missing("m", 99)] == [
        one.id for one in vectors_of(single).missing("m", 99)
    ]
    assert sorted(answers[0].ids) == sorted(answers[1].ids)
    assert answers[0].average_length == answers[1].average_length
    assert text_of(bulk).similar("strase", 0.1, 9) == text_of(single).similar("strase", 0.1, 9)
    for store in (bulk, single):
        assert store.care.check() == []
        store.close()


@pytest.mark.parametrize(
    "clash",
    [
        note("c00", "an id that is taken"),
        note("fresh", "a key that is taken", key="taken"),
        note("m5", "an id twice in the list"),
    ],
    ids=lambda memory: memory.content,
)
def test_many_new_memories_with_one_conflict_are_none(tmp_path: Path, clash: Memory) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("c00", "held before"), note("keyed", "held with a key", key="taken"))
    with pytest.raises(Conflict):
        put(store, *[note(f"m{n}", f"fresh text {n}") for n in range(20)], clash)
    assert store.care.stats().memories == 2
    with pytest.raises(Conflict):
        texts = [Put(note(f"m{n}", f"fresh text {n % 15}"), once=True) for n in range(20)]
        store.records.write(texts)
    assert store.care.stats().memories == 2 and store.care.check() == []
    store.close()


TWO = {"n0007", "n0030"}
EARLY = EPOCH + timedelta(hours=1)


@pytest.mark.parametrize(
    ("filter", "let_in"),
    [
        (Filter(only=frozenset(TWO)), True),
        (Filter(exclude=frozenset(TWO)), False),
        (Filter(before=EARLY), True),
        (Filter(after=EARLY), False),
    ],
)
def test_naming_a_few_memories_costs_the_same_in_a_large_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter: Filter, let_in: bool
) -> None:
    """By the steps of SQLite's machine: a filter that lets two in or keeps two out must not walk the namespace."""
    monkeypatch.setattr(scopes, "FEWEST_ROWS", 5)
    monkeypatch.setattr(scopes, "FEW_ROWS", 20)
    steps: list[int] = []
    for count in (50, 1_000):
        path = tmp_path / f"{count}.db"
        store = open_sqlite(path)
        put(store, *(replace(one, created_at=EPOCH + (one.id not in TWO) * timedelta(days=1)) for one in corpus(count)))
        store.close()
        connection, taken = connect(str(path), create=False), [0]
        lists = Postings()
        view = lists.view(connection)

        def step(taken: list[int] = taken) -> bool:
            taken[0] += 1
            return False

        connection.set_progress_handler(step, 1)
        scope = rows_in_scope(connection, lists, filter, view)
        assert len(scope.refused if scope.rows is None else scope.rows) == 2
        assert (scope.rows is not None) == let_in
        steps.append(taken[0])
        connection.close()
    assert steps[1] < 2 * steps[0]


@pytest.mark.parametrize("spare", [0, 200])
def test_what_is_excluded_makes_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    """Whether excluded memories are never looked at or found and dropped: the next best take their places."""
    monkeypatch.setattr(finding, "LARGE_INDEX", 100)
    monkeypatch.setattr(finding, "SPARE_EXCLUDED", spare)
    monkeypatch.setattr(scan, "SPARE_EXCLUDED", spare)
    store, memories = open_sqlite(tmp_path / "s.db"), corpus(400)
    put(store, *memories)
    for number, memory in enumerate(memories):
        embed(store, memory, np.cos(number / 400), np.sin(number / 400))
    query, east = Or((Term(WORDS[0]), Term(WORDS[9]), Term(WORDS[30]))), np.array([1, 0], np.float32)

    def best(filter: Filter) -> list[str]:
        scored = bm25(text_of(store).match(query, filter, 50), (1.0, 1.0))
        return sorted(scored, key=lambda id: (-scored[id], id))

    first = best(Filter())
    without = Filter(exclude=frozenset(first[:40]))
    assert best(without)[:10] == [id for id in best(replace(without, exclude=frozenset())) if id not in first[:40]][:10]
    assert not set(best(without)) & without.exclude and len(best(without)) >= 50
    near = [hit.id for hit in vectors_of(store).search("m", east, Filter(), 60)]
    excluded = Filter(exclude=frozenset(near[:50]))
    assert [hit.id for hit in vectors_of(store).search("m", east, excluded, 10)] == near[50:]
    store.close()


def test_a_store_in_memory_keeps_no_index_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.scan.WORTH_SAVING", 1)
    store = open_sqlite(":memory:")
    memory = note("a", "zebra")
    put(store, memory)
    embed(store, memory, 1, 0)
    assert [hit.id for hit in vectors_of(store).search("m", np.array([1, 0], np.float32), Filter(), 5)] == ["a"]
    store.close()
