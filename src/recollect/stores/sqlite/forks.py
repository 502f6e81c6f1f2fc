"""Forks: where a process brought along a store that its parent has open, SQLite cannot be used.

SQLite knows a file once for each process, by its inode. A forked child inherits what its parent knew of the locks, and
none of the locks: others delete the log that the child writes to, and with it what was acknowledged. And a lock of
SQLite's memory that a thread of the parent held in that moment stays locked in the child for ever.
"""

from __future__ import annotations

import os
import threading
from weakref import WeakSet

import apsw

from recollect.domain.errors import StoreUnavailable

HINT = "close it before the fork and open it in each process, or start processes by spawn or forkserver"

_opening = threading.Lock()
"""Held while a connection is made, so that no fork comes in between."""
_ours: WeakSet[apsw.Connection] = WeakSet()
_came_along = threading.Event()


def opened(path: str, flags: int) -> apsw.Connection:
    """A connection; refused where a store came along with a fork."""
    if _came_along.is_set():
        raise StoreUnavailable("this process was forked while a store was open", HINT)
    with _opening:
        connection = apsw.Connection(path, flags=flags, statementcachesize=200)
        _ours.add(connection)
    return connection


def _after_in_child() -> None:
    # apsw lists what is not closed yet.
    if any(connection in _ours for connection in apsw.connections()):
        _came_along.set()
    if _opening.locked():  # a host that forks by itself may not have called what comes before
        _opening.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_after_in_child)
