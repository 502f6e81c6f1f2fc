"""What was written without the duplicate check, or brought as it was elsewhere, is not merged when it is embedded."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest
from contract_cases import ALL, note

from recollect.domain.changes import Put
from recollect.encoders.fake import FakeEmbedder
from recollect.importers import copy_store, export, import_jsonl
from recollect.ports import Matrix, Store, VectorIndex
from recollect.stores.memory import open_memory
from recollect.upkeep import consolidate, embed_backlog
from recollect.writing import Draft, WritePolicy, remember, remember_many, update

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
CHECKED = WritePolicy()
UNCHECKED = WritePolicy(dedupe=False)
ONE, OTHER = "SQLite WAL mode", "SQLite write-ahead logging"


class Alike(FakeEmbedder):
    """Every text means the same."""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows[:, 0] = 1.0
        return rows


def merged(store: Store, dimension: int = 64) -> list[tuple[str, str]]:
    report = embed_backlog(store, Alike(dimension), now=NOW, policy=CHECKED)
    return [(merge.kept, merge.merged) for merge in report.merged]


def by_one(store: Store) -> None:
    remember(store, Draft(OTHER), id="b", now=NOW, policy=UNCHECKED)


def by_many(store: Store) -> None:
    numbers = count()
    drafts = [Draft(OTHER), *(Draft(f"Item {n} is for {n * n} people") for n in range(10))]
    remember_many(store, drafts, new_id=lambda: f"b{next(numbers):02}", now=NOW, policy=UNCHECKED)


def by_import(store: Store) -> None:
    origin = open_memory()
    by_one(origin)
    stream = io.StringIO()
    export(origin, stream)
    stream.seek(0)
    import_jsonl(store, stream)


@pytest.mark.covers("budget.dedup")
@pytest.mark.parametrize("write", [by_one, by_many, by_import])
def test_what_was_written_apart_stays_apart(store: Store, write: Callable[[Store], None]) -> None:
    remember(store, Draft(ONE), id="a", now=NOW, policy=CHECKED)
    write(store)
    assert merged(store) == []
    assert merged(store, 32) == []  # another model


def test_what_is_checked_is_still_merged(store: Store) -> None:
    remember(store, Draft(ONE), id="a", now=NOW, policy=UNCHECKED)
    remember(store, Draft(OTHER), id="b", now=NOW, policy=CHECKED)
    assert merged(store) == [("a", "b")]


def test_embedding_anew_and_a_changed_text_merge_it_no_more_than_before(store: Store, vectors: VectorIndex) -> None:
    remember(store, Draft(ONE), id="a", now=NOW, policy=CHECKED)
    by_one(store)
    assert merged(store) == []
    vectors.forget(Alike().id)
    assert merged(store) == []
    update(store, "b", now=NOW, policy=CHECKED, content="SQLite's write-ahead logging")
    assert merged(store) == []


def test_a_copy_is_kept_as_it_is(store: Store) -> None:
    source = open_memory()
    remember(source, Draft(ONE), id="a", now=NOW, policy=CHECKED)
    by_one(source)
    copy_store(source, store)
    assert merged(store) == []


@pytest.mark.covers("budget.consolidate")
def test_consolidation_is_asked_for_and_merges_it(store: Store) -> None:
    remember(store, Draft(ONE), id="a", now=NOW, policy=CHECKED)
    remember(store, Draft(f"{ONE}."), id="b", now=NOW, policy=UNCHECKED)
    assert [merge.merged for merge in consolidate(store, now=NOW).merges] == ["a"]


def test_the_outbox_tells_who_is_to_be_kept_apart(store: Store, vectors: VectorIndex) -> None:
    many = [Put(note(f"m{n:02}"), apart=n % 2 == 1) for n in range(10)]
    store.records.write([*many, Put(note("x", sensitive=True), apart=True)])
    store.records.write([Put(note("one"), apart=True)])
    store.records.write([Put(note("m01", "another text"), expected_version=1)])
    store.records.write([Put(note("m02"), expected_version=1, apart=True)])  # nothing is put: it is there already
    store.records.write([Put(note("x"), expected_version=1)])
    told = {one.id for one in vectors.missing("model", 20) if one.apart}
    assert told == {"m01", "m03", "m05", "m07", "m09", "one", "x"}
    assert len(store.records.scan(ALL)) == 12 and store.care.check() == []
    store.care.check(repair=True)
    assert {one.id for one in vectors.missing("model", 20) if one.apart} == told
