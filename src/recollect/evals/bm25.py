"""An independent BM25 to compare with: the package bm25s in Lucene's form with Snowball's English stems, as most
published figures are made. It shares nothing with the engine's own lexical leg.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from recollect.domain.errors import RecollectError

K1, B = 1.2, 0.75


class PlainBm25:
    """Texts in memory, an index of its own for each group (its namespace): a search sees nothing of the others."""

    def __init__(self, texts: Iterable[tuple[str, str, str]]) -> None:
        """texts: id, group and text of each."""
        self._package, stemmer = _packages()
        self._stemmer = stemmer("english")
        groups: dict[str, list[tuple[str, str]]] = {}
        for id, group, text in texts:
            groups.setdefault(group, []).append((id, text))
        self._ids = {group: [id for id, _ in members] for group, members in groups.items()}
        self._indexes = {group: self._index([text for _, text in members]) for group, members in groups.items()}

    def search(self, query: str, group: str, only: frozenset[str] | None, limit: int) -> list[str]:
        """Ids with a score above 0, best first, ties in the order of the texts."""
        (words,) = self._tokens([query])
        index = self._indexes.get(group)
        if not words or index is None:
            return []
        ids, scores = self._ids[group], np.asarray(index.get_scores(words), dtype=np.float64)
        best: list[int] = np.argsort(-scores, kind="stable").tolist()
        found = (ids[row] for row in best if scores[row] > 0 and (only is None or ids[row] in only))
        return [id for _, id in zip(range(limit), found)]

    def _index(self, texts: list[str]) -> Any:
        """None where no text has a word: the package cannot index nothing."""
        words = self._tokens(texts)
        if not any(words):
            return None
        index = self._package.BM25(method="lucene", k1=K1, b=B)
        index.index(words, show_progress=False)
        return index

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        return self._package.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )


def _packages() -> tuple[Any, Any]:
    try:
        return import_module("bm25s"), import_module("Stemmer").Stemmer
    except ImportError:
        raise RecollectError("the bm25 baseline needs bm25s", "pip install bm25s PyStemmer") from None
