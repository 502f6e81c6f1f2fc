"""The line before the writer: it sleeps until enough callers are there; no ring of the bell is lost or left over."""

from __future__ import annotations

import threading

from recollect.stores.sqlite.line import Line


def waiting(line: Line[int], count: int) -> threading.Thread:
    """A thread that waits for so many; started, and asleep."""
    thread = threading.Thread(target=line.wait, args=(count,), daemon=True)
    thread.start()
    while line._enough != count:  # type: ignore[attr-defined]
        threading.Event().wait(0.001)
    return thread


def test_those_who_came_first_are_taken_first() -> None:
    line = Line[int]()
    for one in range(5):
        line.join(one)
    line.wait(5)
    assert (line.take(3), len(line), line.take(3), line.take(3)) == ([0, 1, 2], 2, [3, 4], [])


def test_the_last_of_those_who_are_waited_for_wakes() -> None:
    line = Line[int]()
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
    line = Line[int]()
    line.wait(2, 0.001)
    line.join(1)
    line.join(2)
    line.take(2)
    thread = waiting(line, 1)
    thread.join(0.05)
    assert thread.is_alive()
    line.join(3)
    thread.join(10)
    assert not thread.is_alive()


def test_a_bell_that_rings_when_the_time_is_over_is_not_heard_twice() -> None:
    line = Line[int]()
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
    line = Line[int]()
    thread = waiting(line, 2)
    line.join(1)
    line.end()
    thread.join(10)
    assert not thread.is_alive()
    line.wait(5)
    assert line.take(5) == [1]
