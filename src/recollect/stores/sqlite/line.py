"""The line of callers before the writer, which sleeps until enough of them are in it.

To look again and again would take the interpreter away from the very callers that it waits for.
"""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

One = TypeVar("One")
NEVER = 1 << 62


def held() -> threading.Lock:
    """A lock that is taken: the lightest thing to wait for."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Line(Generic[One]):
    """First come, first served. Any thread may join, one takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here: list[One] = []
        self._enough = NEVER
        """With so many the bell is rung, once."""
        self._bell = held()
        self._ended = False

    def __len__(self) -> int:
        return len(self._here)

    def join(self, one: One) -> None:
        """Stand behind the others."""
        with self._lock:
            self._here.append(one)
            if len(self._here) >= self._enough:
                self._ring()

    def wait(self, count: int, seconds: float = -1) -> None:
        """Until so many are here, or the line has ended, or the time is over (-1: never)."""
        with self._lock:
            if len(self._here) >= count or self._ended:
                return
            self._enough = count
        if self._bell.acquire(timeout=seconds):
            return
        with self._lock:
            if self._enough == NEVER:  # rung when the time was over already
                self._bell.acquire()
            self._enough = NEVER

    def take(self, most: int) -> list[One]:
        """The first of the line."""
        with self._lock:
            taken, self._here = self._here[:most], self._here[most:]
            return taken

    def end(self) -> None:
        """Nobody will join any more: nobody waits for others."""
        with self._lock:
            self._ended = True
            if self._enough != NEVER:
                self._ring()

    def _ring(self) -> None:
        self._enough = NEVER
        self._bell.release()
