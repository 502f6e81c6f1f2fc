"""Test doubles without a model: alike texts get alike vectors, because they share words and letter triples."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from recollect.encoders.vectors import unit_rows
from recollect.ports import Matrix, Vector


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


class FakeEmbedder:
    """Hashed features: each word counts one, each letter triple of a padded word a third. Same text, same vector."""

    def __init__(self, dimension: int = 64) -> None:
        self._dimension = dimension

    @property
    def id(self) -> str:
        return f"fake-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return 512

    def count_tokens(self, text: str) -> int:
        return len(_words(text))

    def embed_query(self, text: str) -> Vector:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self._dimension), dtype=np.float64)
        for row, text in zip(rows, texts):
            # A constant feature, so that a text without words has a vector as well.
            self._add(row, "", 0.01)
            for word in _words(text):
                self._add(row, word, 1.0)
                padded = f"${word}$"
                for start in range(len(padded) - 2):
                    self._add(row, "3" + padded[start : start + 3], 1 / 3)
        return unit_rows(rows, len(texts), self._dimension, self.id)

    def _add(self, row: np.ndarray[tuple[int], np.dtype[np.float64]], feature: str, weight: float) -> None:
        number = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        row[(number >> 1) % self._dimension] += weight if number & 1 else -weight


class FakeReranker:
    """The share of the query's words that a text has."""

    @property
    def id(self) -> str:
        return "fake-reranker"

    def score(self, query: str, texts: Sequence[str], budget_ms: float | None = None) -> list[float]:
        """One number per text; a budget of nothing gives nothing."""
        if budget_ms is not None and budget_ms <= 0:
            return []
        wanted = set(_words(query))
        return [len(wanted & set(_words(text))) / max(1, len(wanted)) for text in texts]
