"""Stores of data sets: built once by the normal path, found again, never changed by measuring."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

import recollect
from recollect.adapters import open_store
from recollect.domain.errors import ModelUnavailable
from recollect.domain.question import Filter
from recollect.encoders.fake import FakeEmbedder
from recollect.evals import building, datasets, sources
from recollect.evals.asking import ask_all
from recollect.evals.judging import Plan
from recollect.evals.running import evaluate
from recollect.evals.sources import Source
from recollect.evals.systems import System, system
from recollect.evals.vectors import RememberingEmbedder
from recollect.ports import Matrix, Vector
from recollect.settings import Settings
from tests.evals.conftest import write_set
from tests.rights import bound_by_rights


class Counting(FakeEmbedder):
    """Counts the texts it is shown; the vector of a question is not that of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.documents = 0
        self.queries = 0

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.documents += len(texts)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        self.queries += 1
        return -FakeEmbedder().embed_documents([text])[0]


@pytest.mark.covers("prior.eval")
def test_a_store_is_built_once_and_a_rebuilt_one_embeds_nothing_again(
    tiny: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, model, cache = datasets.load(tiny), Counting(), tmp_path / "cache"
    first, places = building.prepared(dataset, model, settings, cache)
    assert model.documents == 6 and first.is_file()
    made = first.stat().st_mtime_ns
    assert building.prepared(dataset, model, settings, cache) == (first, places)
    assert model.documents == 6 and first.stat().st_mtime_ns == made
    again, _ = building.prepared(dataset, model, settings, cache, rebuild=True)
    assert again == first and again.stat().st_mtime_ns != made and model.documents == 6
    monkeypatch.setattr(building, "code_hash", lambda: "f" * 64)
    other, _ = building.prepared(dataset, model, settings, cache)
    assert other != first and model.documents == 6


def test_another_corpus_or_embedder_gets_another_store(tiny: Path, settings: Settings, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first, _ = building.prepared(datasets.load(tiny), FakeEmbedder(64), settings, cache)
    second, _ = building.prepared(datasets.load(tiny), FakeEmbedder(32), settings, cache)
    with (tiny / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "a7", "text": "One more."}\n')
    third, _ = building.prepared(datasets.load(tiny), FakeEmbedder(64), settings, cache)
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("name", ["a" * 240, "two\nlines", "[ab] set*"])
def test_a_folder_may_be_called_anything(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    dataset, cache = datasets.load(write_set(tmp_path / name)), tmp_path / "cache"
    for number in range(building.KEPT_PER_SET + 1):
        monkeypatch.setattr(building, "code_hash", lambda number=number: str(number) * 64)
        building.prepared(dataset, None, settings, cache)
    assert len(list((cache / "stores").iterdir())) == building.KEPT_PER_SET


def test_old_stores_of_a_set_do_not_pile_up(
    tiny: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, cache = datasets.load(tiny), tmp_path / "cache"
    for number in range(building.KEPT_PER_SET + 2):
        monkeypatch.setattr(building, "code_hash", lambda number=number: f"{number:064d}"[::-1])
        newest, _ = building.prepared(dataset, FakeEmbedder(), settings, cache)
    left = list((cache / "stores").iterdir())
    assert len(left) == building.KEPT_PER_SET and newest.parent in left


@pytest.mark.parametrize("file", ["evals/datasets.py", "evals/moments.py", "writing/drafts.py"])
def test_a_store_belongs_to_the_code_that_reads_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Documents and memories are matched by their place in what was read: both must come from the same code."""
    copy = tmp_path / "recollect"
    shutil.copytree(Path(recollect.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(recollect, "__file__", str(copy / "__init__.py"))
    plain = building.code_hash.__wrapped__
    before = plain()
    (copy / file).write_text("changed = True\n")
    assert plain() != before


def test_what_a_killed_run_was_building_goes_after_a_day(tiny: Path, settings: Settings, tmp_path: Path) -> None:
    old, young, alive = (tmp_path / "stores" / f".building-{name}" / "made" for name in ("old", "young", "alive"))
    for made in (old, young, alive):
        made.mkdir(parents=True)
        (made / "store.db").touch()
    for path in (old / "store.db", old, old.parent, alive, alive.parent):
        os.utime(path, (0, 0))
    building.prepared(datasets.load(tiny), None, settings, tmp_path)
    assert not old.parent.exists() and young.exists() and alive.exists()


@pytest.mark.parametrize("lost", [Path.unlink, lambda store: store.write_bytes(b"")], ids=["gone", "empty"])
def test_a_store_that_lost_its_file_is_built_again(
    tiny: Path, settings: Settings, tmp_path: Path, lost: Callable[[Path], object]
) -> None:
    dataset = datasets.load(tiny)
    store, _ = building.prepared(dataset, None, settings, tmp_path / "cache")
    lost(store)
    assert building.prepared(dataset, None, settings, tmp_path / "cache")[0] == store
    open_store(str(store), read_only=True).close()


def test_everything_is_remembered_in_order_and_nothing_merged(tmp_path: Path, settings: Settings) -> None:
    corpus = [
        {"_id": "b", "text": "Yes, I agree with you.", "metadata": {"created_at": "2024-02-01"}},
        {"_id": "a", "text": "Yes, I agree with you.", "metadata": {"created_at": "2024-01-01"}},
        {"_id": "c", "text": "my key is sk-ant-REDACTED"},
    ]
    dataset = datasets.load(write_set(tmp_path / "set", corpus, [{"_id": "q", "text": "x"}], [("q", "a", 1)]))
    path, places = building.prepared(dataset, FakeEmbedder(), settings, tmp_path / "cache")
    store = open_store(str(path), read_only=True)
    try:
        found = store.records.scan(Filter(), order="id")
    finally:
        store.close()
    assert places == {"c": found[0].id, "a": found[1].id, "b": found[2].id}
    assert found[0].content == "my key is sk-ant-REDACTED"
    assert found[1].created_at < found[2].created_at


def test_a_model_that_fails_leaves_no_store_behind(tiny: Path, settings: Settings, tmp_path: Path) -> None:
    class Broken(FakeEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Matrix:
            raise ModelUnavailable("down")

    with pytest.raises(ModelUnavailable, match="could not be embedded"):
        building.prepared(datasets.load(tiny), Broken(), settings, tmp_path / "cache")
    assert list((tmp_path / "cache" / "stores").iterdir()) == []


def test_measuring_changes_nothing(tiny: Path, source: Source) -> None:
    """What was surfaced is not recorded: the next run must measure the same store."""
    with sources.public(tiny, source) as bench:
        before = bench.engine.store.records.scan(Filter(), order="id")
        answers = ask_all(bench, System("two-stage", "two-stage"), bench.of("counted"), 10, as_shipped=True)
        assert all(one.ranking for one in answers.values())
    with sources.public(tiny, source) as bench:
        assert bench.engine.store.records.scan(Filter(), order="id") == before


def test_vectors_are_remembered_by_kind_and_text(tmp_path: Path) -> None:
    model, file = Counting(), tmp_path / "vectors.db"
    first = RememberingEmbedder(model, file)
    query = first.embed_query("one")
    rows = first.embed_documents(["one", "two", "one"])
    assert (rows[0] == -query).all() and (rows[0] == rows[2]).all()
    first.close()
    second = RememberingEmbedder(model, file)
    assert (second.embed_documents(["two", "three", "one"])[[2, 0]] == rows[[0, 1]]).all()
    assert (second.embed_query("one") == query).all() and (second.embed_query("one") == query).all()
    second.close()
    assert (model.documents, model.queries) == (3, 1)
    assert (first.embedded, second.embedded) == (3, 1)
    assert len(second.query_ms) == 1 and second.query_ms == first.query_ms
    assert b"three" not in file.read_bytes()


def remembered(file: Path, texts: Sequence[str]) -> int:
    """How many of the texts the model had to read, asked as questions and as documents."""
    model = Counting()
    embedder = RememberingEmbedder(model, file)
    rows = embedder.embed_documents(texts)
    assert all((embedder.embed_query(text) == -row).all() for text, row in zip(texts, rows, strict=True))
    embedder.close()
    return model.documents + model.queries


def garbled(file: Path, start: int) -> None:
    file.write_bytes(file.read_bytes()[:start] + b"\xff" * (file.stat().st_size - start))


def shortened(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("UPDATE vectors SET vector = substr(vector, 1, 40)")
    database.close()


def with_another_table(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE vectors (something)")
    database.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: garbled(file, 0),
        lambda file: garbled(file, 4096),
        lambda file: file.write_bytes(file.read_bytes()[:5000]),
        lambda file: file.write_bytes(b""),
        shortened,
        with_another_table,
    ],
    ids=["no database", "holes", "cut off", "empty", "short vectors", "another table"],
)
def test_a_damaged_memory_of_vectors_is_begun_anew(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    file, texts = tmp_path / "vectors.db", [f"text {number}" for number in range(80)]
    assert (remembered(file, texts), remembered(file, texts)) == (160, 0)
    damage(file)
    assert (remembered(file, texts), remembered(file, texts)) == (160, 0)


def test_a_set_is_measured_from_a_cache_that_may_only_be_read(tiny: Path, source: Source) -> None:
    def recall() -> float:
        with sources.public(tiny, source) as bench:
            return evaluate(bench, system("balanced", {}, None), Plan()).measures["recall@5"].mean

    found = recall()
    every = [source.cache, *source.cache.rglob("*")]
    for vectors in (source.cache / "vectors").iterdir():
        vectors.unlink()
    for place in every:
        if place.exists():
            place.chmod(0o500 if place.is_dir() else 0o400)
    try:
        with bound_by_rights():
            assert recall() == found
        assert list((source.cache / "vectors").iterdir()) == []
    finally:
        for place in every:
            if place.exists():
                place.chmod(0o700)


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    embedder = RememberingEmbedder(FakeEmbedder(), None)
    assert (embedder.embed_query("secret") == embedder.embed_query("secret")).all()
    embedder.close()
    assert embedder.embedded == 1 and list(tmp_path.iterdir()) == []


def test_the_cache_stands_in_the_home_that_was_set_or_in_the_users_cache_folder(settings: Settings) -> None:
    assert building.cache_folder(settings) == settings.home / "evals"
    usual = replace(settings, home=Path(platformdirs.user_data_dir("recollect", appauthor=False)))
    assert building.cache_folder(usual) == Path(platformdirs.user_cache_dir("recollect", appauthor=False)) / "evals"
