"""The line before the writer: it sleeps until enough callers are there; no ring of the bell is lost or left over.

Callers that are taken together wait for one signal, which reaches all of them, whatever happens to one.
"""

from __future__ import annotations

import threading

import pytest

from recollect.stores.sqlite.line import Line, Signal


def waiting(line: Line[int], count: int) -> threading.Thread:
    """A thread that waits for so many; started, and asleep."""
    thread = threading.Thread(target=line.wait, args=(count,), daemon=True)
    thread.start()
    while line._enough != count:  # type: ignore[attr-defined]
        threading.Event().wait(0.001)
    return thread


def test_those_who_came_first_are_taken_first() -> None:
    line = Line[int](3)
    for one in range(5):
        line.join(one)
    line.wait(5)
    assert (line.take()[0], len(line), line.take()[0], line.take()[0]) == ([0, 1, 2], 2, [3, 4], [])


def test_those_who_are_taken_together_wait_for_the_same_signal_and_nobody_else_does() -> None:
    line = Line[int](3)
    signals = [line.join(one) for one in range(5)]
    _, first = line.take()
    late = line.join(5)
    _, second = line.take()
    assert signals == [first] * 3 + [second] * 2
    assert late is second is not first
    first.give()
    assert first.wait(0) and not second.wait(0)


def test_a_signal_reaches_everybody_who_waits_and_whoever_comes_later() -> None:
    signal, reached = Signal(), list[bool]()
    threads = [threading.Thread(target=lambda: reached.append(signal.wait(10))) for _ in range(16)]
    for thread in threads:
        thread.start()
    assert not signal.wait(0.01) and not reached
    signal.give()
    for thread in threads:
        thread.join()
    assert reached == [True] * 16
    assert signal.wait(0)


class Interrupted:
    """The lock of a signal, whose next owner is interrupted as soon as it has the lock; or before it has it."""

    def __init__(self, signal: Signal, holding: bool) -> None:
        self._lock = signal._lock  # type: ignore[attr-defined]
        self._holding = holding
        signal._lock = self  # type: ignore[assignment]

    def acquire(self, timeout: float = -1) -> bool:
        if self._holding:
            self._lock.acquire()
        raise KeyboardInterrupt

    def release(self) -> None:
        self._lock.release()


@pytest.mark.parametrize("holding", [True, False])
def test_a_caller_that_is_interrupted_keeps_nobody_waiting(holding: bool) -> None:
    signal = Signal()
    lock = signal._lock  # type: ignore[attr-defined]
    signal.give()
    Interrupted(signal, holding)
    with pytest.raises(KeyboardInterrupt):
        signal.wait(10)
    signal._lock = lock  # type: ignore[assignment]
    assert signal.wait(0)


def test_a_caller_that_is_interrupted_too_early_does_not_let_the_others_go() -> None:
    signal = Signal()
    lock = signal._lock  # type: ignore[attr-defined]
    Interrupted(signal, holding=False)
    with pytest.raises(KeyboardInterrupt):
        signal.wait(10)
    signal._lock = lock  # type: ignore[assignment]
    assert not signal.wait(0)
    signal.give()
    assert signal.wait(0)


def test_the_last_of_those_who_are_waited_for_wakes() -> None:
    line = Line[int](3)
    thread = waiting(line, 3)
    line.join(1)
    line.join(2)
    thread.join(0.05)
    assert thread.is_alive()
    line.join(3)
    thread.join(10)
    assert not thread.is_alive()
    line.join(4)  # nobody waits: the bell stays silent, and the next to wait for more sleeps
    thread = waiting(line, 6)
    thread.join(0.05)
    assert thread.is_alive()
    line.join(5)
    line.join(6)
    thread.join(10)
    assert not thread.is_alive()


def test_whoever_waited_long_enough_goes_on_and_is_not_woken_later() -> None:
    line = Line[int](3)
    line.wait(2, 0.001)
    line.join(1)
    line.join(2)
    line.take()
    thread = waiting(line, 1)
    thread.join(0.05)
    assert thread.is_alive()
    line.join(3)
    thread.join(10)
    assert not thread.is_alive()


def test_a_bell_that_rings_when_the_time_is_over_is_not_heard_twice() -> None:
    line = Line[int](3)
    slow = line._bell  # type: ignore[attr-defined]

    class Late:
        """Says that the time is over, while the last caller comes."""

        def acquire(self, timeout: float = -1) -> bool:
            if timeout < 0:
                return slow.acquire()
            line.join(1)
            return False

        def release(self) -> None:
            slow.release()

    line._bell = Late()  # type: ignore[attr-defined]
    line.wait(1, 0.001)
    assert slow.locked()


def test_the_end_of_the_line_wakes_whoever_waits_for_others() -> None:
    line = Line[int](3)
    thread = waiting(line, 2)
    line.join(1)
    line.end()
    thread.join(10)
    assert not thread.is_alive()
    line.wait(5)
    assert line.take()[0] == [1]
