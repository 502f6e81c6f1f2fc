"""Opening: the version gate, settings that stick, private files, foreign and newer files, migrations."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import apsw
import pytest
from sqlite_cases import note, put, text_of

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import Corrupt, RecollectError, StoreTooNew, StoreUnavailable
from recollect.domain.query import Phrase, Term
from recollect.domain.question import Filter
from recollect.stores import sqlite
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.connection import Connection, Readers, connect, require_safe_sqlite, set_pragma
from recollect.stores.sqlite.schema import MIGRATIONS, Migration, migrate
from recollect.stores.tokens import END, MARK, Tokenizer, narrow, piece, stream_of


@pytest.mark.parametrize("version", ["3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"])
def test_a_sqlite_that_can_lose_writes_is_refused(version: str) -> None:
    with pytest.raises(StoreUnavailable, match="WAL-reset"):
        require_safe_sqlite(version)


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.54.1", "4.0.0"])
def test_a_mended_sqlite_is_accepted(version: str) -> None:
    require_safe_sqlite(version)


def test_what_a_newer_recollect_has_migrated_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Whoever waited for the gate may find a version that it did not see before."""
    open_sqlite(tmp_path / "s.db").close()
    connection = connect(str(tmp_path / "s.db"))
    set_pragma(connection, "user_version", len(MIGRATIONS) + 1)
    with pytest.raises(StoreTooNew):
        migrate(connection, tmp_path / "s.db")
    connection.close()


def test_settings_are_read_back(tmp_path: Path) -> None:
    open_sqlite(tmp_path / "s.db").close()
    connection = connect(str(tmp_path / "s.db"))
    found = {
        name: connection.execute(f"PRAGMA {name}").get
        for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "trusted_schema")
    }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
        "trusted_schema": 0,
    }
    with pytest.raises(StoreUnavailable, match="kept"):
        set_pragma(connection, "no_such_pragma", 1)
    assert cast(apsw.Connection, connection).config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1), (
        "plans are made again and again"
    )
    connection.close()


def test_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_sqlite(tmp_path / "folder" / "s.db")
        put(store, note("a", "secret"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "folder").iterdir()}
        folder = stat.S_IMODE((tmp_path / "folder").stat().st_mode)
        store.close()
    finally:
        os.umask(before)
    assert folder == 0o700
    assert set(modes.values()) == {0o600}, modes
    assert {"s.db", "s.db-wal", "s.db.lock"} <= set(modes)


LOCKS_AS_THE_LAST = """
import fcntl, sys

with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
"""


def test_a_store_that_two_threads_make_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a file lets go of all locks that SQLite has on it in this process: others may then delete the log."""
    file, both_see_none = tmp_path / "s.db", threading.Barrier(2)
    look = sqlite._version  # pyright: ignore[reportPrivateUsage]

    def look_together(file: Path, migrations: Sequence[Migration]) -> int:
        version = look(file, migrations)
        both_see_none.wait()
        return version

    monkeypatch.setattr(sqlite, "_version", look_together)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(open_sqlite, [file, file])
    command = [sys.executable, "-c", LOCKS_AS_THE_LAST, str(file)]
    other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "BlockingIOError" in other.stderr
    first.close()
    second.close()
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize(
    "content", [b"this is a shopping list, no database at all" * 30, b"SQLite format 3\0" + b"\7" * 5000]
)
def test_garbage_is_no_store(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        open_sqlite(path)
    assert path.read_bytes() == content


def test_a_foreign_database_stays_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="another program"):
        open_sqlite(path)
    assert path.read_bytes() == before


def test_a_newer_file_stays_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_sqlite(path, migrations=(*MIGRATIONS, _add_table)).close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreTooNew):
            open_sqlite(path, read_only=read_only)
    assert path.read_bytes() == before


def _add_table(connection: Connection) -> None:
    connection.execute("CREATE TABLE extra (x)").fetchall()
    connection.execute("INSERT INTO extra VALUES (1)").fetchall()


def _fail_halfway(connection: Connection) -> None:
    _add_table(connection)
    raise apsw.IOError("the disk went away")


FORMAT_7 = "UPDATE memories SET text_hash = row"
FORMAT_6 = f"{FORMAT_7}; ALTER TABLE tombstones DROP COLUMN checksum"
FORMAT_5 = f"{FORMAT_6}; ALTER TABLE memories DROP COLUMN apart; PRAGMA user_version = 5"
FORMAT_3 = """
INSERT INTO fulltext (fulltext, rank) VALUES ('automerge', 4);
INSERT INTO fulltext (fulltext, rank) VALUES ('usermerge', 4);
PRAGMA user_version = 3;
"""
FORMAT_2 = """
CREATE TABLE old_texts (
    row INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE, content_tokens INTEGER NOT NULL,
    tags TEXT NOT NULL, scope TEXT NOT NULL, tokens BLOB NOT NULL, about INTEGER
) STRICT;
INSERT INTO old_texts SELECT t.row, t.content_tokens, i.tags, i.scope, t.tokens, t.about
    FROM texts t JOIN indexed_texts i ON i.row = t.row;
DROP VIEW indexed_texts;
DROP TABLE texts;
ALTER TABLE old_texts RENAME TO texts;
CREATE INDEX texts_about ON texts (about) WHERE about IS NOT NULL;
CREATE VIEW indexed_texts (row, content, tags, scope) AS
    SELECT m.row, replace(m.content, char(1110727), ' '), t.tags, t.scope
    FROM memories m JOIN texts t ON t.row = m.row;
DROP INDEX memories_accessed_waiting;
DROP INDEX memories_accessed_embedded;
CREATE INDEX memories_accessed ON memories (accessed_at DESC);
CREATE INDEX memories_accessed_embedded ON memories (accessed_at DESC) WHERE embedded > 0;
PRAGMA user_version = 2;
"""
FORMAT_1 = "DROP INDEX texts_about; ALTER TABLE texts DROP COLUMN about; PRAGMA user_version = 1"


def make_older(path: Path, *steps: str) -> None:
    """Turn a current file into one of format 3, and then of an older one."""
    with closing(connect(str(path))) as connection:
        tokenizer = Tokenizer(connection)
        for row, content, tags in connection.execute("SELECT row, content, tags FROM indexed_texts").fetchall():
            wide = tokenizer.text(content, tags).stream
            connection.execute("UPDATE texts SET tokens = ? WHERE row = ?", (wide, row)).fetchall()
        for step in (FORMAT_5, FORMAT_3, *steps):
            for statement in filter(str.strip, step.split(";")):
                connection.execute(statement).fetchall()


def test_an_older_file_learns_what_its_memories_are_about(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "Mars\nA planet."), note("b", "x", metadata={"title": "The Moon"}), note("c", "no subject"))
    store.close()
    make_older(path, FORMAT_2, FORMAT_1)
    store = open_sqlite(path)
    assert store.text is not None
    found = store.text.about([("mars",), ("moon",), ("no", "subject")], Filter(), 5)
    assert found == {("mars",): ["a"], ("moon",): ["b"]}
    assert store.care.check() == []
    store.close()


def test_an_older_file_loses_only_what_can_be_derived(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(
        store,
        note("a", f"red{MARK}boat", tags=("sea side", f"x{MARK}y"), project="p", session="s"),
        note("b", "red barn", type="decision", namespace="other"),
        note("c", "red door", tags=("sea side",)),
    )
    store.close()
    with closing(connect(str(path))) as new:
        streams = new.execute("SELECT row, content_tokens, about, tokens FROM texts").fetchall()
    make_older(path, FORMAT_2)
    with closing(connect(str(path))) as before:
        indexed = before.execute("SELECT * FROM indexed_texts ORDER BY row").fetchall()
    store = open_sqlite(path)
    assert (tmp_path / "s.db.v2.backup").exists()
    with closing(connect(str(path))) as after:
        assert after.execute("SELECT * FROM indexed_texts ORDER BY row").fetchall() == indexed
        assert after.execute("SELECT * FROM texts").fetchall() == streams
    assert store.care.check() == []
    red = text_of(store).match(Term("red"), Filter(tags=("sea side",)), 5)
    assert sorted(red.ids) == ["a", "c"]
    assert [hit.id for hit in store.records.recent(Filter(namespace="other"), 5, embedded=False)] == ["b"]
    put(store, note("d", "red fox"))
    store.records.write([Erase("a"), Erase("c")])
    assert store.care.check() == []
    store.close()


def index_runs_as_words(path: Path) -> None:
    """Turn a current file into one of format 4, in which a run of letters without spaces is a word."""
    with closing(connect(str(path))) as connection:
        tokenize = cast(apsw.Connection, connection).fts5_tokenizer("porter", ["unicode61"])
        total = 0
        for row, content, tags, scope, raw, listed in connection.execute(
            "SELECT i.*, m.content, m.tags FROM indexed_texts i JOIN memories m ON m.row = i.row"
        ).fetchall():
            columns = raw.replace(MARK, " "), " ".join(json.loads(listed))
            first, second = (
                [
                    str(token[0])
                    for token in tokenize(one.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
                ]
                for one in columns
            )
            connection.execute(
                "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) VALUES ('delete', ?, ?, ?, ?)",
                (row, content, tags, scope),
            ).fetchall()
            sql = "INSERT INTO fulltext (rowid, content, tags, scope) VALUES (?, ?, ?, ?)"
            connection.execute(sql, (row, *columns, scope)).fetchall()
            stream = narrow(stream_of(b"".join([*map(piece, first), END, *map(piece, second), END])))
            sql = "UPDATE texts SET content_tokens = ?, tokens = ? WHERE row = ?"
            connection.execute(sql, (len(first), stream, row)).fetchall()
            words = [(word,) for word in {*first, *second}]
            connection.executemany("INSERT OR IGNORE INTO words (word) VALUES (?)", words)
            total += len(first) + len(second)
        connection.execute("DELETE FROM words WHERE length(word) = 1 AND word > 'z'").fetchall()
        connection.execute("UPDATE counters SET value = ? WHERE name = 'tokens'", (total,)).fetchall()
        for statement in filter(str.strip, f"{FORMAT_5};{FORMAT_4}".split(";")):
            connection.execute(statement).fetchall()


FORMAT_4 = """
DROP VIEW indexed_texts;
CREATE VIEW indexed_texts (row, content, tags, scope) AS
    SELECT m.row, replace(m.content, char(1110727), ' '), indexed_tags(m.tags),
        indexed_scope(m.namespace, m.project, m.session, m.type, m.tags)
    FROM memories m JOIN texts t ON t.row = m.row;
PRAGMA user_version = 4;
"""


def test_an_older_file_learns_to_find_words_in_runs_without_spaces(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", f"长江{MARK}是河流", tags=("中国地理", "map")), note("b", "a plain text"), note("c", "กรุงเทพ"))
    store.close()
    today = everything(path)
    index_runs_as_words(path)
    assert everything(path) != today
    store = open_sqlite(path)
    assert store.care.check() == [] and store.care.stats().schema_version == len(MIGRATIONS)
    for word, ids in {"长江": ["a"], "地理": ["a"], "map": ["a"], "plain": ["b"], "เทพ": ["c"]}.items():
        assert list(text_of(store).match(Term(word), Filter(), 5).ids) == ids
    with closing(connect(str(path))) as connection:
        long = connection.execute("SELECT word FROM words WHERE length(word) > 1 ORDER BY word").fetchall()
        assert long == [("map",), ("plain",), ("text",)], "a run stays behind as a word"
    store.close()
    after = everything(path)
    assert all(after[name] == today[name] for name in today if name != "words"), "not as it would be written today"


@pytest.mark.parametrize("older", [(), (FORMAT_2,), (FORMAT_2, FORMAT_1)])
def test_a_migrated_file_is_the_one_that_would_be_written_today(tmp_path: Path, older: tuple[str, ...]) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "A red boat, a red barn", tags=("sea side", "Straße")), note("b", ""), note("c", "Mars\nis"))
    store.close()
    today = everything(path)
    make_older(path, *older)
    assert everything(path) != today
    open_sqlite(path).close()
    assert everything(path) == today
    with closing(connect(str(path))) as connection:  # four bytes for each token, and one boundary
        assert connection.execute("SELECT sum(length(tokens)) FROM texts").get == 4 * (10 + 1 + 3)
    store = open_sqlite(path)
    red = text_of(store).match(Phrase(("red", "boat")), Filter(), 5)
    assert (red.ids, red.counts.sum()) == (("a",), 1)
    assert store.care.check() == []
    store.close()


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the tables hold, and how they are made."""
    with closing(connect(str(path))) as connection:
        made = connection.execute("SELECT name, replace(sql, '\"', '') FROM sqlite_schema ORDER BY name").fetchall()
        version = connection.execute("PRAGMA user_version").fetchall()
        tables = ("memories", "texts", "indexed_texts", "words", "counters", "vocabulary", "fulltext_config")
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    return {"made": made, "version": version, **rows}


@pytest.mark.covers("two-stage.index")
def test_a_migration_keeps_the_data_and_a_copy_from_before(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "kept over the years"))
    store.close()
    store = open_sqlite(path, migrations=(*MIGRATIONS, _add_table))
    assert [memory.id for memory in store.records.fetch(["a"])] == ["a"]
    assert store.care.stats().schema_version == len(MIGRATIONS) + 1
    store.close()
    copy = open_sqlite(tmp_path / f"s.db.v{len(MIGRATIONS)}.backup")
    assert copy.records.fetch(["a"])[0].content == "kept over the years"
    copy.close()


@pytest.mark.covers("two-stage.index")
def test_a_failed_migration_leaves_the_old_version(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "kept"))
    store.close()
    with pytest.raises(StoreUnavailable):
        open_sqlite(path, migrations=(*MIGRATIONS, _fail_halfway))
    store = open_sqlite(path)
    assert store.care.stats().schema_version == len(MIGRATIONS)
    assert store.records.fetch(["a"])[0].content == "kept"
    assert store.care.check() == []
    store.close()
    store = open_sqlite(path, migrations=(*MIGRATIONS, _add_table))
    assert store.care.stats().schema_version == len(MIGRATIONS) + 1
    store.close()


def _open_and_write(path: str, name: str, start: object, answers: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    try:
        store = open_sqlite(path, migrations=(*MIGRATIONS, _add_table))
        store.records.write([Put(note(name, f"written by {name}"))])
        store.close()
        answers.put("ok")  # type: ignore[attr-defined]
    except BaseException as error:
        answers.put(repr(error))  # type: ignore[attr-defined]


@pytest.mark.covers("two-stage.index")
def test_many_processes_may_create_and_migrate_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "s.db"
    start, answers = context.Event(), context.Queue()
    workers = [context.Process(target=_open_and_write, args=(str(path), f"p{n}", start, answers)) for n in range(4)]
    for worker in workers:
        worker.start()
    start.set()
    assert [answers.get(timeout=60) for _ in workers] == ["ok"] * 4
    for worker in workers:
        worker.join()
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM extra").get == 1
    connection.close()
    store = open_sqlite(path, migrations=(*MIGRATIONS, _add_table))
    assert len(store.records.fetch([f"p{n}" for n in range(4)])) == 4
    store.close()


KILLED = """
import os, signal, sys
from recollect.domain.question import Filter
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.schema import MIGRATIONS
def dies(connection):
    connection.execute("CREATE TABLE extra (x)").fetchall()
    os.kill(os.getpid(), signal.SIGKILL)
open_sqlite(sys.argv[1], migrations=(*MIGRATIONS, dies))
"""


@pytest.mark.covers("two-stage.index")
def test_a_migration_killed_halfway_did_not_happen(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "still here"))
    store.close()
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    store = open_sqlite(path)
    assert store.records.fetch(["a"])[0].content == "still here"
    assert store.care.stats().schema_version == len(MIGRATIONS)
    store.close()


KILLED_COPYING = """
import os, signal, sys
from recollect.stores.sqlite import open_sqlite, schema
def dies(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = dies
open_sqlite(sys.argv[1], migrations=(*schema.MIGRATIONS, lambda connection: None))
"""


def test_a_killed_migration_leaves_no_copy_behind_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "the secret quetzal"))
    store.close()
    assert subprocess.run([sys.executable, "-c", KILLED_COPYING, str(path)], check=False).returncode == -9
    assert list(tmp_path.glob("*.tmp"))
    open_sqlite(path, migrations=(*MIGRATIONS, _add_table)).close()
    copies = {file.name for file in tmp_path.iterdir() if b"quetzal" in file.read_bytes()}
    assert copies == {"s.db", f"s.db.v{len(MIGRATIONS)}.backup"}


@pytest.mark.covers("two-stage.index")
def test_the_recency_index_holds_only_embedded_memories(tmp_path: Path) -> None:
    open_sqlite(tmp_path / "s.db").close()
    connection = apsw.Connection(str(tmp_path / "s.db"))
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'memories_accessed_embedded'").get
    assert "(accessed_at) WHERE embedded > 0" in sql
    plan = connection.execute(
        "EXPLAIN QUERY PLAN SELECT id FROM memories WHERE embedded > 0 ORDER BY accessed_at DESC LIMIT 200"
    ).fetchall()
    assert "memories_accessed_embedded" in plan[0][3]
    connection.close()


def test_reading_only_reads(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writer = open_sqlite(path)
    put(writer, note("a", "old news"))
    reader = open_sqlite(path, read_only=True)
    assert reader.records.fetch(["a"])[0].content == "old news"
    put(writer, note("b", "fresh news"))
    assert text_of(reader).frequencies(["fresh", *text_of(reader).tokens("news")]) == [1, 2]
    with pytest.raises(StoreUnavailable, match="reading only"):
        put(reader, note("c", "never"))
    reader.close()
    writer.close()


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        open_sqlite(tmp_path / "none.db", read_only=True)


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable) as caught:
        open_sqlite(tmp_path / "file" / "s.db")
    assert caught.value.hint


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    store.close()
    store.close()
    for attempt in (lambda: store.records.fetch(["a"]), lambda: put(store, note("a", "late"))):
        with pytest.raises(RecollectError, match="closed"):
            attempt()


@pytest.mark.parametrize("older", [(), (FORMAT_2,), (FORMAT_2, FORMAT_1)])
def test_an_older_file_is_not_read_as_if_it_were_a_current_one(tmp_path: Path, older: tuple[str, ...]) -> None:
    path = tmp_path / "s.db"
    open_sqlite(path).close()
    make_older(path, *older)
    with pytest.raises(StoreUnavailable, match="schema version") as caught:
        open_sqlite(path, read_only=True)
    assert "doctor" in caught.value.hint
    open_sqlite(path).close()
    open_sqlite(path, read_only=True).close()


def test_a_file_that_a_newer_version_migrated_meanwhile_is_written_no_more(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "by the old one"))
    newer = open_sqlite(path, migrations=(*MIGRATIONS, _add_table))
    put(newer, note("b", "by the new one"))
    with pytest.raises(StoreTooNew):
        put(store, note("c", "in the old way"))
    put(newer, note("d", "by the new one"))
    assert [memory.id for memory in newer.records.fetch(["a", "b", "c", "d"])] == ["a", "b", "d"]
    for one in (store, newer):
        one.close()


def test_what_ended_a_reading_is_told_and_not_that_it_has_ended(tmp_path: Path) -> None:
    open_sqlite(tmp_path / "s.db").close()
    readers = Readers(str(tmp_path / "s.db"), read_only=False)
    with pytest.raises(StoreUnavailable, match="disk is full"), readers.reading() as connection:
        connection.execute("ROLLBACK")  # as SQLite does where the disk fails
        raise apsw.FullError
    with readers.reading() as connection:
        assert connection.execute("SELECT count(*) FROM memories").get == 0
    readers.close()
