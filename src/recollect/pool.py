"""A few threads in which models are asked, and that nobody waits for longer than for a model that will still answer.

Python's own pool waits for its threads for ever, when it is closed and once more when the interpreter goes: a model
that hangs, such as one behind a connection without a time limit, would keep the program from ending.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from recollect.domain.errors import ModelUnavailable, StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")
Tasks = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]


class Pool(Executor):
    """At most `most` threads, started as they are needed; they end with the pool, also where nobody closes it."""

    def __init__(self, most: int, name: str, patience_seconds: float) -> None:
        self._most = most
        self._name = name
        self._patience_seconds = patience_seconds
        self._tasks: Tasks = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        # Called once: by `shutdown`, when nobody has the pool any more, or before the interpreter goes.
        self._end = weakref.finalize(self, _end, self._tasks, self._threads, patience_seconds)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have it done as soon as a thread is free; it fails where there is none and none can be started."""
        future = Future[T]()
        with self._lock:
            if not self._end.alive:
                raise StoreUnavailable("the store is closed", "open it again")
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
                self._start_thread()
            if self._threads:
                self._tasks.put((future, lambda: fn(*args, **kwargs)))
            else:
                future.set_exception(ModelUnavailable("no thread can be started to ask it", "end some other program"))
        return future

    def _start_thread(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(target=_work, args=(self._tasks, self._idle), name=name, daemon=True)
        with suppress(RuntimeError):  # no threads are left: those that are there have to do
            thread.start()
            self._threads.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; wait for what was taken, or at least for what has begun, but not for ever."""
        with self._lock:
            self._end.detach()
        _end(self._tasks, self._threads, self._patience_seconds if wait else 0.0, cancel=cancel_futures)


def _work(tasks: Tasks, idle: threading.Semaphore) -> None:
    while (task := tasks.get()) is not None:
        _do(*task, idle)
        del task  # what it held is not kept until the next one comes


def _do(future: Future[Any], work: Callable[[], Any], idle: threading.Semaphore) -> None:
    """Whoever is told finds the thread free: it counts as idle before it tells."""
    if not future.set_running_or_notify_cancel():
        idle.release()
        return
    try:
        answer = work()
    except BaseException as error:  # whoever waits for it is told; the thread goes on
        idle.release()
        future.set_exception(error)
    else:
        idle.release()
        future.set_result(answer)


def _end(tasks: Tasks, threads: Sequence[threading.Thread], patience_seconds: float, *, cancel: bool = True) -> None:
    with suppress(Empty):
        while cancel and (task := tasks.get_nowait()) is not None:
            task[0].cancel()
    for _ in threads:
        tasks.put(None)
    deadline = time.monotonic() + patience_seconds
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
