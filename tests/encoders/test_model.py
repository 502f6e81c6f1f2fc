"""The real default models: what they know, and that a text's vector depends on nothing but the text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from recollect.encoders import open_embedder, open_reranker
from recollect.encoders.catalogue import ARCTIC
from recollect.encoders.fetch import verify
from recollect.ports import Embedder, Reranker

pytestmark = pytest.mark.model

TEXTS = [
    "We deploy the API to the staging server every Friday afternoon.",
    "x",
    "Alice prefers tabs over spaces.",
    "The retry ladder gives up after three attempts. " * 12,
    "def embed(text: str) -> list[float]: ...",
    "",
    "Überraschung! 東京 🦄",
]


@pytest.fixture(scope="module")
def arctic(models_dir: Path) -> Embedder:
    embedder = open_embedder("arctic-embed-s", models_dir)
    assert embedder is not None
    return embedder


@pytest.fixture(scope="module")
def reranker(reranker_dir: Path) -> Reranker:
    opened = open_reranker("default", reranker_dir)
    assert opened is not None
    return opened


def test_the_fetched_files_are_the_pinned_ones(models_dir: Path, arctic: Embedder) -> None:
    assert verify(models_dir, ARCTIC)
    assert arctic.id.startswith("arctic-embed-s@f93ff2253206-")
    assert (arctic.dimension, arctic.max_tokens) == (384, 512)


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        (
            "how do we ship releases?",
            "Deployment happens from the main branch by a CI job.",
            "Bob's dog is called Rex.",
        ),
        (
            "what does she like to eat?",
            "Maria's favourite food is lasagna.",
            "The parser reads tokens from left to right.",
        ),
        ("which database do we use?", "All data lives in one SQLite file.", "The office closes at six."),
        ("car repair", "The automobile was fixed by the mechanic.", "The carpet was cleaned on Monday."),
    ],
)
def test_a_paraphrase_is_closer_than_something_unrelated(arctic: Embedder, query: str, right: str, wrong: str) -> None:
    near, far = arctic.embed_documents([right, wrong]) @ arctic.embed_query(query)
    assert near > far + 0.02


def test_vectors_have_length_one_and_the_right_shape(arctic: Embedder) -> None:
    vectors = arctic.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_text_alone_and_among_others_has_the_very_same_vector(arctic: Embedder) -> None:
    together = arctic.embed_documents(TEXTS)
    for text, vector in zip(TEXTS, together):
        np.testing.assert_array_equal(arctic.embed_documents([text])[0], vector)
    np.testing.assert_array_equal(arctic.embed_documents(TEXTS[::-1]), together[::-1])


def test_another_process_would_get_the_same_vectors(models_dir: Path, arctic: Embedder) -> None:
    fresh = open_embedder("default", models_dir)
    assert fresh is not None and fresh.id == arctic.id
    np.testing.assert_array_equal(fresh.embed_documents(TEXTS), arctic.embed_documents(TEXTS))
    np.testing.assert_array_equal(fresh.embed_query("same"), arctic.embed_query("same"))


def test_the_query_prefix_makes_a_query_differ_from_a_document(arctic: Embedder) -> None:
    text = "where is the staging server?"
    assert float(arctic.embed_query(text) @ arctic.embed_documents([text])[0]) < 0.999
    prefixed = arctic.embed_documents([ARCTIC.recipe.query_prefix + text])[0]
    np.testing.assert_array_equal(arctic.embed_query(text), prefixed)


def test_a_long_text_is_counted_whole_and_read_up_to_the_window(arctic: Embedder) -> None:
    long = "memory " * 2000
    assert arctic.count_tokens(long) == 2002
    np.testing.assert_array_equal(arctic.embed_documents([long])[0], arctic.embed_documents(["memory " * 510])[0])


def test_threads_get_the_same_vectors(arctic: Embedder) -> None:
    expected = [arctic.embed_documents([text])[0] for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: arctic.embed_documents([text])[0], TEXTS * 3))
    for number, vector in enumerate(found):
        np.testing.assert_array_equal(vector, expected[number % len(TEXTS)])


def test_the_reranker_puts_the_answer_first(reranker: Reranker) -> None:
    texts = ["Bob's dog is called Rex.", "All data lives in one SQLite file.", "The office closes at six."]
    scores = reranker.score("which database file do we use?", texts)
    assert len(scores) == 3 and max(scores) == scores[1]
    assert reranker.score("which database file do we use?", texts[::-1]) == scores[::-1]


def test_the_reranker_takes_odd_text(reranker: Reranker, arctic: Embedder) -> None:
    odd = ["", "{query} {text} {}", "\x00\ud800", "long " * 5000]
    assert len(reranker.score("{text}", odd)) == len(odd)
    assert np.isfinite(arctic.embed_documents(odd)).all()
