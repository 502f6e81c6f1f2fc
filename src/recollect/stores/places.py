"""Where a vector stands: model, row and passage in one number, so that the vectors of a memory lie together."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.stores.refusals import MAX_PASSAGES, PASSAGE_BITS

ROW_BITS = 38
ROW_MASK = (1 << ROW_BITS) - 1

Places = TypeVar("Places", int, NDArray[np.int64])


def place(model: int, row: int, passage: int = 0) -> int:
    """The place of one passage's vector."""
    return (model << (ROW_BITS + PASSAGE_BITS)) | (row << PASSAGE_BITS) | passage


def row_of(places: Places) -> Places:
    """Whose vector it is."""
    return (places >> PASSAGE_BITS) & ROW_MASK


def model_of(place: int) -> int:
    """Who made it."""
    return place >> (ROW_BITS + PASSAGE_BITS)


def of_memory(model: int, row: int) -> tuple[int, int]:
    """The first and the last place of a memory's vectors."""
    return place(model, row), place(model, row, MAX_PASSAGES - 1)


def of_model(model: int) -> tuple[int, int]:
    """The first and the last place of a model's vectors."""
    return place(model, 0), place(model, ROW_MASK, MAX_PASSAGES - 1)
