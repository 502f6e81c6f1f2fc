"""An independent BM25 to compare with: no stemming, no ladder, nothing shared with the engine's own lexical leg.

score = Σ idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / average)), idf = ln(1 + (N − n + 0.5) / (n + 0.5))
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.evals.measures import Values

# The usual list of Lucene, which most published BM25 figures rest on.
_COMMON = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOP_WORDS = frozenset(_COMMON.split())


class PlainBm25:
    """Texts in memory, each in a group (its namespace); a search sees its own group only, the statistics see all."""

    def __init__(self, texts: Iterable[tuple[str, str, str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        """texts: id, group and text of each."""
        self._ids: list[str] = []
        self._groups: dict[str, list[int]] = {}
        postings: dict[str, list[tuple[int, int]]] = {}
        lengths: list[int] = []
        for row, (id, group, text) in enumerate(texts):
            words = tokens(text)
            self._ids.append(id)
            self._groups.setdefault(group, []).append(row)
            lengths.append(len(words))
            for word, count in Counter(words).items():
                postings.setdefault(word, []).append((row, count))
        length = np.asarray(lengths, dtype=np.float64)
        average = max(float(length.mean()) if lengths else 0.0, 1e-9)
        self._weights: dict[str, tuple[NDArray[np.int64], Values]] = {}
        for word, entries in postings.items():
            rows = np.asarray([row for row, _ in entries])
            counts = np.asarray([count for _, count in entries], dtype=np.float64)
            idf = np.log1p((len(lengths) - len(entries) + 0.5) / (len(entries) + 0.5))
            norm = k1 * (1 - b + b * length[rows] / average)
            self._weights[word] = (rows, idf * counts * (k1 + 1) / (counts + norm))

    def search(self, query: str, group: str, only: frozenset[str] | None, limit: int) -> list[str]:
        """Ids with a score above 0, best first, ties in the order of the texts."""
        scores = np.zeros(len(self._ids))
        for word in tokens(query):
            if word in self._weights:
                rows, weights = self._weights[word]
                scores[rows] += weights
        allowed = np.asarray(self._groups.get(group, []), dtype=np.int64)
        best: Sequence[int] = allowed[np.argsort(-scores[allowed], kind="stable")].tolist()
        found = (self._ids[row] for row in best if scores[row] > 0)
        return [id for _, id in zip(range(limit), (one for one in found if only is None or one in only))]


def tokens(text: str) -> list[str]:
    """Lower-cased runs of letters and digits without the commonest words."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]
