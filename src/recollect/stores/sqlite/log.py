"""Keeping the write-ahead log short without letting a caller wait for it.

SQLite copies the log into the file inside the commit that makes it too long, and syncs the file: whoever waits for that
commit waits many times as long as usual. Here a thread of its own copies while the writer goes on. Only a log that has
grown long in spite of that is brought to its end between two commits, because SQLite starts it anew only when nothing
is left in it. The thread copies once more right before that, so that the writer finds only what was written meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from recollect.domain.errors import RecollectError
from recollect.stores.sqlite.connection import Connection

SOON_PAGES = 4_000
"""After so many more pages the thread copies, twice before the log starts anew. A page that many commits have changed
is copied once: to copy more often is more work, and the disk has less time for the commits."""
LATEST_PAGES = 8_000
"""From so many pages on (64 MB) the writer brings the log to its end, if the thread is not at it and left a few."""
FEW_PAGES = 300
LONGEST_PAGES = 32_000
"""From so many on it waits for the thread and does so, whatever is left."""
CLOSE_TIMEOUT_S = 30.0


class Log:
    """The write-ahead log as the writer of one process sees it; `connect` opens the connection of the thread."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._pages = 0
        self._copied = 0
        self._next = SOON_PAGES
        self._thread: threading.Thread | None = None
        self._wanted = threading.Semaphore(0)
        self._closing = False
        self.alone = threading.Lock()
        """Held while the thread copies, and by whoever must not meet it."""

    def watch(self, connection: Connection) -> None:
        """Be told of every commit; SQLite then copies nothing by itself."""
        connection.set_wal_hook(self._committed)

    def _committed(self, _connection: object, _database: str, pages: int) -> int:
        if pages < self._pages:  # the log was started anew
            self._next, self._copied = SOON_PAGES, 0
        self._pages = pages
        return apsw.SQLITE_OK

    @property
    def is_long(self) -> bool:
        """Whether `shorten` has something to do."""
        return self._pages >= self._next

    def shorten(self, connection: Connection) -> None:
        """After a commit whose callers have been answered: have the log copied if it is long."""
        self._next = self._pages + SOON_PAGES
        if self._is_writers_turn and self.alone.acquire(blocking=self._pages >= LONGEST_PAGES):
            try:
                self._copied = copy(connection)
            finally:
                self.alone.release()
            return
        if self._thread is None:
            thread = threading.Thread(target=self._loop, name="recollect-log", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no threads are left: the log grows until the writer copies it
                return
            self._thread = thread
        self._wanted.release()

    @property
    def _is_writers_turn(self) -> bool:
        """Whether the log is to be brought to its end; what no thread has begun with is the writer's at once."""
        few = not self._copied or self._pages - self._copied <= FEW_PAGES or self._pages >= LONGEST_PAGES
        return few and self._pages >= LATEST_PAGES

    def _loop(self) -> None:
        try:
            connection = self._connect()
        except (apsw.Error, RecollectError):  # the writer is left, and says what is wrong
            return
        try:
            while True:
                self._wanted.acquire()
                if self._closing:
                    return
                with self.alone:
                    self._copied = copy(connection)
                if self._pages >= LATEST_PAGES:
                    self._next = 0  # the rest at once, as long as it is little
        finally:
            connection.close()

    def close(self) -> None:
        """End the thread. What is left in the log is copied when the last connection closes."""
        self._closing = True
        if self._thread is not None:
            self._wanted.release()
            self._thread.join(CLOSE_TIMEOUT_S)


def copy(connection: Connection) -> int:
    """As much of the log as no reader needs; so many of its pages are copied now.

    A failure loses nothing: the log is as good as the file.
    """
    try:
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    except apsw.Error:
        return 0
