"""Vectors: exact cosines, one model at a time, and an outbox that never lists what must not be embedded."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from contract_cases import ALL, embedded, failed, note, put

from recollect.domain.changes import Erase, Put, Touch
from recollect.domain.errors import InvalidInput
from recollect.domain.memory import EPOCH, Memory, Scope, content_hash
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit, Passage
from recollect.ports import Embedded, EmbeddingProgress, Pending, Store, Vector, VectorIndex

EAST = np.array([1, 0], dtype=np.float32)


def unit(*numbers: float) -> Vector:
    row = np.array(numbers, dtype=np.float64)
    return (row / np.linalg.norm(row)).astype(np.float32)


def random_units(count: int, dimension: int, seed: int) -> list[Vector]:
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return [unit(*row) for row in rows]


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(float(left) * float(right) for left, right in zip(one, other, strict=True))


def hits(vectors: VectorIndex, model: str = "model", vector: Vector = EAST) -> list[Hit]:
    return vectors.search(model, vector, ALL, 100)


def found(vectors: VectorIndex, model: str = "model") -> list[str]:
    return [hit.id for hit in hits(vectors, model)]


def fill(store: Store, count: int) -> list[Memory]:
    memories = [note(f"m{number:03}") for number in range(count)]
    put(store, *memories)
    return memories


def pending(memory: Memory, attempts: int = 0) -> Pending:
    return Pending(memory.id, memory.content, content_hash(memory.content), attempts)


def test_cosines_are_exact_and_best_first(store: Store, vectors: VectorIndex) -> None:
    memories = fill(store, 150)
    rows = random_units(151, 48, seed=7)
    query = rows.pop()
    vectors.put("model", [embedded(memory, row) for memory, row in zip(memories, rows, strict=True)])
    expected = {memory.id: cosine(row, query) for memory, row in zip(memories, rows, strict=True)}
    best = sorted(expected, key=lambda id: (-expected[id], id))
    for limit in (1, 10, 149, 500):
        answer = vectors.search("model", query, ALL, limit)
        assert [hit.id for hit in answer] == best[:limit]
        assert [hit.score for hit in answer] == pytest.approx([expected[id] for id in best[:limit]], abs=1e-12, rel=0)
    known = vectors.similarities("model", query, best[::7])
    assert {id: hit.score for id, hit in known.items()} == pytest.approx(
        {id: expected[id] for id in best[::7]}, abs=1e-12, rel=0
    )


def test_scores_are_doubles_not_rounded_to_single_floats(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    row = unit(1, 2, 3)
    vectors.put("model", [embedded(memory, row)])
    (hit,) = vectors.search("model", unit(3, 1, 2), ALL, 1)
    exact = cosine(row, unit(3, 1, 2))
    assert hit.score == pytest.approx(exact, abs=1e-15, rel=0)
    assert abs(exact - float(np.float32(exact))) > 1e-12


def test_equal_vectors_have_equal_scores_and_stand_by_id(store: Store, vectors: VectorIndex) -> None:
    """The same vector at any place of the index gives the same number to the last bit."""
    memories = [note(f"m{number:03}") for number in range(61)]
    put(store, *reversed(memories))
    row, query = random_units(2, 37, seed=3)
    vectors.put("model", [embedded(memory, row) for memory in reversed(memories)])
    answer = vectors.search("model", query, ALL, 40)
    assert [hit.id for hit in answer] == [memory.id for memory in memories[:40]]
    assert len({hit.score for hit in answer}) == 1
    known = vectors.similarities("model", query, [memory.id for memory in memories[::-5]])
    assert {hit.score for hit in known.values()} == {answer[0].score}


def test_the_best_passage_speaks_for_a_memory(store: Store, vectors: VectorIndex) -> None:
    long, short, whole = memories = fill(store, 3)
    vectors.put(
        "model",
        [
            embedded(long, [0, 1], [0.8, 0.6], [0.6, 0.8], [0.8, 0.6], passages=((0, 3), (2, 5), (5, 9), (9, 12))),
            embedded(short, [0.6, 0.8], passages=((0, 15),)),
            embedded(whole, [-1, 0]),
        ],
    )
    exact = [float(np.float32(0.8)), float(np.float32(0.6)), -1.0]
    places = [Passage(2, 5), Passage(0, 15), None]
    expected = [Hit(memory.id, score, place) for memory, score, place in zip(memories, exact, places, strict=True)]
    assert hits(vectors) == expected
    assert vectors.similarities("model", EAST, [memory.id for memory in memories]) == {hit.id: hit for hit in expected}
    assert [hit.id for hit in vectors.search("model", EAST, ALL, 2)] == [long.id, short.id]


def test_the_minimum_is_inclusive(store: Store, vectors: VectorIndex) -> None:
    memories = fill(store, 3)
    vectors.put(
        "model", [embedded(memory, row) for memory, row in zip(memories, [[1, 0], [0, 1], [-1, 0]], strict=True)]
    )
    for minimum, count in ((None, 3), (-1.0, 3), (-0.5, 2), (0.0, 2), (1e-9, 1), (1.0, 1), (1.1, 0)):
        assert len(vectors.search("model", EAST, ALL, 10, minimum)) == count


@pytest.mark.covers("live.threshold")
def test_the_minimum_does_not_eat_into_the_limit(store: Store, vectors: VectorIndex) -> None:
    memories = fill(store, 4)
    vectors.put("model", [embedded(memory, unit(1, number)) for number, memory in enumerate(memories)])
    assert [hit.id for hit in vectors.search("model", EAST, ALL, 2, 0.4)] == ["m000", "m001"]
    assert [hit.id for hit in vectors.search("model", EAST, Filter(exclude=frozenset({"m000"})), 2, 0.4)] == [
        "m001",
        "m002",
    ]


@pytest.mark.covers("more.model-change")
def test_models_are_never_mixed(store: Store, vectors: VectorIndex) -> None:
    first, second = fill(store, 2)
    vectors.put("old", [embedded(first, [1, 0]), embedded(second, [0, 1])])
    vectors.put("new", [embedded(first, [0, 0, 1])])
    assert found(vectors, "old") == [first.id, second.id]
    south = np.array([0, 0, 1], dtype=np.float32)
    assert hits(vectors, "new", south) == [Hit(first.id, 1.0)]
    assert vectors.similarities("new", south, [first.id, second.id]) == {first.id: Hit(first.id, 1.0)}
    assert vectors.missing("new", 10) == [pending(second)]
    assert vectors.progress("new") == EmbeddingProgress(done=1, pending=1, failed=0)
    assert vectors.progress("old") == EmbeddingProgress(done=2, pending=0, failed=0)
    assert hits(vectors, "unheard of", south) == []
    assert vectors.similarities("unheard of", EAST, [first.id]) == {}
    assert vectors.progress("unheard of") == EmbeddingProgress(done=0, pending=2, failed=0)


def test_new_vectors_replace_old_ones(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [embedded(memory, [1, 0], [0, 1], passages=((0, 2), (2, 4)))])
    vectors.put("model", [embedded(memory, [0, 1], passages=((1, 3),))])
    assert hits(vectors) == [Hit(memory.id, 0.0, Passage(1, 3))]
    assert store.care.stats().vectors == 1
    assert vectors.progress("model") == EmbeddingProgress(1, 0, 0)


def test_a_later_entry_of_one_batch_wins(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [embedded(memory, [1, 0]), embedded(memory, [0, 1])])
    assert hits(vectors) == [Hit(memory.id, 0.0)]
    assert vectors.progress("model").done == 1


def test_work_for_lost_or_changed_memories_is_ignored(store: Store, vectors: VectorIndex) -> None:
    gone, changed, hushed, kept = memories = fill(store, 4)
    store.records.write(
        [
            Erase(gone.id),
            Put(note(changed.id, "another text"), expected_version=1),
            Put(note(hushed.id, sensitive=True), expected_version=1),
        ]
    )
    vectors.put("model", [embedded(memory, [1, 0]) for memory in memories])
    assert found(vectors) == [kept.id]
    vectors.put("model", [failed(memory) for memory in memories[:3]])
    assert vectors.missing("model", 10) == [pending(note(changed.id, "another text"))]
    assert vectors.progress("model") == EmbeddingProgress(done=1, pending=1, failed=0)


@pytest.mark.covers("more.late-embedding")
def test_vectors_follow_the_text_they_were_made_from(store: Store, vectors: VectorIndex) -> None:
    retold, retagged, erased = memories = fill(store, 3)
    for model in ("model", "second"):
        vectors.put(model, [embedded(memory, [1, 0]) for memory in memories])
    store.records.write(
        [
            Put(note(retold.id, "The Text of m000"), expected_version=1),
            Put(note(retagged.id, tags=("t",), type="decision"), expected_version=1),
            Touch((retagged.id,), EPOCH, count=1),
            Erase(erased.id),
        ]
    )
    for model in ("model", "second"):
        assert found(vectors, model) == [retagged.id]
        assert set(vectors.similarities(model, EAST, [memory.id for memory in memories])) == {retagged.id}
        assert vectors.missing(model, 10) == [pending(note(retold.id, "The Text of m000"))]
    assert [hit.id for hit in store.records.recent(ALL, 10, embedded=True)] == [retagged.id]
    assert store.care.stats().vectors == 2
    vectors.put("model", [embedded(note(retold.id, "The Text of m000"), [0, 1])])
    assert found(vectors) == [retagged.id, retold.id]


@pytest.mark.parametrize(
    "change",
    [
        {"type": "fact"},
        {"scope": Scope(session="t")},
        {"scope": Scope(session="s", project="p")},
        {"created_at": EPOCH + timedelta(minutes=9)},
    ],
)
def test_a_turn_that_leaves_its_place_takes_what_was_made_of_it_there(
    store: Store, vectors: VectorIndex, change: dict[str, Any]
) -> None:
    """The turns behind it were embedded together with it, and nobody finds them by it when it is gone."""
    turns = [
        Memory(id, f"turn {id}", "episode", scope=Scope(session=session), created_at=EPOCH + timedelta(minutes=minute))
        for id, session, minute in [("a", "s", 1), ("b", "s", 2), ("c", "s", 3), ("d", "s", 4), ("x", "t", 5)]
    ]
    put(store, *turns)
    vectors.put("model", [embedded(turn, [1, 0]) for turn in turns])
    store.records.write([Put(replace(turns[1], **change), expected_version=1)])
    also = ["x"] if change.get("scope") == Scope(session="t") else []
    assert sorted(found(vectors)) == sorted({"a", "x"} - set(also))
    waiting = {one.id for one in vectors.missing("model", 10)}
    assert waiting == {"b", "c", "d", *also}
    # Qdrant keeps what it has of a memory that waits until the memory is embedded again.
    assert [finding for finding in store.care.check() if finding.kind != "qdrant-left-over"] == []


def test_an_id_that_returns_brings_no_old_vectors(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [embedded(memory, [1, 0])])
    store.records.write([Erase(memory.id, tombstone=False)])
    put(store, memory)
    assert found(vectors) == []
    assert vectors.missing("model", 10) == [pending(memory)]


def test_the_text_must_be_the_same_to_the_letter(store: Store, vectors: VectorIndex) -> None:
    put(store, note("m", "Some Text"))
    vectors.put("model", [embedded(note("m", "some text"), [1, 0])])
    assert found(vectors) == []
    assert content_hash("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"


@pytest.mark.covers("prior.sensitive")
def test_sensitive_memories_are_never_embedded(store: Store, vectors: VectorIndex) -> None:
    secret, turned, open_again = note("a", sensitive=True), note("b"), note("c", sensitive=True)
    put(store, secret, turned, open_again)
    vectors.put("model", [embedded(memory, [1, 0]) for memory in (secret, turned)])
    assert found(vectors) == ["b"]
    store.records.write(
        [Put(note("b", sensitive=True), expected_version=1), Put(note("c"), expected_version=1)],
    )
    store.records.write([Put(note("a", "changed", sensitive=True), expected_version=1)])
    assert found(vectors) == []
    assert store.records.recent(ALL, 10, embedded=True) == []
    assert vectors.missing("model", 10) == [pending(note("c"))]
    assert vectors.progress("model") == EmbeddingProgress(done=0, pending=1, failed=0)


def test_the_outbox_lists_the_oldest_insertion_first(store: Store, vectors: VectorIndex) -> None:
    put(store, note("z"), note("a"))
    put(store, note("m"))
    store.records.write([Put(note("z", "changed"), expected_version=1), Erase("a"), Put(note("a", "back"))])
    waiting = [pending(note("z", "changed")), pending(note("m")), pending(note("a", "back"))]
    assert vectors.missing("model", 10) == waiting
    assert vectors.missing("model", 2) == waiting[:2]
    vectors.put("model", [embedded(note("m"), [1, 0])])
    assert vectors.missing("model", 10) == [waiting[0], waiting[2]]


def test_failures_are_counted_and_wait_behind_the_fresh(store: Store, vectors: VectorIndex) -> None:
    broken, fresh = fill(store, 2)
    vectors.put("model", [failed(broken)])
    vectors.put("model", [failed(broken)])
    assert vectors.progress("model") == EmbeddingProgress(done=0, pending=1, failed=1)
    assert vectors.missing("model", 1) == [pending(fresh)]
    # The failed one may be held back for a while; when it is listed, it is last and says how often it was tried.
    assert vectors.missing("model", 10)[1:] in ([], [pending(broken, attempts=2)])
    assert vectors.progress("other") == EmbeddingProgress(done=0, pending=2, failed=0)
    vectors.put("model", [embedded(broken, [1, 0])])
    assert vectors.progress("model") == EmbeddingProgress(done=1, pending=1, failed=0)


def test_a_changed_text_starts_with_no_failures(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [failed(memory)])
    store.records.write([Put(note(memory.id, tags=("t",)), expected_version=1)])
    assert vectors.progress("model") == EmbeddingProgress(done=0, pending=0, failed=1)
    store.records.write([Put(note(memory.id, "new text"), expected_version=2)])
    assert vectors.missing("model", 10) == [pending(note(memory.id, "new text"))]
    assert vectors.progress("model") == EmbeddingProgress(done=0, pending=1, failed=0)


def test_a_failure_leaves_finished_work_alone(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [embedded(memory, [1, 0])])
    vectors.put("model", [failed(memory)])
    assert found(vectors) == [memory.id]
    assert vectors.progress("model") == EmbeddingProgress(done=1, pending=0, failed=0)


BAD = {
    "two rows, no passages": ([[1, 0], [0, 1]], ()),
    "one row, two passages": ([[1, 0]], ((0, 1), (1, 2))),
    "no rows": (np.zeros((0, 2)), ()),
    "not a matrix": ([1], ()),
    "not a number": ([[math.nan, 0]], ()),
    "infinite": ([[math.inf, 0]], ()),
    "other dimension": ([[1, 0, 0]], ()),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_vectors_are_refused_with_their_batch(store: Store, vectors: VectorIndex, case: str) -> None:
    good, bad, done = fill(store, 3)
    vectors.put("model", [embedded(done, [1, 0])])
    rows, passages = BAD[case]
    wrong = Embedded(bad.id, content_hash(bad.content), np.array(rows, dtype=np.float32), passages)
    with pytest.raises(InvalidInput) as caught:
        vectors.put("model", [embedded(good, [1, 0]), wrong])
    assert caught.value.hint
    assert found(vectors) == [done.id]
    assert vectors.progress("model") == EmbeddingProgress(done=1, pending=2, failed=0)


def test_one_batch_has_one_dimension(store: Store, vectors: VectorIndex) -> None:
    first, second = fill(store, 2)
    with pytest.raises(InvalidInput):
        vectors.put("model", [embedded(first, [1, 0]), embedded(second, [1, 0, 0])])
    assert vectors.progress("model").done == 0


def test_a_query_must_have_the_dimension_of_the_model(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    vectors.put("model", [embedded(memory, [1, 0])])
    with pytest.raises(InvalidInput):
        vectors.search("model", unit(1, 0, 0), ALL, 10)
    with pytest.raises(InvalidInput):
        vectors.similarities("model", unit(1, 0, 0), [memory.id])


def test_the_store_keeps_its_own_copy(store: Store, vectors: VectorIndex) -> None:
    (memory,) = fill(store, 1)
    entry = embedded(memory, [1, 0])
    vectors.put("model", [entry])
    assert entry.vectors is not None
    entry.vectors[:] = 0
    assert hits(vectors) == [Hit(memory.id, 1.0)]


def test_similarities_take_many_and_unknown_ids(store: Store, vectors: VectorIndex) -> None:
    memories = fill(store, 3)
    vectors.put("model", [embedded(memory, [1, 0]) for memory in memories[:2]])
    asked = [*map(str, range(3000)), memories[2].id, memories[1].id, memories[1].id]
    assert vectors.similarities("model", EAST, asked) == {memories[1].id: Hit(memories[1].id, 1.0)}
    assert vectors.similarities("model", EAST, []) == {}


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_means_no_hits(store: Store, vectors: VectorIndex, limit: int) -> None:
    memories = fill(store, 4)
    vectors.put("model", [embedded(memory, [1, 0]) for memory in memories[:2]])
    assert vectors.search("model", EAST, ALL, limit) == []
    assert vectors.missing("model", limit) == []


def test_stored_vectors_come_back_bit_for_bit(store: Store, vectors: VectorIndex) -> None:
    whole, cut, none, other = memories = fill(store, 4)
    rows = random_units(4, 48, seed=11)
    assert vectors.models() == [] and vectors.stored("model", [whole.id]) == []
    vectors.put("model", [embedded(whole, rows[0]), embedded(cut, rows[1], rows[2], passages=((0, 3), (2, 9)))])
    vectors.put("another", [embedded(other, rows[3])])
    assert vectors.models() == ["another", "model"]
    found = vectors.stored("model", [memory.id for memory in reversed(memories)])
    assert [(one.id, one.content_hash, one.passages) for one in found] == [
        (cut.id, content_hash(cut.content), ((0, 3), (2, 9))),
        (whole.id, content_hash(whole.content), ()),
    ]
    expected = [np.array([rows[1], rows[2]]), np.array([rows[0]])]
    assert all(np.array_equal(one.vectors, matrix) for one, matrix in zip(found, expected, strict=True))
    store.records.write([Erase(whole.id)])
    assert [one.id for one in vectors.stored("model", [none.id, whole.id, cut.id])] == [cut.id]
    vectors.put("model", found)
    assert vectors.progress("model") == EmbeddingProgress(done=1, pending=2, failed=0)


def test_a_forgotten_model_is_as_if_it_had_never_been_asked(store: Store, vectors: VectorIndex) -> None:
    kept, dropped, broken = fill(store, 3)
    secret = note("secret", sensitive=True)
    put(store, secret)
    vectors.put("model", [embedded(kept, EAST), embedded(dropped, EAST, EAST, passages=((0, 3), (3, 5)))])
    vectors.put("model", [failed(broken)])
    vectors.put("other", [embedded(kept, EAST)])
    assert found(vectors) == [kept.id, dropped.id]
    vectors.forget("model")
    vectors.forget("never heard of")
    assert found(vectors) == [] and vectors.models() == ["other"]
    assert vectors.progress("model") == EmbeddingProgress(done=0, pending=3, failed=0)
    assert vectors.missing("model", 10) == [pending(kept), pending(dropped), pending(broken)]
    assert [hit.id for hit in hits(vectors, "other")] == [kept.id]
    assert [hit.id for hit in store.records.recent(ALL, 10, embedded=True)] == [kept.id]
    assert store.care.check() == []
    vectors.put("model", [embedded(dropped, EAST)])
    assert found(vectors) == [dropped.id]
    vectors.forget("model")
    vectors.put("model", [embedded(dropped, [0, 0, 1])])  # it may come back with vectors of another length
    assert [hit.id for hit in vectors.search("model", unit(0, 0, 1), ALL, 10)] == [dropped.id]
    assert store.care.check() == []
