"""The code index agrees with brute force, survives damaged files, and can be searched while it changes."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.stores import codes
from recollect.stores.codes import Allowed, CodeIndex, Floats, Ints

DIMENSION = 16
Row = tuple[int, Floats]  # owner and vector, by row number


def fetcher(rows: dict[int, Row]) -> Callable[[Ints], Floats]:
    gone = np.full(DIMENSION, np.nan, np.float32)
    return lambda wanted: np.array([rows[row][1] if row in rows else gone for row in wanted.tolist()], np.float32)


class Found(NamedTuple):
    """One owner, its best row and the exact cosine of that row."""

    owner: int
    row: int
    cosine: float


def search(
    index: CodeIndex,
    query: Floats,
    limit: int,
    fetch: Callable[[Ints], Floats],
    allowed: Allowed | None = None,
    refused: Ints = codes.NOBODY,
) -> list[Found]:
    """What a store does with the index: an exact look at what it proposes. A row that is gone comes back as NaN."""
    rows, owners = index.nearest(query, limit, allowed, refused)
    found = {
        int(row): (int(owner), vector)
        for row, owner, vector in zip(rows, owners, fetch(rows))
        if not np.isnan(vector).any()
    }
    return brute(found, query, limit, None)


def brute(rows: dict[int, Row], query: Floats, limit: int, allowed: set[int] | None) -> list[Found]:
    """The contract in the plainest words: every row, float64, best row of each owner, one total order."""
    unit = query.astype(np.float64)
    unit = unit / (np.sqrt(np.vdot(unit, unit)) or 1.0)
    best: dict[int, Found] = {}
    for row, (owner, vector) in sorted(rows.items()):
        if allowed is not None and owner not in allowed:
            continue
        wide = vector.astype(np.float64)
        cosine = float(np.vdot(wide, unit) / max(np.sqrt(np.vdot(wide, wide)), 1e-30))
        if owner not in best or cosine > best[owner].cosine + 1e-12:
            best[owner] = Found(owner, row, cosine)
    return sorted(best.values(), key=lambda hit: (-round(hit.cosine, 12), hit.owner))[:limit]


def same(got: list[Found], wanted: list[Found]) -> None:
    assert [(hit.owner, hit.row) for hit in got] == [(hit.owner, hit.row) for hit in wanted]
    assert np.allclose([hit.cosine for hit in got], [hit.cosine for hit in wanted], atol=1e-12)


def cloud(count: int, seed: int, dimension: int = DIMENSION) -> Floats:
    """Vectors around a shared mean, as embeddings are."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((count, dimension)).astype(np.float32)
    return noise + 2 * rng.standard_normal(dimension).astype(np.float32)


def filled(vectors: Floats, exact_rows: int, per_owner: int = 1) -> tuple[CodeIndex, dict[int, Row]]:
    index = CodeIndex(vectors.shape[1], exact_rows=exact_rows)
    numbers = np.arange(len(vectors))
    index.add(numbers, numbers // per_owner, vectors)
    return index, {row: (row // per_owner, vectors[row]) for row in range(len(vectors))}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments, steps, threads and samples at work in small indexes, with seams."""
    monkeypatch.setattr(codes, "SEGMENT_ROWS", 1_500)
    monkeypatch.setattr(codes, "STEP_ROWS", 70)
    monkeypatch.setattr(codes, "SHARED_ROWS", 2_000)
    monkeypatch.setattr(codes, "PIECE_ROWS", 400)
    monkeypatch.setattr(codes, "SAMPLED", 8)


# A few vectors only, so that histories hold equal vectors, zero vectors and ties.
vector_of = st.integers(0, 11)
VECTORS = np.vstack([np.zeros((1, DIMENSION), np.float32), cloud(10, 5), -cloud(1, 6)])
step_of = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12), vector_of), max_size=20)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 14), max_size=6)),
    st.tuples(
        st.just("search"),
        st.integers(1, 12),
        vector_of,
        st.none() | st.sets(st.integers(0, 14), max_size=8),
        st.booleans(),
    ),
    st.tuples(st.just("reopen")),
)


@settings(max_examples=150, deadline=None)
@given(
    history=st.lists(step_of, max_size=14),
    exact_rows=st.sampled_from([0, 5, 25, 10_000]),
    masked=st.booleans(),
    shut_share=st.sampled_from([0, 1, 4]),
)
def test_random_histories_agree_with_brute_force(
    history: list[tuple], exact_rows: int, masked: bool, shut_share: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    index, rows = CodeIndex(DIMENSION, exact_rows=exact_rows), dict[int, Row]()
    path = tmp_path_factory.mktemp("history") / "codes"
    for what, *rest in history:
        if what == "add":
            fresh = {row: (owner, VECTORS[which]) for row, owner, which in rest[0]}
            owners = [owner for owner, _ in fresh.values()]
            vectors = np.array([vector for _, vector in fresh.values()], np.float32).reshape(-1, DIMENSION)
            index.add(np.array(list(fresh), np.int64), np.array(owners, np.int64), vectors)
            rows |= fresh
        elif what == "remove":
            index.remove(np.array(rest[0], np.int64))
            rows = {row: kept for row, kept in rows.items() if kept[0] not in rest[0]}
        elif what == "reopen":
            index.save(path, "now")
            opened = CodeIndex.load(path, "now", DIMENSION, exact_rows=exact_rows)
            assert opened is not None
            index = opened
        else:
            limit, which, named, let_in = rest
            keys = None if named is None else np.array(sorted(named, reverse=True), np.int64)
            given = (lambda owners, keys=keys: np.isin(owners, keys)) if masked and keys is not None else keys
            rule = (given,) if let_in or keys is None else (None, keys)
            with patch.object(codes, "SHUT_SHARE", shut_share):
                got = search(index, VECTORS[which], limit, fetcher(rows), *rule)
            allowed = named if let_in or named is None else set(range(15)) - named
            same(got, brute(rows, VECTORS[which], limit, allowed))
        assert len(index) == len(rows)


def test_a_small_index_misses_nothing() -> None:
    index, rows = filled(cloud(3_000, 1), exact_rows=3_000, per_owner=3)
    for query in cloud(10, 1):
        same(search(index, query, 100, fetcher(rows)), brute(rows, query, 100, None))


@pytest.mark.parametrize("share", [1.0, 0.6, 0.1, 0.002])
def test_codes_find_what_brute_force_finds(narrow: None, share: float) -> None:
    centres = cloud(60, 2, 96)
    vectors = np.tile(centres, (100, 1)) + cloud(6_000, 3, 96) / 3
    index, rows = filled(vectors, exact_rows=500)
    rng = np.random.default_rng(3)
    allowed = None if share == 1 else set(rng.choice(6_000, int(6_000 * share), replace=False).tolist())
    keys = None if allowed is None else np.array(sorted(allowed), np.int64)
    found = 0
    for query in centres[:20]:
        wanted = brute(rows, query, 10, allowed)
        got = search(index, query, 10, lambda wanted: vectors[wanted], keys)
        assert len(got) == len(wanted)
        found += len({hit.owner for hit in got} & {hit.owner for hit in wanted})
    assert found >= 0.999 * 20 * len(wanted)


def test_codes_estimate_cosines_to_a_thousandth_and_without_bias() -> None:
    vectors = cloud(2_000, 7, 384) * np.float32(1e-20)  # their squares are no float32 numbers
    units = (vectors / np.float32(1e-20)).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    query = cloud(1, 8, 384)[0]
    query /= np.linalg.norm(query)
    part = codes.Part(
        codes.Segment.full(codes._columns(np.arange(2_000), np.arange(2_000), vectors, True)), 2_000, None, codes.NOBODY
    )
    probe, of_query = codes._codes(query[None], codes._peaks(query[None]))
    found, truth = codes._code_scores(part, probe, 0, 2_000) * of_query, units @ query
    assert np.abs(found - truth).max() < 0.005 and abs(np.polyfit(truth, found, 1)[0] - 1) < 0.002
    for kept in (np.array([5, 900, 1_999]), np.arange(0, 2_000, 2)):  # gathered; thinned after
        some = codes.Part(part.segment, 2_000, kept, codes.NOBODY)
        for first, last in ((0, len(kept)), (1, len(kept) - 1), (len(kept) - 1, len(kept))):
            assert np.array_equal(codes._code_scores(some, probe, first, last) * of_query, found[kept[first:last]])


def test_a_forked_process_scans_with_threads_of_its_own(narrow: None) -> None:
    vectors = cloud(6_000, 21)
    index, _ = filled(vectors, exact_rows=500)
    here = index.nearest(vectors[7], 10)[0].tolist()
    child = os.fork()
    if not child:
        signal.alarm(20)  # who waits for threads that are not there waits for ever
        same_rows = index.nearest(vectors[7], 10)[0].tolist() == here
        os._exit(0 if same_rows and threading.active_count() > 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("size", [1, 7, 40, 400])
def test_the_edge_that_a_sample_shows_is_the_edge(size: int) -> None:
    rng = np.random.default_rng(17)
    falling = np.linspace(1, 0, 50_000, dtype=np.float32)  # the sample is good
    places = np.arange(50_000)
    crowded = np.where(places % codes.SAMPLED == 0, places, 0).astype(np.float32)  # it promises too much
    for scores in (falling, rng.permutation(falling), crowded, np.zeros(50_000, np.float32)):
        assert codes._edge(scores, size) == np.sort(scores)[-size]


def test_owners_with_many_rows_do_not_crowd_out_others(narrow: None) -> None:
    vectors = cloud(5_000, 8)
    vectors[:4_000] = vectors[0] + 0.01 * vectors[:4_000]  # one owner holds the nearest 4 000 rows
    owners = np.array([0] * 4_000 + list(range(1, 1_001)))
    index = CodeIndex(DIMENSION, exact_rows=100)
    index.add(np.arange(5_000), owners, vectors)
    got = search(index, vectors[0], 20, lambda wanted: vectors[wanted])
    assert len({hit.owner for hit in got}) == 20
    assert got[0].owner == 0


def test_thousands_of_equal_vectors_answer_with_the_lowest_owners(narrow: None) -> None:
    vectors = np.repeat(cloud(1, 9), 5_000, axis=0)
    index, _ = filled(vectors, exact_rows=100)
    got = search(index, vectors[0], 10, lambda wanted: vectors[wanted])
    assert [hit.owner for hit in got] == list(range(10))


def test_a_row_that_is_gone_from_the_store_is_left_out() -> None:
    index, rows = filled(cloud(50, 10), exact_rows=0)
    del rows[7]
    assert 7 not in {hit.owner for hit in search(index, cloud(1, 10)[0], 50, fetcher(rows))}


def test_space_of_the_dead_is_given_back() -> None:
    index, _ = filled(cloud(4_000, 11), exact_rows=100)
    index.remove(np.arange(0, 3_000))
    assert len(index) == 1_000
    assert sum(len(segment.live) for segment in index._segments) < 4_000
    index.remove(np.arange(4_000))
    assert len(index) == 0 and len(index.nearest(cloud(1, 1)[0], 5)[0]) == 0


def test_what_cannot_be_indexed_is_refused() -> None:
    index = CodeIndex(DIMENSION)
    one = np.array([1])
    for rows, owners, vectors in (
        (one, one, np.full((1, DIMENSION), np.nan, np.float32)),
        (one, one, np.zeros((1, DIMENSION + 1), np.float32)),
        (one, np.array([1, 2]), np.zeros((1, DIMENSION), np.float32)),
        (np.array([1, 1]), np.array([1, 2]), np.zeros((2, DIMENSION), np.float32)),
    ):
        with pytest.raises(ValueError):
            index.add(rows, owners, vectors)
    with pytest.raises(ValueError):
        index.nearest(np.zeros(DIMENSION + 1, np.float32), 5)
    assert len(index) == 0 and len(index.nearest(np.ones(DIMENSION, np.float32), 0)[0]) == 0


@pytest.mark.parametrize("exact_rows", [0, 10_000])
def test_a_saved_index_answers_the_same_and_goes_on(tmp_path: Path, exact_rows: int) -> None:
    vectors = cloud(900, 12)
    index, rows = filled(vectors, exact_rows)
    index.remove(np.arange(0, 100))
    index.save(tmp_path / "codes", "7")
    opened = CodeIndex.load(tmp_path / "codes", "7", DIMENSION, exact_rows=exact_rows)
    assert opened is not None and len(opened) == 800
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes"]
    column = DIMENSION + 4 if exact_rows == 0 else 4 * DIMENSION + 4
    assert (tmp_path / "codes").stat().st_size < 800 * (column + 3) + 600, "numbers of rows take no eight bytes each"
    for changed in (index, opened):
        changed.add(np.array([2_000]), np.array([5]), vectors[:1])
        changed.remove(np.array([300]))
    for query in vectors[:5]:
        assert search(opened, query, 20, fetcher(rows)) == search(index, query, 20, fetcher(rows))
    opened.save(tmp_path / "codes", "8")  # over the file that is mapped
    assert CodeIndex.load(tmp_path / "codes", "7", DIMENSION) is None
    assert CodeIndex.load(tmp_path / "codes", "8", DIMENSION + 1) is None
    assert len(CodeIndex.load(tmp_path / "codes", "8", DIMENSION) or ()) == 800


@pytest.mark.parametrize("exact_rows", [0, 10_000])
def test_owners_may_come_in_any_order_also_in_a_saved_index(tmp_path: Path, exact_rows: int) -> None:
    vectors = cloud(200, 3)
    index = CodeIndex(DIMENSION, exact_rows=exact_rows)
    index.add(np.arange(200), np.arange(200)[::-1].copy(), vectors)
    index.save(tmp_path / "codes", "1")
    opened = CodeIndex.load(tmp_path / "codes", "1", DIMENSION, exact_rows=exact_rows)
    assert opened is not None
    opened.remove(np.array([3, 150]))
    left = opened.nearest(vectors[0], 200)[1]
    assert sorted(left.tolist()) == [owner for owner in range(200) if owner not in (3, 150)]


@pytest.mark.parametrize("exact_rows", [0, 10_000])
def test_a_torn_or_damaged_file_is_ignored(tmp_path: Path, exact_rows: int) -> None:
    path = tmp_path / "codes"
    assert CodeIndex.load(path, "1", DIMENSION) is None
    index, _ = filled(cloud(200, 13), exact_rows)
    index.save(path, "1")
    whole = path.read_bytes()
    rng = np.random.default_rng(14)
    for length in [0, 1, 15, 16, 17, len(whole) - 1, *rng.integers(0, len(whole), 40).tolist()]:
        path.write_bytes(whole[:length])
        assert CodeIndex.load(path, "1", DIMENSION) is None
    for place in rng.integers(0, len(whole), 60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert CodeIndex.load(path, "1", DIMENSION) is None
    path.write_bytes(whole)
    assert CodeIndex.load(path, "1", DIMENSION) is not None


def test_a_save_that_fails_leaves_the_file_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = filled(cloud(20, 15), 0)
    index.save(tmp_path / "codes", "1")

    def full(handle: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(codes.os, "fsync", full)
    with pytest.raises(OSError):
        index.save(tmp_path / "codes", "2")
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes"]
    assert CodeIndex.load(tmp_path / "codes", "1", DIMENSION) is not None


@pytest.mark.parametrize("exact_rows", [300, *[100_000] * 20])
def test_searches_run_while_others_add_and_remove(narrow: None, exact_rows: int) -> None:
    """Owners under 200 stay; every search, whatever the moment, must find the query's own owner first."""
    vectors = cloud(3_000, 16)
    index = CodeIndex(DIMENSION, exact_rows=exact_rows)
    index.add(np.arange(200), np.arange(200), vectors[:200])
    done, wrong = threading.Event(), list[object]()

    def ask() -> None:
        turn = 0
        while not done.is_set():
            turn = (turn + 1) % 200
            got = search(index, vectors[turn], 5, lambda wanted: vectors[wanted])
            if got[0].owner != turn or [hit.cosine for hit in got] != sorted((h.cosine for h in got), reverse=True):
                wrong.append((turn, got))

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    for start in range(200, 3_000, 100):
        batch = np.arange(start, start + 100)
        index.add(batch, batch, vectors[batch])
        index.remove(batch[::2])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(index) == 200 + 2_800 // 2
