"""A first look at many rows of codes: a third of their numbers tells which ones can be among the nearest.

Embeddings of one model vary mostly along some directions. A sketch holds the coordinates of a row along the foremost of
them, in 8 bits each and packed for the processor. What it leaves out spreads the product with a question by an amount
that is known beforehand; rows that stay behind the best by more than some times that need no closer look.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numkong
import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bytes: TypeAlias = NDArray[np.int8]

SHARE = 3  # one of so many dimensions is sketched
LEAST_SIZE = 16  # shorter ones are scanned as quickly whole
SLACK = 6.0  # spreads: few of a hundred rows pass, and of the nearest practically all
MOST_SPREAD = 0.4  # of what is left out, against the whole: where it is more, too many rows would pass
STEPS = 127  # of a coordinate on either side of zero


@dataclass(frozen=True, slots=True)
class Probe:
    """A question as sketches know it; `spread` is the standard deviation of what they leave out of a score."""

    codes: Bytes
    spread: float


@dataclass(frozen=True, slots=True)
class Projection:
    """The directions along which rows differ most, learned from a sample of them."""

    mean: Floats
    of_rows: Floats
    of_questions: Floats
    left_out: Floats

    @classmethod
    def learned(cls, sample: Floats) -> Projection | None:
        """From unit vectors; None where they are short, or vary alike in too many directions."""
        size = sample.shape[1] // SHARE
        if size < LEAST_SIZE:
            return None
        wide = sample.astype(np.float64)
        mean = wide.mean(axis=0)
        # The direction of the mean is the first: questions lie along it too, and rows differ in how far they do.
        first = mean / max(float(np.linalg.norm(mean)), 1e-30)
        centred = wide - mean
        aside = centred - np.outer(centred @ first, first)
        variances, directions = np.linalg.eigh(aside.T @ aside / len(wide))
        variances, directions = np.maximum(variances[::-1], 0), directions[:, ::-1]
        kept = np.column_stack([first, directions[:, : size - 1]])
        outside = variances[size - 1 :]
        if np.sqrt((outside**2).sum() / max((variances**2).sum(), 1e-30)) > MOST_SPREAD:
            return None
        # Rows and questions are coded in equal steps along all directions, so both are made alike wide along each.
        wideness = ((wide @ kept) ** 2).mean(axis=0) / np.maximum((centred @ kept).var(axis=0), 1e-12)
        stretch = np.maximum(wideness, 1e-12) ** 0.25
        return cls(
            mean.astype(np.float32),
            np.ascontiguousarray(kept * stretch, np.float32),
            np.ascontiguousarray(kept / stretch, np.float32),
            np.ascontiguousarray(directions[:, size - 1 :] * np.sqrt(outside), np.float32),
        )

    def probe(self, unit: Floats) -> Probe:
        codes, steps = _coded(np.matmul(unit[None], self.of_questions))
        return Probe(codes, float(np.linalg.norm(unit @ self.left_out) / steps[0]))

    def sketch(self, pieces: Iterable[Floats], owners: Ints) -> Sketch:
        """Of unit vectors, which come piece by piece; `owners` are those of all of them."""
        made = [_coded(np.matmul(piece - self.mean, self.of_rows)) for piece in pieces]
        codes, steps = (np.concatenate(column) for column in zip(*made))
        return Sketch(self, numkong.dots_pack(codes), steps, len(np.unique(owners)))


@dataclass(frozen=True, slots=True)
class Sketch:
    """The first rows of a segment."""

    projection: Projection
    packed: numkong.PackedMatrix
    steps: Floats
    owners: int

    def __len__(self) -> int:
        return len(self.steps)

    def scores(self, probe: Probe) -> Floats:
        """Cosines but for what is the same for all rows and for what is left out, in steps of the question."""
        products = np.asarray(numkong.dots_packed(probe.codes, self.packed))[0]
        return np.multiply(products, self.steps, dtype=np.float32)


def _coded(rows: Floats) -> tuple[Bytes, Floats]:
    """Every row in steps of its own, and how wide they are."""
    steps = np.maximum(np.abs(rows).max(axis=1), 1e-30) / STEPS
    return np.rint(rows / steps[:, None]).astype(np.int8), steps.astype(np.float32)
