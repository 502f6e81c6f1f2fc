"""How far chance goes: bootstrap over questions, 10,000 resamples, fixed seed, 95 % percentile intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.evals.measures import Values

RESAMPLES = 10_000
SEED = 20_251
CELLS_AT_ONCE = 2_000_000
TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """B minus A on the same questions; the interval leaves out 0 when chance does not explain it."""

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int

    @property
    def clear(self) -> bool:
        return self.low > 0 or self.high < 0


def estimates(values: Values, seed: int = SEED, resamples: int = RESAMPLES) -> list[Estimate]:
    """The mean of each column and its interval; all columns are resampled together."""
    if not len(values):
        return []
    low, high = np.percentile(resampled_means(values, seed, resamples), (2.5, 97.5), axis=0)
    columns = zip(values.mean(axis=0), low, high, strict=True)
    return [Estimate(float(mean), float(lower), float(upper)) for mean, lower, upper in columns]


def differences(first: Values, second: Values, seed: int = SEED, resamples: int = RESAMPLES) -> list[Difference]:
    """Paired: each resample draws questions, and with each question both systems' values."""
    gaps = second - first
    found: list[Difference] = []
    for column, one in enumerate(estimates(gaps, seed, resamples)):
        gap = gaps[:, column]
        wins, losses = int((gap > TIE).sum()), int((gap < -TIE).sum())
        found.append(Difference(one.mean, one.low, one.high, wins, len(gap) - wins - losses, losses))
    return found


def resampled_means(values: Values, seed: int, resamples: int) -> Values:
    """The column means of each resample, drawn with replacement: one row per resample."""
    count = len(values)
    chance = np.random.default_rng(seed)
    chunk = max(1, CELLS_AT_ONCE // count)
    means: list[Values] = []
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        drawn = chance.integers(0, count, (size, count))
        # How often each question was drawn turns the means into one matrix product.
        places = drawn + np.arange(size)[:, None] * count
        times = np.bincount(places.ravel(), minlength=size * count).reshape(size, count)
        means.append(times @ values / count)
    return np.concatenate(means)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 by linear interpolation; nothing for nothing."""
    if not values:
        return {}
    points = np.percentile(np.asarray(values, dtype=np.float64), (50, 95, 99))
    return {name: round(float(value), 3) for name, value in zip(("p50", "p95", "p99"), points, strict=True)}
