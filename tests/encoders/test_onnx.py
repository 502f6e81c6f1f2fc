"""The ONNX embedder on tiny models whose vectors can be worked out by hand, and how a folder is read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders.folder import files_of_folder
from recollect.encoders.onnx import OnnxEmbedder
from recollect.encoders.onnxfile import GraphWriter
from recollect.encoders.querycache import QueryCache
from recollect.encoders.session import OnnxModel, cut
from recollect.encoders.vectors import unit_rows
from recollect.evals.bench import chosen_embedder
from recollect.settings import load

from .conftest import TABLE, WORDS, tiny_model, write_folder

Folder = Callable[..., Path]


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def rows(*words: str) -> np.ndarray:
    return TABLE[[WORDS.index(word) for word in words]]


def open_folder(folder: Path, **options: int) -> OnnxEmbedder:
    return OnnxEmbedder(files_of_folder(folder), **options)


def test_mean_pooling_counts_every_token_and_no_padding(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder())
    vectors = embedder.embed_documents(["red", "red blue green blue"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[0], unit(*rows("[CLS]", "red", "[SEP]").mean(axis=0)), atol=1e-6)
    expected = unit(*rows("[CLS]", "red", "blue", "green", "blue", "[SEP]").mean(axis=0))
    np.testing.assert_allclose(vectors[1], expected, atol=1e-6)


def test_words_that_the_model_has_whole_are_known_without_loading_it(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    embedder = open_folder(folder)
    (folder / "model.onnx").unlink()
    assert embedder.knows("blue") and not embedder.knows("bleu") and not embedder.knows("")


def test_cls_pooling_takes_the_first_token(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder('pooling = "cls"'))
    np.testing.assert_allclose(embedder.embed_documents(["blue"])[0], unit(5, 0, 1), atol=1e-6)


def test_queries_and_documents_get_their_own_prefix(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder('query_prefix = "query "\ndocument_prefix = "green "'))
    mean_query = rows("[CLS]", "query", "red", "[SEP]").mean(axis=0)
    mean_document = rows("[CLS]", "green", "red", "[SEP]").mean(axis=0)
    np.testing.assert_allclose(embedder.embed_query("red"), unit(*mean_query), atol=1e-6)
    np.testing.assert_allclose(embedder.embed_documents(["red"])[0], unit(*mean_document), atol=1e-6)
    assert embedder.count_tokens("red blue") == 5


def test_a_long_text_is_cut_to_the_window_and_keeps_its_end_token(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder("max_tokens = 8"))
    long = "red " * 50 + "blue"
    assert embedder.count_tokens(long) == 53 and embedder.max_tokens == 8
    expected = rows("[CLS]", *["red"] * 6, "[SEP]").mean(axis=0)
    np.testing.assert_allclose(embedder.embed_documents([long])[0], unit(*expected), atol=1e-6)


@given(st.integers(1, 40), st.integers(0, 3), st.integers(4, 20))
def test_cut_keeps_the_limit_the_beginning_and_the_closing_tokens(words: int, closing: int, limit: int) -> None:
    ids = list(range(words + closing))
    kept = cut(ids, [0] * words + [1] * closing, limit)
    assert len(kept) == min(limit, len(ids))
    assert kept[len(kept) - closing :] == ids[len(ids) - closing :]
    assert kept[: len(kept) - closing] == ids[: len(kept) - closing]


def test_batches_hold_like_lengths_and_stay_in_bounds(tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    original = OnnxModel.run

    def spy(self: OnnxModel, encodings: list[tuple[list[int], list[int]]]) -> object:
        seen.append([len(ids) for ids, _ in encodings])
        return original(self, encodings)

    monkeypatch.setattr(OnnxModel, "run", spy)
    embedder = open_folder(tiny_folder(), batch_tokens=24, workers=1)
    texts = ["red " * count for count in (1, 9, 2, 8, 1, 30, 2)]
    together = embedder.embed_documents(texts)
    assert seen == [[3, 3, 4, 4], [10, 11], [32]]
    alone = np.concatenate([embedder.embed_documents([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_workers_change_nothing(tiny_folder: Folder) -> None:
    texts = [f"red {'blue ' * (number % 7)}" for number in range(50)]
    folder = tiny_folder()
    one = open_folder(folder, workers=1, batch_tokens=10).embed_documents(texts)
    four = open_folder(folder, workers=4, batch_tokens=10).embed_documents(texts)
    np.testing.assert_array_equal(one, four)


def test_whoever_waits_gets_all_cores_and_the_background_half_of_them(
    tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    folder = str(tiny_folder())
    found = {}
    for background in (True, False):
        with recollect.open(":memory:", embedder=folder, background=background, home=tmp_path) as memory:
            assert isinstance(memory.embedder, OnnxEmbedder)
            found[background] = memory.embedder.workers
    assert found == {True: 3, False: 6}
    evaluated, _ = chosen_embedder(load(home=tmp_path), folder)
    assert isinstance(evaluated, OnnxEmbedder) and evaluated.workers == 6


def test_no_documents_give_no_rows(tiny_folder: Folder) -> None:
    assert open_folder(tiny_folder()).embed_documents([]).shape == (0, 3)


def test_a_vector_that_is_not_finite_is_refused(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder())
    with pytest.raises(ModelUnavailable, match="not finite"):
        embedder.embed_documents(["red", "bad"])
    with pytest.raises(ModelUnavailable, match="not finite"):
        embedder.embed_query("bad")


def test_a_vector_without_length_is_refused(tiny_folder: Folder) -> None:
    with pytest.raises(ModelUnavailable, match="no length"):
        open_folder(tiny_folder()).embed_query("nothing")


def test_a_wrong_dimension_is_refused(tiny_folder: Folder) -> None:
    embedder = OnnxEmbedder(files_of_folder(tiny_folder()), dimension=4)
    with pytest.raises(ModelUnavailable, match="shape"):
        embedder.embed_query("red")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_unit_rows_refuses_what_is_not_finite(number: float) -> None:
    with pytest.raises(ModelUnavailable):
        unit_rows(np.array([[1.0, number]]), 1, 2, "model")


def test_unit_rows_survives_extreme_scales() -> None:
    for scale in (1e-10, 1e30):
        vectors = unit_rows(np.array([[3.0, 4.0]]) * scale, 1, 2, "model")
        np.testing.assert_allclose(vectors, [[0.6, 0.8]], rtol=1e-6)


def test_lone_surrogates_and_empty_texts_get_a_vector(tiny_folder: Folder) -> None:
    embedder = open_folder(tiny_folder())
    vectors = embedder.embed_documents(["\ud800 red", "", "\x00", "🦄"])
    assert np.isfinite(vectors).all() and vectors.shape == (4, 3)


def test_a_file_changed_after_opening_is_refused(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    embedder = open_folder(folder)
    content = bytearray((folder / "model.onnx").read_bytes())
    content[-1] ^= 1
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="damaged") as caught:
        embedder.embed_query("red")
    assert "recollect models fetch" in caught.value.hint


def test_a_file_gone_after_opening_is_refused(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    embedder = open_folder(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json"):
        embedder.embed_query("red")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_files_that_are_no_model_are_refused(tiny_folder: Folder, name: str) -> None:
    folder = tiny_folder()
    (folder / name).write_bytes(b"neither")
    with pytest.raises(ModelUnavailable, match="cannot be"):
        open_folder(folder).embed_query("red")


def test_a_model_with_foreign_inputs_is_refused(tmp_path: Path) -> None:
    graph = GraphWriter()
    pixels = graph.input("pixels", ("batch", 3))
    folder = write_folder(tmp_path / "vision", graph.finish(graph.add("Cast", pixels, to=1), "y", ("batch", 3)))
    with pytest.raises(ModelUnavailable, match="pixels"):
        open_folder(folder).embed_query("red")


def test_a_model_that_pools_by_itself_is_taken_as_it_is(tmp_path: Path) -> None:
    graph = GraphWriter()
    ids = graph.input("input_ids", ("batch", "tokens"))
    rows_ = graph.add("Gather", graph.constant(TABLE), ids)
    summed = graph.add("ReduceMax", rows_, axes=(1,), keepdims=0)
    folder = write_folder(tmp_path / "pooled", graph.finish(summed, "sentence_embedding", ("batch", 3)))
    np.testing.assert_allclose(open_folder(folder).embed_query("blue"), unit(5, 4, 2), atol=1e-6)


def test_a_model_that_quantises_at_run_time_gets_each_text_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a batch the largest value of one text would set the scale of the others. Here only the name stands in the
    file (as its producer); that the vectors are then the same to the last bit is tested on the real model."""
    producer = b"DynamicQuantizeLinear"
    folder = write_folder(tmp_path / "quantised", tiny_model() + bytes([2 << 3 | 2, len(producer)]) + producer)
    embedder = open_folder(folder)
    sizes: list[int] = []
    original = OnnxModel.run
    monkeypatch.setattr(
        OnnxModel, "run", lambda self, encodings: sizes.append(len(encodings)) or original(self, encodings)
    )
    embedder.embed_documents(["red", "blue", "green green"])
    assert sizes == [1, 1, 1]


def test_the_id_names_model_content_and_recipe(tiny_folder: Folder) -> None:
    plain = files_of_folder(tiny_folder())
    assert plain.id.startswith(f"tiny@{plain.weights_sha256[:12]}-")
    again = files_of_folder(tiny_folder())
    other_weights = files_of_folder(tiny_folder(table=TABLE * 2))
    other_recipe = files_of_folder(tiny_folder('query_prefix = "q "'))
    renamed = files_of_folder(tiny_folder('name = "mine"'))
    assert again.id == plain.id and renamed.id.startswith("mine@")
    assert len({plain.id, other_weights.id, other_recipe.id, renamed.id}) == 4


def test_the_query_cache_answers_again_without_the_model(tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = open_folder(tiny_folder())
    first = embedder.embed_query("red")
    monkeypatch.setattr(OnnxModel, "run", None)
    assert embedder.embed_query("red") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 2.0


def test_the_query_cache_forgets_the_least_recently_used() -> None:
    cache = QueryCache(2)
    made: list[str] = []

    def ask(text: str) -> None:
        cache.vector(text, lambda: made.append(text) or np.zeros(1, dtype=np.float32))

    for text in ("a", "b", "a", "c", "a", "b"):
        ask(text)
    assert made == ["a", "b", "c", "b"]


def test_threads_share_one_load(tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = open_folder(tiny_folder())
    opened: list[int] = []
    original = OnnxModel._open
    monkeypatch.setattr(OnnxModel, "_open", lambda self: opened.append(1) or original(self))
    barrier = threading.Barrier(6)

    def ask(number: int) -> np.ndarray:
        barrier.wait()
        return embedder.embed_query(f"red {'blue ' * number}")

    with ThreadPoolExecutor(6) as pool:
        vectors = list(pool.map(ask, range(6)))
    assert opened == [1]
    for number, vector in enumerate(vectors):
        np.testing.assert_array_equal(vector, embedder.embed_documents([f"red {'blue ' * number}"])[0])


def test_a_sentence_transformers_folder_tells_its_recipe(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 128}))
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    recipe = files_of_folder(folder).recipe
    assert (recipe.pooling, recipe.max_tokens) == ("cls", 128)
    assert (recipe.query_prefix, recipe.document_prefix) == ("query: ", "passage: ")


def test_our_own_file_has_the_last_word(tiny_folder: Folder) -> None:
    folder = tiny_folder('pooling = "mean"\nmax_tokens = 64')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text("not json")
    assert files_of_folder(folder).recipe.pooling == "mean"
    assert files_of_folder(folder).recipe.max_tokens == 64


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ('poling = "cls"', "poling"),
        ('pooling = "max"', "max"),
        ("max_tokens = 4", "max_tokens"),
        ('max_tokens = "many"', "type int"),
        ("max_tokens = true", "type int"),
        ("pooling = ", "not valid TOML"),
        ('template = "only {query}"', "template"),
    ],
)
def test_a_wrong_recipe_says_what_is_wrong(tiny_folder: Folder, toml: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as caught:
        files_of_folder(tiny_folder(toml))
    assert caught.value.hint


def test_a_folder_without_the_files_says_which(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"model\.onnx") as caught:
        files_of_folder(tmp_path)
    assert "tokenizer.json" in caught.value.hint
