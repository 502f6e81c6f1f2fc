"""The test doubles are honest: deterministic, and alike texts are alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.encoders.fake import FakeEmbedder, FakeReranker


def test_texts_that_share_words_or_stems_are_closer() -> None:
    embedder = FakeEmbedder(256)
    query = embedder.embed_query("deploying the database")
    same, stem, other = embedder.embed_documents(["the database deploying", "deployed databases", "Alice likes cake"])
    assert query @ same > 0.99 and query @ stem > query @ other + 0.1


@given(st.text(max_size=60), st.integers(2, 300))
def test_any_text_has_a_unit_vector_that_never_changes(text: str, dimension: int) -> None:
    embedder = FakeEmbedder(dimension)
    vector = embedder.embed_query(text)
    assert vector.shape == (dimension,) and vector.dtype == np.float32
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5
    np.testing.assert_array_equal(vector, FakeEmbedder(dimension).embed_documents(["other", text])[1])


def test_the_id_names_the_double_and_its_dimension() -> None:
    assert FakeEmbedder().id == "fake-64" and FakeEmbedder(8).id == "fake-8"
    assert FakeEmbedder(8).dimension == 8 and FakeEmbedder().embed_documents([]).shape == (0, 64)


def test_the_known_vector_of_a_known_text() -> None:
    """Pinned: golden rankings of other suites stand on it."""
    np.testing.assert_allclose(FakeEmbedder(4).embed_query("red"), [0, 0.8000455, -0.2746823, -0.5333637], atol=1e-6)


def test_the_reranker_counts_the_query_words() -> None:
    reranker = FakeReranker()
    assert reranker.score("red blue", ["Red!", "blue red", "green"]) == [0.5, 1.0, 0.0]
    assert reranker.score("", ["red"]) == [0.0]
    assert reranker.score("red", ["red"], budget_ms=0) == []
    assert reranker.id == "fake-reranker"
