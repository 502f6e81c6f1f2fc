"""The writer: group commit, isolation of callers, failures that reach everyone, many processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import apsw
import pytest
from sqlite_cases import note, put

from recollect.domain.changes import Change, Erase, Put, Touch
from recollect.domain.errors import Conflict, InvalidInput, RecollectError, StoreUnavailable
from recollect.domain.memory import EPOCH
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.gate import Gate
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.line import NEVER
from recollect.stores.sqlite.writer import Group, Writer
from recollect.stores.sqlite.writer import _begin as writing_begin  # type: ignore[attr-defined]


class Held:
    """Keeps the writer busy until released, so that callers pile up behind it; then counts the commits."""

    def __init__(self, store: Store) -> None:
        self.writer: Writer = store.records._writer  # type: ignore[attr-defined]
        self.reached, self.go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.reached.wait()

    def _run(self) -> None:
        with contextlib.suppress(StoreUnavailable):  # the commit may be made to fail
            self.writer.run(self._wait)

    def _wait(self, writing: Writing) -> None:
        self.reached.set()
        self.go.wait()

    def release(self) -> None:
        self.go.set()
        self.thread.join()


def write_together(store: Store, lists: list[list[Change]]) -> list[RecollectError | None]:
    """Have every list written by its own thread, all in one group."""
    held = Held(store)
    outcomes: list[RecollectError | None] = [None] * len(lists)

    def write(place: int) -> None:
        try:
            store.records.write(lists[place])
        except RecollectError as error:
            outcomes[place] = error

    threads = [threading.Thread(target=write, args=(place,)) for place in range(len(lists))]
    for thread in threads:
        thread.start()
    while len(held.writer._line) < len(lists):  # type: ignore[attr-defined]
        threading.Event().wait(0.001)
    held.release()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    opened = open_sqlite(tmp_path / "s.db" if request.param == "file" else ":memory:")
    request.addfinalizer(opened.close)
    return opened


def test_waiting_callers_share_one_commit(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    groups: list[int] = []
    do = writer._do  # type: ignore[attr-defined]
    writer._do = lambda group, writing: (groups.append(len(group)), do(group, writing))[1]  # type: ignore[method-assign]
    assert write_together(store, [[Put(note(f"n{place}", f"text {place}"))] for place in range(12)]) == [None] * 12
    assert groups == [1, 12]
    assert store.care.stats().memories == 12
    assert store.care.check() == []
    store.close()


def test_one_callers_conflict_leaves_the_others_alone(store: Store) -> None:
    put(store, note("old", "it was there before"))
    lists: list[list[Change]] = [
        [Put(note("a", "first caller"))],
        [Put(note("half", "must not stay, words like xylophone")), Put(note("old", "a second time"))],
        [Put(note("broken", "lone \ud800 surrogate"))],
        [Put(note("b", "last caller"))],
    ]
    outcomes = write_together(store, lists)
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict, InvalidInput, type(None)]
    assert [memory.id for memory in store.records.fetch(["a", "half", "broken", "b"])] == ["a", "b"]
    assert store.text is not None
    assert store.text.similar("xylophone", 0.9, 1) == []
    assert store.care.check() == []


def test_changes_of_one_list_see_each_other(store: Store) -> None:
    store.records.write([Put(note("a", "short life")), Erase("a"), Put(note("a", "second life")), Erase("a")])
    assert store.records.fetch(["a"]) == []
    assert store.care.check() == []


def test_a_failed_commit_reaches_every_caller(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("before", "safe"))
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    connection = writer._lend().__enter__()  # type: ignore[attr-defined]
    connection.set_commit_hook(lambda: True)  # type: ignore[attr-defined]
    outcomes = write_together(store, [[Put(note(f"n{place}", f"lost {place}"))] for place in range(3)])
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    connection.set_commit_hook(None)  # type: ignore[attr-defined]
    assert store.records.fetch(["n0", "n1", "n2"]) == []
    put(store, note("after", "works again"))
    assert store.care.stats().memories == 2
    assert store.care.check() == []
    store.close()


def test_a_full_disk_is_a_typed_error_and_keeps_what_was_there(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("before", "safe"))
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    connection = writer._lend().__enter__()  # type: ignore[attr-defined]
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count={pages + 2}").fetchall()
    with pytest.raises(StoreUnavailable, match="disk is full"):
        put(store, note("big", "word " * 100_000))
    connection.execute("PRAGMA max_page_count=1000000").fetchall()
    put(store, note("after", "fits"))
    assert [memory.id for memory in store.records.fetch(["before", "big", "after"])] == ["before", "after"]
    assert store.care.check() == []
    store.close()


def test_a_lock_held_too_long_is_a_typed_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    first, second = open_sqlite(path), open_sqlite(path, wait_s=0.2)
    held = Held(first)
    with pytest.raises(StoreUnavailable, match="another process"):
        put(second, note("a", "waits in vain"))
    held.release()
    put(second, note("b", "goes through"))
    assert [memory.id for memory in first.records.fetch(["a", "b"])] == ["b"]
    first.close()
    second.close()


def test_readers_do_not_wait_for_the_writer(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "readable"))
    held = Held(store)
    assert store.records.fetch(["a"])[0].content == "readable"
    assert store.text is not None
    assert store.text.frequencies(["readabl"]) == [1]
    held.release()
    store.close()


def _many_writes(path: str, name: str, count: int, answers: object) -> None:
    failures: list[str] = []
    store = open_sqlite(path)

    def write(thread: int) -> None:
        for number in range(count):
            try:
                store.records.write([Put(note(f"{name}-{thread}-{number}", f"note {number} of {name} {thread}"))])
            except RecollectError as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    answers.put(failures)  # type: ignore[attr-defined]


def test_writers_in_many_processes_are_never_locked_out(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path, answers = tmp_path / "s.db", context.Queue()
    open_sqlite(path).close()
    workers = [context.Process(target=_many_writes, args=(str(path), f"p{n}", 10, answers)) for n in range(3)]
    for worker in workers:
        worker.start()
    assert [answers.get(timeout=120) for _ in workers] == [[], [], []]
    for worker in workers:
        worker.join()
    store = open_sqlite(path)
    assert store.care.stats().memories == 120
    assert store.care.check() == []
    store.close()


def test_a_counter_raised_by_compare_and_set_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    stores = [open_sqlite(path), open_sqlite(path)]
    put(stores[0], note("counter", "0"))

    def raise_it(store: Store) -> None:
        done = 0
        while done < 10:
            memory = store.records.fetch(["counter"])[0]
            try:
                store.records.write([Put(note("counter", str(int(memory.content) + 1)), memory.version)])
                done += 1
            except Conflict:
                continue

    threads = [threading.Thread(target=raise_it, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    final = stores[0].records.fetch(["counter"])[0]
    assert (final.content, final.version) == ("40", 41)
    for store in stores:
        store.close()


def test_apsw_is_the_only_sqlite_here() -> None:
    assert apsw.sqlite_lib_version() >= "3.51.3"


def test_the_writer_merges_the_full_text_a_little_at_every_group(tmp_path: Path) -> None:
    """FTS5 left to itself lets sixteen segments come together, or merges hundreds of pages in one commit."""
    store = open_sqlite(tmp_path / "s.db")
    look = apsw.Connection(str(tmp_path / "s.db"))
    assert {("automerge", 0), ("usermerge", 8)} <= set(look.execute("SELECT * FROM fulltext_config").fetchall())
    segments: list[int] = []
    for group in range(40):
        put(store, *(note(f"n{group}-{place}", f"text {group} {place} word{place}") for place in range(16)))
        # FTS5 numbers its pages by segment in the high bits.
        segments.append(int(look.execute("SELECT count(DISTINCT id >> 37) FROM fulltext_data WHERE id >= 1 << 37").get))
    assert max(segments) < 12
    assert store.care.check() == []
    look.close()
    store.close()


def test_merging_that_fails_is_told_to_whoever_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, *(note(f"n{place}", f"text {place}") for place in range(16)))  # the next transaction begins with merging

    def fail(writing: Writing) -> None:
        raise apsw.FullError

    with monkeypatch.context() as broken:
        broken.setattr(Writing, "merge", fail)
        with pytest.raises(StoreUnavailable, match="disk is full"):
            put(store, note("lost", "not written"))
    put(store, note("after", "works again"))
    assert [memory.id for memory in store.records.fetch(["lost", "after"])] == ["after"]
    assert store.care.check() == []
    store.close()


def test_changes_that_are_refused_after_merging_leave_nothing(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, *(note(f"n{place}", f"text {place}") for place in range(16)))
    with pytest.raises(Conflict):
        put(store, note("lost", "not written"), note("n0", "a second time"))
    put(store, note("after", "works again"))
    assert [memory.id for memory in store.records.fetch(["lost", "after"])] == ["after"]
    assert store.care.check() == []
    store.close()


def test_merging_while_callers_are_waited_for_ends_if_they_do_not_come_back(tmp_path: Path) -> None:
    first, second = open_sqlite(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db", wait_s=1.0)
    texts = [[Put(note(f"{one}-{two}", f"text {one} {two}")) for two in range(8)] for one in range(3)]
    assert write_together(first, [*texts]) == [None] * 3
    put(second, note("other", "the gate is open, and no transaction is"))
    first.close()
    assert second.care.stats().memories == 25
    assert second.care.check() == []
    second.close()


def test_callers_are_answered_before_the_writer_waits_for_another_process(tmp_path: Path) -> None:
    """It begins the next transaction before it answers, in order to merge; but it lets nobody wait for others."""
    store, others = open_sqlite(tmp_path / "s.db"), Gate(tmp_path / "s.db.lock", 30)
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    commit, leave = writer._commit, contextlib.ExitStack()  # type: ignore[attr-defined]

    def commit_and_lose_the_gate(group: Group, callers: int, pause_s: float) -> float:
        took_s = commit(group, callers, pause_s)
        if len(group.jobs) > 1:
            leave.enter_context(others.passage())
        return took_s

    writer._commit = commit_and_lose_the_gate  # type: ignore[method-assign]
    texts = [[Put(note(f"{one}-{two}", f"text {one} {two}")) for two in range(8)] for one in range(3)]
    assert write_together(store, [*texts]) == [None] * 3
    leave.close()
    put(store, note("after", "the gate is open again"))
    assert store.care.stats().memories == 25
    store.close()
    others.close()


def test_callers_are_answered_before_the_writer_waits_for_a_program_that_knows_no_gate(tmp_path: Path) -> None:
    store, foreign = open_sqlite(tmp_path / "s.db"), apsw.Connection(str(tmp_path / "s.db"))
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    commit = writer._commit  # type: ignore[attr-defined]

    def commit_and_lose_the_lock(group: Group, callers: int, pause_s: float) -> float:
        took_s = commit(group, callers, pause_s)
        if len(group.jobs) > 1:
            foreign.execute("BEGIN IMMEDIATE")
            writer._writing.connection.set_busy_timeout(600_000)  # type: ignore[attr-defined, union-attr]
        return took_s

    writer._commit = commit_and_lose_the_lock  # type: ignore[method-assign]
    texts = [[Put(note(f"{one}-{two}", f"text {one} {two}")) for two in range(8)] for one in range(3)]
    outcomes: list[list[RecollectError | None]] = []
    writing = threading.Thread(target=lambda: outcomes.append(write_together(store, [*texts])))
    writing.start()
    writing.join(20)
    answered = list(outcomes)
    foreign.execute("ROLLBACK")
    assert answered == [[None] * 3]
    put(store, note("after", "the lock is free again"))
    assert store.care.stats().memories == 25
    store.close()
    foreign.close()


def test_callers_are_answered_where_the_next_transaction_cannot_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_sqlite(tmp_path / "s.db")
    begin, refused = writing_begin, list[bool]()

    def refuse_to_merge(writing: Writing) -> None:
        if writing.is_unmerged:
            refused.append(True)
            raise apsw.BusyError
        begin(writing)

    texts = [[Put(note(f"{one}-{two}", f"text {one} {two}")) for two in range(8)] for one in range(3)]
    with monkeypatch.context() as broken:
        broken.setattr("recollect.stores.sqlite.writer._begin", refuse_to_merge)
        assert write_together(store, [*texts]) == [None] * 3
        line, deadline = store.records._writer._line, time.monotonic() + 30  # type: ignore[attr-defined]
        while time.monotonic() < deadline and (len(refused) < 2 or line._enough == NEVER):
            time.sleep(0.001)  # who comes before the writer sleeps again is refused together with the merging
        with pytest.raises(StoreUnavailable, match="stayed locked"):
            put(store, note("lost", "not written"))
    assert len(refused) == 4  # each twice: at once, and after the answer with patience
    put(store, note("after", "works again"))
    assert store.care.stats().memories == 25
    store.close()


def test_a_writer_that_cannot_start_is_a_typed_error_and_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_sqlite(tmp_path / "s.db", wait_s=1.0)

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        with pytest.raises(StoreUnavailable, match="no thread"):
            put(store, note("a", "not written"))
        store.records._writer.offer(lambda _: None)  # type: ignore[attr-defined]
    put(store, note("b", "written"))
    assert [memory.id for memory in store.records.fetch(["a", "b"])] == ["b"]
    store.close()


def test_words_that_another_process_took_off_the_list_after_a_failed_commit_are_listed_again(tmp_path: Path) -> None:
    store, other = open_sqlite(tmp_path / "s.db"), open_sqlite(tmp_path / "s.db")
    put(store, note("a", "heron"), note("b", "walrus"), note("c", "stays"))
    writer: Writer = store.records._writer  # type: ignore[attr-defined]
    connection = writer._lend().__enter__()  # type: ignore[attr-defined]
    connection.set_commit_hook(lambda: True)  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailable):
        store.records.write([Erase("a")])
    connection.set_commit_hook(None)  # type: ignore[attr-defined]
    other.records.write([Erase("b")])
    put(store, note("d", "another walrus"))
    assert store.care.check() == []
    for one in (store, other):
        one.close()


def test_who_finds_the_line_full_waits_for_a_place_and_is_told_when_none_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.sqlite.writer.QUEUE_LIMIT", 1)
    path = tmp_path / "s.db"
    with contextlib.closing(open_sqlite(path)) as patient:
        changes: list[list[Change]] = [[Put(note(f"n{number}", f"zebra {number}"))] for number in range(6)]
        held, waiting = Held(patient), [threading.Thread(target=patient.records.write, args=(one,)) for one in changes]
        for thread in waiting:
            thread.start()
        held.release()
        for thread in waiting:
            thread.join()
        assert patient.care.stats().memories == 6
    with contextlib.closing(open_sqlite(path, wait_s=0.02)) as hasty:
        held = Held(hasty)
        held.writer.offer(lambda writing: None)
        with pytest.raises(StoreUnavailable, match="too many writes"):
            put(hasty, note("late", "too late"))
        held.release()


def test_a_number_that_no_column_can_hold_is_the_callers_fault(tmp_path: Path) -> None:
    with contextlib.closing(open_sqlite(tmp_path / "s.db")) as store:
        put(store, note("a", "zebra"))
        with pytest.raises(InvalidInput, match="out of range"):
            store.records.write([Touch(("a",), EPOCH, 2**63)])
        assert store.records.fetch(["a"])[0].access_count == 0


KILLED_IN_THE_GATE = """
import os, sys, time
from pathlib import Path
from recollect.stores.sqlite.gate import Gate

gate = Gate(Path(sys.argv[1]), 5)
with gate.passage():
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_child_does_not_hold_the_gate_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    place = tmp_path / "s.db.lock"
    with subprocess.Popen([sys.executable, "-c", KILLED_IN_THE_GATE, str(place)], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        child = int(killed.stdout.readline())
        try:
            killed.wait(30)
            gate = Gate(place, 0.5)
            with gate.passage():
                os.kill(child, 0)  # it lives
            gate.close()
        finally:
            os.kill(child, signal.SIGKILL)
