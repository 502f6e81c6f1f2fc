"""The one writer of a process: callers queue, whoever waits together is committed together.

Every caller's changes run in a savepoint of their own, so that one caller's Conflict leaves the others alone. A caller
is released only after the commit is on the disk; if the commit fails, all callers of the group are told so.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import apsw

from recollect.domain.errors import InvalidInput, RecollectError, StoreUnavailable
from recollect.stores.sqlite.connection import BUSY_MS, Connection, translate
from recollect.stores.sqlite.gate import Gate
from recollect.stores.sqlite.ledger import Ledger, Writing

QUEUE_LIMIT = 1_000
GROUP_LIMIT = 256
CLOSE_TIMEOUT_S = 30.0

Work = Callable[[Writing], Any]
Lend = Callable[[], AbstractContextManager[Connection]]


@dataclass(slots=True)
class Job:
    """One caller's work and what became of it."""

    work: Work
    ledger: Ledger = field(default_factory=Ledger)
    result: Any = None
    error: BaseException | None = None
    finished: threading.Event = field(default_factory=threading.Event)


class Writer:
    """Owns the write connection. `lend` gives it for one transaction; with a store in memory it is shared."""

    def __init__(self, lend: Lend, gate: Gate, wait_s: float, before_purge: Callable[[], None] | None = None) -> None:
        self._lend = lend
        self._gate = gate
        self._wait_s = wait_s
        self._before_purge = before_purge
        self._queue: queue.Queue[Job | None] = queue.Queue(QUEUE_LIMIT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False
        self._writing: Writing | None = None

    def run(self, work: Work) -> Any:
        """Do the work in a transaction; returns its result when it is durable, or raises what went wrong."""
        job = Job(work)
        self._submit(job)
        # The writer answers every job it takes; the bound only guards against a disk that never returns.
        if not job.finished.wait(self._wait_s * 6):
            raise StoreUnavailable("the disk did not answer in time; the write may still happen", "read it back")
        if job.error is not None:
            raise job.error
        return job.result

    def offer(self, work: Work) -> None:
        """Ask for work that may as well be left undone; nobody waits for it."""
        with self._lock:
            if self._closed or os.getpid() != self._process:
                return
            self._start()
            try:
                self._queue.put_nowait(Job(work))
            except queue.Full:
                return

    def _submit(self, job: Job) -> None:
        with self._lock:
            if os.getpid() != self._process:
                raise StoreUnavailable("the store was opened before this process was forked", "open it again here")
            if self._closed:
                raise StoreUnavailable("the store is closed", "open it again")
            self._start()
        try:
            self._queue.put(job, timeout=self._wait_s)
        except queue.Full:
            raise StoreUnavailable("too many writes are waiting", "slow down and try again") from None

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="recollect-writer", daemon=True)
            self._thread.start()

    def _loop(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            group, stop = self._group(first)
            try:
                self._commit(group)
            except BaseException as error:  # the thread must live: every caller waits for it
                failure = translate(error) if isinstance(error, apsw.Error | UnicodeDecodeError) else error
                for job in group:
                    job.error = job.error or failure
            for job in group:
                job.finished.set()
            if stop:
                return

    def _group(self, first: Job) -> tuple[list[Job], bool]:
        """All that is waiting now, up to a bound; whether the end of the queue was among it."""
        group = [first]
        while len(group) < GROUP_LIMIT:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, group: list[Job]) -> None:
        with self._lend() as connection, self._gate.passage():
            if self._writing is None:
                self._writing = Writing(connection)
            writing = self._writing
            total = Ledger()
            connection.execute("BEGIN IMMEDIATE")
            try:
                writing.refresh()
                for job in group:
                    self._perform(job, writing, alone=len(group) == 1)
                    if job.error is None:
                        total.add(job.ledger)
                if len(group) == 1 and group[0].error is not None:
                    connection.execute("ROLLBACK")
                    return
                writing.settle(total)
                connection.execute("COMMIT")
            except BaseException:
                writing.forget()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            writing.committed(total)
            if total.purge:
                if self._before_purge is not None:
                    self._before_purge()
                purge(connection)

    def _perform(self, job: Job, writing: Writing, alone: bool) -> None:
        """One caller's work; only errors of the caller's own making end here, the rest fails the whole group."""
        connection = writing.connection
        writing.ledger = job.ledger
        if not alone:
            connection.execute("SAVEPOINT caller")
        try:
            job.result = job.work(writing)
        except (RecollectError, UnicodeEncodeError, OverflowError, apsw.TooBigError) as error:
            job.error = _own(error)
            if not alone:
                connection.execute("ROLLBACK TO caller")
            writing.reload()
        if not alone:
            connection.execute("RELEASE caller")

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        if thread is not None and os.getpid() == self._process:
            self._queue.put(None)
            thread.join(CLOSE_TIMEOUT_S)


def _own(error: BaseException) -> BaseException:
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("a text holds half a character (a lone surrogate)", "send valid Unicode")
    if isinstance(error, OverflowError):
        return InvalidInput("a number or time is out of range", "use 64-bit numbers and years 1 to 9999")
    if isinstance(error, apsw.Error):
        return translate(error)
    return error


def purge(connection: Connection) -> bool:
    """Empty the write-ahead log, which still holds what was erased; False while a reader is in the way.

    The flag stays until it worked, so that `tidy` can finish what a killed process left.
    """
    connection.set_busy_timeout(200)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("UPDATE counters SET value = 0 WHERE name = 'purge'")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error:  # the write itself is durable already
        return False
    finally:
        connection.set_busy_timeout(BUSY_MS)
    return True
