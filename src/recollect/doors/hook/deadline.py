"""How much time is left. The budget counts from the start of the process, not from the first line of our code."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET_SECONDS = 0.240
MOST_BUDGET_SECONDS = 30.0
# Kept back for what comes after the daemon: the last recollection, rendering, printing, leaving.
RESERVE_SECONDS = 0.045
# Where the system does not tell when the process started.
USUAL_START_SECONDS = 0.060


class Deadline:
    """A moment after which nothing is waited for any more."""

    __slots__ = ("_clock", "_end")

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def left(self) -> float:
        """Seconds until then; never negative."""
        return max(0.0, self._end - self._clock())


def seconds_since_start() -> float:
    """How long this process has been running, to about ten milliseconds."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 (pathlib costs milliseconds)
            # The name of the program may hold anything; the fields behind it are numbers.
            fields = file.read().rpartition(b")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return USUAL_START_SECONDS
    return age if 0 <= age < 60 else USUAL_START_SECONDS


def asking_time(since_start: float, budget_ms: str = "") -> float:
    """How long the daemon may take, given what the start has cost already. Another budget may be set, in reason."""
    budget = int(budget_ms) / 1000 if budget_ms.isdecimal() else BUDGET_SECONDS
    return max(0.0, min(budget, MOST_BUDGET_SECONDS) - RESERVE_SECONDS - since_start)
