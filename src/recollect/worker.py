"""One background thread that works while there is work and sleeps while there is none.

It is stopped before the interpreter goes, also where nobody closed what it works for: a thread that is cut off inside
a model's native code would abort the whole process.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable

from recollect.domain.errors import StoreUnavailable

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0


class Worker:
    """Calls `step` until it says there is nothing left, then waits to be woken. A failing step is retried later."""

    def __init__(self, step: Callable[[], bool], name: str, patience_seconds: float = 30.0) -> None:
        self._step = step
        self._patience_seconds = patience_seconds
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            raise StoreUnavailable("no thread can be started for upkeep", "end some other program") from error
        atexit.register(self.stop)

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Ask the thread to end after the step it is in, and wait for it, but not for ever."""
        atexit.unregister(self.stop)
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(self._patience_seconds)

    def _run(self) -> None:
        pause = IDLE_SECONDS
        while not self.stopping:
            try:
                more = self._step()
                pause = IDLE_SECONDS
            except BaseException as error:  # upkeep must survive whatever a model or a disk does
                log.warning("background work failed: %s", type(error).__name__)
                more, pause = False, min(pause * 2, MAX_BACKOFF_SECONDS)
            if not more:
                self._wake.wait(pause)
                self._wake.clear()
