"""Static vectors: a text is the mean of its known tokens."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.catalogue import Recipe
from recollect.encoders.session import ModelFiles
from recollect.encoders.static import StaticEmbedder, read_table

from .conftest import TABLE, sha256, tiny_tokenizer


def safetensors(table: np.ndarray, kind: str = "F32") -> bytes:
    entry = {"dtype": kind, "shape": list(table.shape), "data_offsets": [0, table.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    return struct.pack("<Q", len(header)) + header + table.tobytes()


@pytest.fixture
def embedder(tmp_path: Path) -> StaticEmbedder:
    weights, tokenizer = safetensors(TABLE), tiny_tokenizer().encode()
    (tmp_path / "model.safetensors").write_bytes(weights)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer)
    paths = tmp_path / "model.safetensors", tmp_path / "tokenizer.json"
    return StaticEmbedder(
        ModelFiles("tiny", paths[0], sha256(weights), paths[1], sha256(tokenizer), Recipe(max_tokens=4)), 3
    )


def test_the_mean_is_over_known_tokens_without_special_ones(embedder: StaticEmbedder) -> None:
    vectors = embedder.embed_documents(["red blue", "red unheard blue", "unheard", ""])
    np.testing.assert_allclose(vectors[0], [0.6, 0.8, 0], atol=1e-6)
    np.testing.assert_array_equal(vectors[1], vectors[0])
    np.testing.assert_allclose(vectors[2:], np.full((2, 3), 3**-0.5), atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("red blue"), vectors[0])


def test_a_long_text_is_cut_to_the_window(embedder: StaticEmbedder) -> None:
    assert embedder.count_tokens("red " * 4 + "blue") == 5
    np.testing.assert_allclose(embedder.embed_query("red " * 4 + "blue"), [1, 0, 0], atol=1e-6)


def test_bad_vectors_are_refused(embedder: StaticEmbedder) -> None:
    with pytest.raises(ModelUnavailable, match="not finite"):
        embedder.embed_documents(["red", "bad"])


@pytest.mark.parametrize("content", [b"", b"12345678", safetensors(TABLE)[:-4], safetensors(TABLE, "F16")])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        read_table(tmp_path / "file", "tiny")
