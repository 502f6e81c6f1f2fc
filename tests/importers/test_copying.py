"""copy: nothing is lost between engines, an interrupted copy goes on, and a store in use is left alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.domain.changes import AddLink, Erase, Put, SetSetting
from recollect.domain.errors import Conflict, Corrupt
from recollect.domain.memory import Link, Memory, Scope, content_hash
from recollect.domain.question import Filter
from recollect.importers import copy_store, copying
from recollect.importers.copying import MARK
from recollect.ports import Embedded, Store
from recollect.stores.memory import open_memory
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.sqlite import open_sqlite
from recollect.upkeep import consolidate
from tests.postgres_server import shared_server

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    stores: list[Store] = []

    def opener(name: str) -> Store:
        if name.startswith("postgres"):
            stores.append(open_postgres(shared_server().kept(str(tmp_path / name))))
        else:
            stores.append(open_memory() if name == "memory" else open_sqlite(tmp_path / f"{name}.db"))
        return stores[-1]

    yield opener
    for store in stores:
        store.close()
    if shared_server.cache_info().currsize:
        shared_server().end_of_test()


ROUTES = [
    *(("memory", "one"), ("one", "memory"), ("one", "two")),
    *(
        pytest.param(route, marks=pytest.mark.postgres)
        for route in (("one", "postgres"), ("postgres", "one"), ("postgres", "postgres2"))
    ),
]


def memory(number: int, **fields: object) -> Memory:
    given = {
        "type": ("fact", "episode")[number % 2],
        "tags": ("a", "b")[: number % 3],
        "scope": Scope(("default", "tenant")[number % 2], f"p{number % 3}", None),
        "key": f"k{number}" if number % 4 == 0 else None,
        "created_at": START + timedelta(minutes=number),
        "accessed_at": START + timedelta(days=number),
        "access_count": number,
        "sensitive": number % 7 == 6,
        "metadata": {"n": [number, {"deep": None}]} if number % 2 else {},
        "version": 1 + number % 5,
        **fields,
    }
    return Memory(f"m{number:03}", f"text {number} ünïcode", **given)  # type: ignore[arg-type]


def fill(store: Store, count: int = 40) -> None:
    """A store with everything in it: two tenants, links, vectors of two models, tombstones, settings."""
    memories = [memory(number) for number in range(count)]
    store.records.write([Put(one) for one in memories])
    store.records.write([AddLink(Link(f"m{n:03}", "see-also", f"m{n + 2:03}", START)) for n in range(0, count - 2, 3)])
    assert store.vectors is not None
    rng = np.random.default_rng(3)
    for model, dimension in (("small", 4), ("large", 8)):
        entries = [
            Embedded(
                one.id,
                content_hash(one.content),
                rng.normal(size=(1 + n % 2, dimension)).astype(np.float32),
                ((0, 4), (3, 9)) if n % 2 else (),
            )
            for n, one in enumerate(memories)
        ]
        store.vectors.put(model, entries)
    twin = memory(900, scope=Scope(), key=None)
    store.records.write(
        [Put(twin), Put(Memory("twin", twin.content)), Erase(twin.id), Erase("m001"), SetSetting("weight", 0.25)]
    )


def contents(store: Store) -> dict[str, object]:
    """All that can be read of a store through its ports."""
    namespaces = sorted(store.care.stats().namespaces)
    memories = [one for name in namespaces for one in store.records.scan(Filter(name), "id", 1000)]
    ids = [one.id for one in memories]
    assert store.vectors is not None and store.links is not None
    vectors = {
        (model, one.id): (one.content_hash, one.passages, None if one.vectors is None else one.vectors.tolist())
        for model in store.vectors.models()
        for one in store.vectors.stored(model, ids)
    }
    waiting = sorted(one.id for one in store.vectors.missing("small", 1000))
    graves, settings = store.care.graves(), store.care.settings()
    return {
        "memories": memories, "links": store.links.links(ids), "vectors": vectors, "waiting": waiting,
        "graves": graves, "settings": settings,
    }  # fmt: skip


@pytest.mark.parametrize("names", ROUTES, ids="-to-".join)
def test_everything_arrives(names: tuple[str, str], opened: Callable[[str], Store]) -> None:
    source, target = (opened(name) for name in names)
    fill(source)
    report = copy_store(source, target)
    assert contents(target) == contents(source)
    assert (report.memories, report.tombstones) == (40, 2) and report.links and report.vectors
    assert target.care.check() == []


def test_an_empty_store_is_copied_too(opened: Callable[[str], Store]) -> None:
    source, target = opened("one"), opened("two")
    assert copy_store(source, target).memories == 0
    assert contents(target) == contents(source)


@pytest.mark.parametrize("seed", range(8))
def test_an_interrupted_copy_goes_on(
    seed: int, opened: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.importers.copying.PAGE", 7)
    source, target = opened("one"), opened("two")
    fill(source)
    steps = random.Random(seed).randrange(1, 34)

    def stop(*_: object) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, progress=stop)
    source.records.write([Put(memory(500)), Erase("m004"), Put(memory(3), expected_version=memory(3).version)])
    copy_store(source, target)
    assert contents(target) == contents(source)


@pytest.mark.parametrize("page", [2, 100])
def test_an_interrupted_copy_goes_on_where_keys_have_changed_hands(
    page: int, opened: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.importers.copying.PAGE", page)
    source, target = opened("one"), opened("two")
    names = ("a", "b", "c", "d", "e", "f")
    source.records.write([Put(Memory(name, f"text of {name}", key=f"key of {name}")) for name in names])

    def stop(step: str, *_: object) -> None:
        if step == "links":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, progress=stop)
    source.records.write([Put(Memory("f", "text of f"), expected_version=1)])  # without a key
    source.records.write([Put(Memory("a", "text of a", key="key of f"), expected_version=1)])
    source.records.write([Erase("d", tombstone=False), Put(Memory("b2", "another", key="key of d"))])
    copy_store(source, target)
    assert contents(target) == contents(source)


@pytest.mark.parametrize("dimension", [4, 6])
@pytest.mark.parametrize("target_name", ["two", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_an_interrupted_copy_goes_on_where_vectors_were_dropped_and_made_anew(
    target_name: str, dimension: int, opened: Callable[[str], Store]
) -> None:
    source, target = opened("one"), opened(target_name)
    fill(source)

    def stop(step: str, *_: object) -> None:
        if step == "check":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, progress=stop)
    assert source.vectors is not None
    source.vectors.forget("large")
    source.vectors.forget("small")
    rows = np.ones((1, dimension), dtype=np.float32)
    source.vectors.put("small", [Embedded("m002", content_hash(memory(2).content), rows)])
    report = copy_store(source, target)
    assert contents(target) == contents(source)
    assert report.vectors == 1


def test_a_second_run_writes_only_what_is_missing(
    opened: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = opened("one"), opened("two")
    fill(source)

    def refuse(*_: object) -> None:
        raise Corrupt("stopped before the end")

    with monkeypatch.context() as patch:
        patch.setattr("recollect.importers.copying._verify", refuse)
        with pytest.raises(Corrupt):
            copy_store(source, target)
    assert target.care.settings()[MARK]
    assert copy_store(source, target).written == 0
    assert MARK not in target.care.settings()


def test_how_far_a_store_was_consolidated_is_not_copied(opened: Callable[[str], Store]) -> None:
    source, target = opened("one"), opened("two")
    fill(source)
    consolidate(source, now=START, limit=3)
    copy_store(source, target)
    assert target.care.settings() == {"weight": 0.25} != source.care.settings()


def test_a_store_in_use_is_left_alone(opened: Callable[[str], Store]) -> None:
    source, target = opened("one"), opened("two")
    fill(source)
    target.records.write([Put(Memory("own", "a life of its own"))])
    before = contents(target)
    with pytest.raises(Conflict, match="not empty"):
        copy_store(source, target)
    assert contents(target) == before
    finished = opened("three")
    copy_store(source, finished)
    with pytest.raises(Conflict, match="not empty"):
        copy_store(source, finished)


def test_another_source_may_not_go_on_with_a_half_copy(opened: Callable[[str], Store]) -> None:
    source, other, target = opened("one"), opened("two"), opened("three")
    target.records.write([SetSetting(MARK, "of another store")])
    for store in (source, other):
        with pytest.raises(Conflict):
            copy_store(store, target)


@pytest.mark.parametrize("what", ["memory", "link", "vector", "setting", "more"])
def test_the_check_at_the_end_finds_every_difference(
    what: str, opened: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = opened("one"), opened("two")
    fill(source)

    def disturb() -> None:
        one = source.records.fetch(["m002"])[0]
        assert source.vectors is not None
        if what == "memory":
            source.records.write([Put(one, expected_version=one.version)])
        elif what == "link":
            source.records.write([AddLink(Link("m002", "part-of", "m004", START))])
        elif what == "vector":
            row = np.ones((1, 4), dtype=np.float32)
            source.vectors.put("small", [Embedded(one.id, content_hash(one.content), row)])
        elif what == "setting":
            source.records.write([SetSetting("weight", 0.75)])
        else:
            source.records.write([Put(Memory("new", "came meanwhile"))])

    verify = copying._verify  # pyright: ignore[reportPrivateUsage]

    def too_late(*given: Any) -> None:
        disturb()
        verify(*given)

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_verify", too_late)
        with pytest.raises(Corrupt, match="not equal"):
            copy_store(source, target)
    copy_store(source, target)
    assert contents(target) == contents(source)
