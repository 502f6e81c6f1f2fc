"""The gate between processes: an advisory lock on a file beside the store, taken before every write transaction.

SQLite's own waiting is unfair (a process can starve for seconds); waiting at a file lock is not.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

from recollect.domain.errors import StoreInUse
from recollect.stores.refusals import cannot_be_made

POLL_S = 0.002

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    def hold(_: int) -> bool:
        """Nothing to do: a file that somebody has open cannot be deleted here."""
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def hold(descriptor: int) -> bool:
        """Lock a file until it is closed; False where somebody else has it, or where files cannot be locked."""
        try:
            return _try_lock(descriptor)
        except OSError:
            return False


_gates: WeakSet[Gate] = WeakSet()


class Gate:
    """Holds `<store>.lock` open and locks it on demand; a killed process lets go by itself."""

    def __init__(self, path: Path | None, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._descriptor: int | None = None
        if path is not None:
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            except OSError as error:
                raise cannot_be_made("the lock file", path, error) from error
        _gates.add(self)

    @contextmanager
    def passage(self, before_waiting: Callable[[], None] | None = None) -> Generator[None]:
        """Be the only process that writes, or StoreUnavailable when the others hold on for too long.

        `before_waiting` is called where others have to be waited for, perhaps more than once.
        """
        if self._descriptor is None:
            yield
            return
        deadline = time.monotonic() + self._timeout_s
        while not _try_lock(self._descriptor):
            if before_waiting is not None:
                before_waiting()
            if time.monotonic() > deadline:
                raise StoreInUse("another process has been writing to the store for too long", "try again, or end it")
            time.sleep(POLL_S)
        try:
            yield
        finally:
            _unlock(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _let_go() -> None:
    """In a forked child: the lock is its parent's, and would outlive a parent that is killed for as long as a child has
    the file open."""
    for gate in _gates:
        gate.close()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_let_go)
