"""BM25 over the candidates of a text index. Stores find, we order: every backend ranks with this one formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.ports import TextMatches

Idf = Literal["fts5", "lucene"]

# FTS5 floors the weight of terms that more than half of all memories hold.
FTS5_FLOOR = 1e-6


def scores(
    matches: TextMatches,
    weights: Sequence[float],
    k1: float = 1.2,
    b: float = 0.75,
    idf: Idf = "fts5",
    said: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Σ over units: idf · f(k1 + 1) / (f + k1(1 − b + b·length/average)), f = Σ column weight · count.

    With the defaults this is FTS5's own bm25(), sign flipped. `said` tells how often the question says each unit.
    """
    rarity = (matches.documents - matches.frequencies + 0.5) / (matches.frequencies + 0.5)
    if idf == "fts5":
        inverse = np.log(np.maximum(rarity, 1e-300))
        inverse = np.where(inverse <= 0, FTS5_FLOOR, inverse)
    else:
        inverse = np.log1p(rarity)
    frequency = matches.counts @ np.asarray(weights, dtype=np.float64)
    average = matches.average_length or 1.0
    damping = k1 * (1 - b + b * matches.lengths / average)
    inverse = inverse if said is None else inverse * said
    return (inverse * frequency * (k1 + 1) / (frequency + damping[:, None])).sum(axis=1)
