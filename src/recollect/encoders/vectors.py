"""What every embedder's answer must be: the right number of finite vectors of one dimension and of length one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import ModelUnavailable
from recollect.ports import Matrix


def unit_rows(rows: NDArray[np.floating], count: int, dimension: int, model: str) -> Matrix:
    """The rows scaled to length one, or ModelUnavailable: a bad vector is never passed on."""
    hint = "check the model with `recollect models test`"
    if rows.shape != (count, dimension):
        raise ModelUnavailable(f"{model} gave an array of shape {rows.shape}, not {(count, dimension)}", hint)
    # In double precision: float32 squares overflow or vanish for values a remote model may well send.
    exact = rows.astype(np.float64)
    if not np.isfinite(exact).all():
        raise ModelUnavailable(f"{model} gave a vector that is not finite", hint)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 1e-12)).all():
        raise ModelUnavailable(f"{model} gave a vector of no length", hint)
    return np.ascontiguousarray(exact / lengths, dtype=np.float32)


def clean(text: str) -> str:
    """The text with lone surrogates replaced: tokenizers and JSON bodies take only what UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
