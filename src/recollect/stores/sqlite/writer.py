"""The one writer of a process: callers queue, whoever waits together is committed together.

A group is tried as a whole. If one caller's changes are refused (a Conflict), it is rolled back and done again with a
savepoint for each caller, so that the others are left alone: savepoints are kept for that, because at each of them FTS5
writes out what it has gathered. A caller is released only after the commit is on the disk; if the commit fails, all
callers of the group are told so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from recollect.domain.changes import Change, Put
from recollect.domain.errors import InvalidInput, RecollectError, StoreUnavailable
from recollect.stores.sqlite import forks
from recollect.stores.sqlite.bulk import insert_all
from recollect.stores.sqlite.connection import BUSY_MS, Connection, translate
from recollect.stores.sqlite.entries import Entries, entries_of, read
from recollect.stores.sqlite.gaps import clear_gaps
from recollect.stores.sqlite.gate import Gate
from recollect.stores.sqlite.ledger import Ledger, Writing
from recollect.stores.sqlite.lexicon import Lexicon
from recollect.stores.sqlite.line import Line, Signal
from recollect.stores.sqlite.log import Log

QUEUE_LIMIT = 1_000
GROUP_LIMIT = 256
CLOSE_TIMEOUT_S = 30.0
LONGEST_PAUSE_S = 0.002
FULL_PAUSE_S = 0.001
LIGHT_CHANGES = 16
LIGHT_CHARACTERS = 4_000
"""So few changes with so little text are left to the writer, which encodes and reads those of many callers in one go;
more is work of its own caller."""

OWN_ERRORS = (RecollectError, UnicodeError, OverflowError, apsw.TooBigError)
"""Of one caller's making, or of the memory that it asks for."""

Work = Callable[[Writing], Any]
Lend = Callable[[], AbstractContextManager[Connection]]


@dataclass(slots=True)
class Job:
    """One caller's work and what became of it."""

    work: Work
    changes: Sequence[Change] = ()
    """What `work` makes, if it makes nothing else and the caller has not prepared it."""
    entries: Entries | None = None
    """What `work` would insert, prepared by the caller: the writer inserts those of all callers at once."""
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class Group:
    """Those whose work is one transaction, and who wait for the same signal."""

    jobs: Sequence[Job] = ()
    signal: Signal | None = None

    def take(self, line: Line[Job]) -> None:
        """Be the first of the line."""
        self.jobs, self.signal = line.take()


class Writer:
    """Owns the write connection. `lend` gives it for one transaction; with a store in memory it is shared."""

    def __init__(
        self,
        lend: Lend,
        gate: Gate,
        wait_s: float,
        before_purge: Callable[[], None] | None = None,
        log: Log | None = None,
        path: Path | None = None,
    ) -> None:
        self._log = log
        self._path = path
        self._lend = lend
        self._gate = gate
        self._wait_s = wait_s
        self._before_purge = before_purge
        self._line: Line[Job] = Line(GROUP_LIMIT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False
        self.lexicon = Lexicon()
        self._writing: Writing | None = None
        self._unanswered: Signal | None = None
        """Of a group that is durable, or has failed."""

    def run(self, work: Work, changes: Sequence[Change] = ()) -> Any:
        """Do the work in a transaction; returns its result when it is durable, or raises what went wrong.

        The work may be done again after it was rolled back, so it must not leave anything behind but in the store.
        `changes` are what it makes, if it makes nothing else: those of many callers may be made together.
        """
        job = self._job(work, changes)
        # The writer answers every job it takes; the bound only guards against a disk that never returns.
        if not self._submit(job).wait(self._wait_s * 6):
            raise StoreUnavailable("the disk did not answer in time; the write may still happen", "read it back")
        if job.error is not None:
            raise job.error
        return job.result

    def _job(self, work: Work, changes: Sequence[Change]) -> Job:
        size = sum([len(change.memory.content) for change in changes if isinstance(change, Put)])
        if len(changes) <= LIGHT_CHANGES and size <= LIGHT_CHARACTERS:
            return Job(work, changes)
        each = entries_of(changes)
        return Job(work) if each is None else Job(work, entries=read(each, self.lexicon))

    def offer(self, work: Work) -> None:
        """Ask for work that may as well be left undone; nobody waits for it."""
        with self._lock:
            if not self._closed and os.getpid() == self._process and len(self._line) < QUEUE_LIMIT:
                with suppress(StoreUnavailable):
                    self._start()
                    self._line.join(Job(work))

    def require_open(self) -> None:
        """Raise StoreUnavailable where nothing can be written."""
        if os.getpid() != self._process:
            raise StoreUnavailable("the store was opened before this process was forked", forks.HINT)
        if self._closed:
            raise StoreUnavailable("the store is closed", "open it again")

    def _submit(self, job: Job) -> Signal:
        deadline = time.monotonic() + self._wait_s
        while (signal := self._accepted(job)) is None:
            if time.monotonic() > deadline:
                raise StoreUnavailable("too many writes are waiting", "slow down and try again")
            time.sleep(FULL_PAUSE_S)
        return signal

    def _accepted(self, job: Job) -> Signal | None:
        with self._lock:
            self.require_open()
            if len(self._line) >= QUEUE_LIMIT:
                return None
            self._start()
            return self._line.join(job)

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._loop, name="recollect-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise StoreUnavailable("no thread can be started to write", "end some other program") from error
            self._thread = thread

    def _loop(self) -> None:
        """Until the line has ended.

        Callers that were just released mostly come back at once. To wait a moment for them costs less than the commit
        they would need on their own; a caller that is alone never waits. If the full-text index has to be merged, that
        is done while they come: the transaction for it is begun before they are answered, because the writer would
        get the interpreter back only after most of them.
        """
        callers, pause_s = 1, 0.0
        while True:
            is_merging = callers > 1 and self._writing is not None and self._writing.is_unmerged
            if self._log is not None and self._log.is_long and self._writing is not None:
                self._answer()
                self._log.shorten(self._writing.connection)
            if not is_merging:
                self._answer()
                self._line.wait(1)
                if not self._line:
                    return
                self._line.wait(callers, pause_s)
            group = Group()
            took_s = 0.0
            try:
                took_s = self._commit(group, callers, pause_s)
            except BaseException as error:  # the thread must live: every caller waits for it
                self._answer()
                failure = translate(error) if isinstance(error, apsw.Error | UnicodeDecodeError) else error
                if not group.jobs:
                    group.take(self._line)
                for job in group.jobs:
                    job.error = job.error or failure
            self._unanswered = group.signal
            callers = min(len(group.jobs) + len(self._line), GROUP_LIMIT)
            pause_s = min(took_s / 2, LONGEST_PAUSE_S)

    def _answer(self) -> None:
        """Tell the last group what became of it, if it was not told yet."""
        signal, self._unanswered = self._unanswered, None
        if signal is not None:
            signal.give()

    def _commit(self, group: Group, callers: int, pause_s: float) -> float:
        """Take those who wait into the group and make what they bring durable; the seconds that this took."""
        with self._lend() as connection, self._gate.passage(self._answer):
            writing = self._writing or self._begin_with(connection)
            try:
                if writing.is_unmerged:
                    self._begin_and_answer(writing)
                    writing.merge()
                    self._line.wait(callers, pause_s)
                group.take(self._line)
                began = time.monotonic()
                total = self._do(group.jobs, writing)
                if total is None:
                    return 0.0
                writing.settle(total)
                connection.execute("COMMIT")
            except BaseException:
                self._undo(writing)
                raise
            writing.committed(total)
            if total.purge:
                self._purge(connection, total)
            return time.monotonic() - began

    def _begin_and_answer(self, writing: Writing) -> None:
        """Begin to merge, then answer; the other way round where a foreign program has SQLite's lock."""
        writing.connection.set_busy_timeout(0)
        try:
            _begin(writing)
        except apsw.BusyError:
            self._answer()
        finally:
            writing.connection.set_busy_timeout(BUSY_MS)
        _begin(writing)
        self._answer()

    def _purge(self, connection: Connection, total: Ledger) -> None:
        """Take away what was erased from where it still is. The write is durable: a failure is left to `tidy`."""
        if self._before_purge is not None:
            try:
                self._before_purge()
            except OSError:
                return
        with nullcontext() if self._log is None else self._log.alone:
            purge(connection, self._path, large=total.gaps)

    def _begin_with(self, connection: Connection) -> Writing:
        self._writing = Writing(connection, self.lexicon)
        if self._log is not None:
            self._log.watch(connection)
        return self._writing

    def _do(self, group: Sequence[Job], writing: Writing) -> Ledger | None:
        """Everybody's work in an open transaction, and its sums; None if there is nothing to commit."""
        try:
            return _together(group, writing)
        except OWN_ERRORS as error:
            self._undo(writing)
            if len(group) == 1:
                group[0].error = _own(error)
                return None
        return _one_by_one(group, writing)

    def _undo(self, writing: Writing) -> None:
        writing.forget()
        if writing.connection.in_transaction:
            writing.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        if thread is not None and os.getpid() == self._process:
            self._line.end()
            thread.join(CLOSE_TIMEOUT_S)
            if self._log is not None:
                self._log.close()


def _begin(writing: Writing) -> None:
    """Begin a transaction, if none was begun for merging."""
    if writing.connection.in_transaction:
        return
    writing.connection.execute("BEGIN IMMEDIATE")
    writing.refresh()


def _together(group: Sequence[Job], writing: Writing) -> Ledger:
    """All callers as if they were one: what they insert in few statements, the rest as it comes."""
    inserting = [job.entries for job in group if job.entries is not None]
    encoded = {id(job): each for job in group if job.changes and (each := entries_of(job.changes)) is not None}
    if encoded:
        inserting.append(read([entry for each in encoded.values() for entry in each], writing.lexicon))
    _begin(writing)
    total = writing.total = writing.ledger = Ledger()
    inserted = bool(inserting) and insert_all(inserting, writing)
    for job in group:
        if not inserted or (job.entries is None and id(job) not in encoded):
            job.result = job.work(writing)
    return total


def _one_by_one(group: Sequence[Job], writing: Writing) -> Ledger:
    """Each caller in a savepoint. Only errors of the caller's own making end here, the rest fails the whole group."""
    _begin(writing)
    total = writing.total = Ledger()
    for job in group:
        writing.ledger = Ledger()
        writing.connection.execute("SAVEPOINT caller")
        try:
            job.result = job.work(writing)
        except OWN_ERRORS as error:
            job.error = _own(error)
            writing.connection.execute("ROLLBACK TO caller")
            writing.reload()
        else:
            total.add(writing.ledger)
        writing.connection.execute("RELEASE caller")
    return total


def _own(error: BaseException) -> BaseException:
    if isinstance(error, OverflowError):
        return InvalidInput("a number or time is out of range", "use 64-bit numbers and years 1 to 9999")
    if isinstance(error, apsw.Error | UnicodeError):
        return translate(error)
    return error


def purge(connection: Connection, path: Path | None = None, *, large: bool = False) -> bool:
    """Empty the write-ahead log, which still holds what was erased, and the unused room of the pages; False while a
    reader is in the way.

    The flag stays until it worked, so that `tidy` can finish what a killed process left.
    """
    connection.set_busy_timeout(200)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("PRAGMA shrink_memory").fetchall()  # no page is written again as it was
        connection.execute("BEGIN IMMEDIATE")
        if path is not None and not clear_gaps(connection, path, large=large):
            return False
        connection.execute("UPDATE counters SET value = 0 WHERE name = 'purge'")
        connection.execute("COMMIT")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.Error, OSError):  # the write itself is durable already
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.set_busy_timeout(BUSY_MS)
    return True
