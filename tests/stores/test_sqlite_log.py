"""The write-ahead log stays short, and no commit does the copying."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest
from sqlite_cases import note, put, text_of

from recollect.domain.changes import Erase
from recollect.domain.errors import StoreUnavailable
from recollect.stores.sqlite import log, open_sqlite
from recollect.stores.sqlite.connection import Connection

PAGE = 8192 + 24


def log_pages(path: Path) -> int:
    return (path.with_name(f"{path.name}-wal").stat().st_size - 32) // PAGE


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that have copied the log, in order."""
    names: list[str] = []
    copy = log.copy

    def watched(connection: Connection) -> int:
        names.append(threading.current_thread().name)
        return copy(connection)

    monkeypatch.setattr(log, "copy", watched)
    return names


def test_a_long_log_is_copied_beside_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copying: list[str]
) -> None:
    monkeypatch.setattr(log, "SOON_PAGES", 60)
    store = open_sqlite(tmp_path / "s.db")
    for number in range(20):
        put(store, note(f"n{number}", f"zebra {number}"))
    for _ in range(10_000):  # the thread may be late, but not for ever
        if copying:
            break
        threading.Event().wait(0.001)
    store.close()
    assert copying and set(copying) == {"recollect-log"}


def test_the_log_is_started_anew_under_a_load_that_never_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copying: list[str]
) -> None:
    monkeypatch.setattr(log, "SOON_PAGES", 60)
    monkeypatch.setattr(log, "LATEST_PAGES", 120)
    monkeypatch.setattr(log, "LONGEST_PAGES", 240)
    copy = log.copy

    def copy_if_the_writer(connection: Connection) -> int:
        # The thread never gets done.
        return copy(connection) if threading.current_thread().name == "recollect-writer" else 0

    monkeypatch.setattr(log, "copy", copy_if_the_writer)
    store = open_sqlite(tmp_path / "s.db")
    for number in range(100):  # some two thousand pages
        put(store, note(f"n{number}", f"zebra number {number}"))
    assert log_pages(tmp_path / "s.db") < 400
    assert "recollect-writer" in copying
    assert text_of(store).frequencies(["zebra"]) == [100]
    store.close()


def test_the_writer_copies_only_what_the_thread_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SOON_PAGES", 200)
    monkeypatch.setattr(log, "LATEST_PAGES", 400)
    monkeypatch.setattr(log, "FEW_PAGES", 120)
    store = open_sqlite(tmp_path / "s.db")
    own: log.Log = store.records._writer._log  # type: ignore[attr-defined]
    copy, left, waiting = log.copy, list[tuple[str, int]](), threading.Event()

    def watched(connection: Connection) -> int:
        name, pages = threading.current_thread().name, own._pages  # type: ignore[attr-defined]
        left.append((name, pages - own._copied))  # type: ignore[attr-defined]
        if name == "recollect-writer":
            return copy(connection)
        # Under load there is always one more commit while it copies: what comes after this reader is left.
        reader = apsw.Connection(str(tmp_path / "s.db"))
        reader.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
        waiting.set()
        while own._pages == pages and not own._closing:  # type: ignore[attr-defined]
            threading.Event().wait(0.0001)
        waiting.clear()
        copied = copy(connection)
        reader.close()
        return copied

    def is_at_it() -> bool:
        """Whether the thread has something to do that does not wait for a commit."""
        is_wanted: int = own._wanted._value  # type: ignore[attr-defined]
        return bool(is_wanted) or (own.alone.locked() and not waiting.is_set())

    monkeypatch.setattr(log, "copy", watched)
    for number in range(200):  # some four thousand pages
        put(store, note(f"n{number}", f"zebra number {number}"))
        for _ in range(10_000):  # on a busy machine it may be late, and then this would be another story
            if not is_at_it():
                break
            threading.Event().wait(0.001)
    by_writer = [pages for name, pages in left if name == "recollect-writer"]
    assert by_writer and max(by_writer) <= 120
    assert log_pages(tmp_path / "s.db") < 1_000
    store.close()


def test_short_lives_beside_a_store_that_only_reads_leave_a_short_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody closes last, and no thread lives long enough to copy."""
    monkeypatch.setattr(log, "SOON_PAGES", 20)
    monkeypatch.setattr(log, "LATEST_PAGES", 80)
    reading = open_sqlite(tmp_path / "s.db")
    for number in range(30):
        assert reading.care.stats().memories == number
        writing = open_sqlite(tmp_path / "s.db")
        put(writing, note(f"n{number}", f"zebra number {number}"))
        writing.close()
    assert log_pages(tmp_path / "s.db") < 160
    reading.close()


def test_a_reader_that_stays_only_delays_the_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SOON_PAGES", 30)
    monkeypatch.setattr(log, "LATEST_PAGES", 60)
    monkeypatch.setattr(log, "LONGEST_PAGES", 60)  # a thread that is at it may not keep the writer from it
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("first", "zebra"))
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
    for number in range(30):
        put(store, note(f"n{number}", f"zebra number {number}"))
    assert reader.execute("SELECT count(*) FROM memories").get == 1
    grown = log_pages(path)
    reader.close()
    for number in range(30, 200):
        put(store, note(f"n{number}", f"zebra number {number}"))
    assert log_pages(path) < grown + 200
    assert store.care.stats().memories == 201
    store.close()


def test_a_thread_that_cannot_open_the_file_leaves_the_copying_to_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copying: list[str]
) -> None:
    def refused(*_: object, **__: object) -> Connection:
        raise StoreUnavailable("too many open files", "close some")

    monkeypatch.setattr(log, "SOON_PAGES", 30)
    monkeypatch.setattr(log, "LATEST_PAGES", 90)
    store = open_sqlite(tmp_path / "s.db")
    monkeypatch.setattr("recollect.stores.sqlite.connect", refused)
    for number in range(40):
        put(store, note(f"n{number}", f"zebra number {number}"))
    assert set(copying) == {"recollect-writer"}
    assert log_pages(tmp_path / "s.db") < 200
    store.close()


def test_what_was_erased_is_purged_after_the_thread_has_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that meets another one gives up; here it has to wait."""
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "the secret quetzal"), note("b", "something else"))
    entered, leave = threading.Event(), threading.Event()
    held = store.records._writer._log.alone  # type: ignore[attr-defined]

    def hold() -> None:
        with held:
            entered.set()
            leave.wait()

    copying = threading.Thread(target=hold)
    copying.start()
    entered.wait()
    erasing = threading.Thread(target=lambda: store.records.write([Erase("a", tombstone=False)]))
    erasing.start()
    erasing.join(0.3)
    assert erasing.is_alive()
    leave.set()
    erasing.join()
    copying.join()
    assert b"quetzal" not in path.read_bytes() + path.with_name("s.db-wal").read_bytes()
    store.close()


def test_without_threads_the_writer_lives_and_copies_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copying: list[str]
) -> None:
    monkeypatch.setattr(log, "SOON_PAGES", 30)
    monkeypatch.setattr(log, "LATEST_PAGES", 90)
    store = open_sqlite(tmp_path / "s.db")
    start = threading.Thread.start

    def start_the_last(thread: threading.Thread) -> None:
        if thread.name != "recollect-writer":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_the_last)
    for number in range(40):
        put(store, note(f"n{number}", f"zebra number {number}"))
    assert set(copying) == {"recollect-writer"}
    store.close()


def test_a_copy_that_fails_is_none_and_no_error(tmp_path: Path) -> None:
    """The writer and the thread copy outside of any caller's work: an error there would end them."""
    store = open_sqlite(tmp_path / "s.db")
    put(store, note("a", "zebra"))
    with store.records._readers.borrow() as connection:  # type: ignore[attr-defined]
        connection.execute("BEGIN; SELECT count(*) FROM memories").fetchall()  # in which SQLite copies nothing
        assert log.copy(connection) == 0
        connection.execute("ROLLBACK")
    store.close()
