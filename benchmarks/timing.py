"""Wall and CPU time of repeated calls. On a machine that others use too, CPU time and ratios are what counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Times:
    """Milliseconds of one call: wall percentiles, and the CPU time of all threads of the process."""

    calls: int
    p50: float
    p95: float
    p99: float
    cpu_p50: float
    cpu_mean: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def summary(wall: Sequence[float], cpu: Sequence[float]) -> Times:
    """Percentiles of seconds, in milliseconds."""
    p50, p95, p99 = (round(float(np.percentile(wall, share)) * 1000, 3) for share in (50, 95, 99))
    return Times(len(wall), p50, p95, p99, round(float(np.median(cpu)) * 1000, 3), round(float(np.mean(cpu)) * 1000, 3))


def each(call: Callable[[T], R], arguments: Iterable[T]) -> tuple[Times, list[R]]:
    """Call with one argument after the other."""
    wall: list[float] = []
    cpu: list[float] = []
    answers: list[R] = []
    for argument in arguments:
        cpu_before, before = time.process_time(), time.perf_counter()
        answers.append(call(argument))
        wall.append(time.perf_counter() - before)
        cpu.append(time.process_time() - cpu_before)
    return summary(wall, cpu), answers


@dataclass
class Once:
    """One long piece of work: `with Once() as took: …`, then its seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> Once:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
