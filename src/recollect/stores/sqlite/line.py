"""The line of callers before the writer, which sleeps until enough of them are in it.

To look again and again would take the interpreter away from the very callers that it waits for.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

One = TypeVar("One")
NEVER = 1 << 62


def held() -> threading.Lock:
    """A lock that is taken: the lightest thing to wait for."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Signal:
    """Given once, for everybody who waits for it.

    It is a lock that whoever gets it gives back at once, which wakes the next. To wake all of them takes longer: they
    would stand before the interpreter together, fall asleep there and be woken a second time.
    """

    __slots__ = ("_is_given", "_lock")

    def __init__(self) -> None:
        self._lock = held()
        self._is_given = False

    def give(self) -> None:
        """Let everybody go."""
        self._is_given = True
        self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Until it is given; False if the time was over before."""
        try:
            if not self._lock.acquire(timeout=seconds):
                return False
            self._pass_on()
        except BaseException:  # interrupted (Ctrl-C), perhaps with the lock in hand
            if self._is_given:
                self._pass_on()
            raise
        return True

    def _pass_on(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:  # somebody who was interrupted has done so for us
            return


class Line(Generic[One]):
    """First come, first served. Any thread may join, one takes: a group of `most` at most, which has one signal."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._groups: deque[tuple[list[One], Signal]] = deque()
        self._count = 0
        self._enough = NEVER
        """With so many the bell is rung, once."""
        self._bell = held()
        self._ended = False

    def __len__(self) -> int:
        return self._count

    def join(self, one: One) -> Signal:
        """Stand behind the others; what to wait for."""
        with self._lock:
            if not self._groups or len(self._groups[-1][0]) >= self._most:
                self._groups.append(([], Signal()))
            group, signal = self._groups[-1]
            group.append(one)
            self._count += 1
            if self._count >= self._enough:
                self._ring()
            return signal

    def wait(self, count: int, seconds: float = -1) -> None:
        """Until so many are here, or the line has ended, or the time is over (-1: never)."""
        with self._lock:
            if self._count >= count or self._ended:
                return
            self._enough = count
        if self._bell.acquire(timeout=seconds):
            return
        with self._lock:
            if self._enough == NEVER:  # rung when the time was over already
                self._bell.acquire()
            self._enough = NEVER

    def take(self) -> tuple[list[One], Signal]:
        """The first of the line, and what they wait for."""
        with self._lock:
            if not self._groups:
                return [], Signal()
            group, signal = self._groups.popleft()
            self._count -= len(group)
            return group, signal

    def end(self) -> None:
        """Nobody will join any more: nobody waits for others."""
        with self._lock:
            self._ended = True
            if self._enough != NEVER:
                self._ring()

    def _ring(self) -> None:
        self._enough = NEVER
        self._bell.release()
