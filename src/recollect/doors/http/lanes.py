"""Where blocking work runs: a few threads, a short queue, a deadline. What does not fit is told so at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from recollect.doors.http.problems import Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the daemon takes on at once. The slow lane is for what waits for a model or reads the whole store."""

    body_bytes: int = 8 * 2**20
    body_seconds: float = 20.0
    all_bodies_bytes: int = 48 * 2**20
    refused_bytes: int = 64 * 2**20
    refused_seconds: float = 5.0
    header_seconds: float = 15.0
    connections: int = 512
    quick_threads: int = 16
    quick_waiting: int = 64
    quick_seconds: float = 20.0
    slow_threads: int = 3
    slow_waiting: int = 6
    slow_seconds: float = 150.0
    streams: int = 32


class Lane:
    """Some threads and a bounded queue before them. A place is taken until the thread is really done with it."""

    def __init__(self, name: str, threads: int, waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"recollect-{name}")
        self._places = threads + waiting
        self._seconds = seconds
        self.busy = 0

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the work, or its error. 429 when the queue is full, 503 when the time is up.

        Work that was not begun by then never is; work that was begun keeps its thread and its place until it ends.
        """
        if self.busy >= self._places:
            raise Problem(429, "too-many-requests", "too many requests are waiting", "try again shortly")
        loop = asyncio.get_running_loop()
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            raise Problem(503, "stopping", "the daemon is stopping", "try again when it is back") from None
        self.busy += 1
        future.add_done_callback(lambda _: _tell(loop, self._leave))
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if future.done() and not future.cancelled():
                raise
            raise Problem(503, "timeout", "the work took longer than it may", "try again, or ask for less") from None

    def _leave(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """No more work; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> None:
    """From any thread; a loop that has ended needs not be told."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
