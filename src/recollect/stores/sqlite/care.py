"""Keeping the file healthy: facts, check and repair, backup, routine work, settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from recollect.domain.errors import Corrupt, InvalidInput, RecollectError
from recollect.ports import Finding, Graves, StoreSize, StoreStats
from recollect.stores.graves import joined
from recollect.stores.sqlite.changes import dig, tombstone_secret
from recollect.stores.sqlite.checks import find_all
from recollect.stores.sqlite.connection import BUSY_MS, Connection, Readers, one, rows, whole
from recollect.stores.sqlite.copies import back_up, belongs_to
from recollect.stores.sqlite.counting import count_projects, count_types
from recollect.stores.sqlite.gaps import GAPS
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.records import run
from recollect.stores.sqlite.repairs import Broken, find_broken, repairs
from recollect.stores.sqlite.scan import Scans, note_saved
from recollect.stores.sqlite.schema import version_of
from recollect.stores.sqlite.writer import Writer

MERGED_PAGES = 500
"""The bound of one index merge."""
MERGED_AT_ONCE = 64
"""In so small steps, because the file grows by about half of a step before the pages that were merged are free."""
NAMESPACES = "SELECT namespace, memories FROM namespaces ORDER BY namespace"


class SqliteCare:
    """The Care port. `path` is None for a store in memory."""

    def __init__(self, readers: Readers, writer: Writer | None, scans: Scans, path: Path | None) -> None:
        self._readers = readers
        self._writer = writer
        self._scans = scans
        self._path = path

    def size(self) -> StoreSize:
        with self._readers.reading() as connection:
            return _size(connection)

    def stats(self) -> StoreStats:
        with self._readers.reading() as connection:
            size = _size(connection)
            return StoreStats(
                kind="sqlite",
                location=":memory:" if self._path is None else str(self._path),
                memories=size.memories,
                tombstones=one(connection, "SELECT count(*) FROM tombstones"),
                links=one(connection, "SELECT count(*) FROM links"),
                vectors=self._scans.count(connection),
                bytes=size.bytes,
                schema_version=version_of(connection),
                engine_version=apsw.sqlite_lib_version(),
                types=count_types(connection, size.namespaces),
                projects=count_projects(connection),
                namespaces=size.namespaces,
            )

    def check(self, repair: bool = False) -> list[Finding]:
        with self._readers.reading() as connection:
            findings = find_all(connection)
            broken = find_broken(connection) if repair and findings else Broken()
        if self._writer is None or not repair or not findings:
            return findings
        try:
            for work in repairs({finding.kind for finding in findings}, broken):
                self._writer.run(work)
        except RecollectError:
            return findings
        with self._readers.reading() as connection:
            left = find_all(connection)
        remaining = {(finding.kind, finding.detail) for finding in left}
        return [replace(finding, repaired=(finding.kind, finding.detail) not in remaining) for finding in findings]

    def backup(self, path: Path) -> None:
        if self._path is None:
            raise InvalidInput("a store in memory has no file to copy", "export it as JSON lines instead")
        if belongs_to(path, self._path):
            raise InvalidInput(f"{path} is the store itself", "give another file", "path")
        with self._readers.reading() as connection:
            # Look once, and all of it is one state; otherwise every commit lets the copy begin anew.
            one(connection, "SELECT count(*) FROM sqlite_schema")
            back_up(connection, path)

    def tidy(self) -> dict[str, int]:
        if self._writer is None:
            return {}

        with self._readers.reading() as connection:
            purges, saved = counter(connection, "purges"), self._scans.save(connection)

        def work(writing: Writing) -> dict[str, int]:
            note_saved(writing, saved, purges)
            steps = [_merge(writing.connection) for _ in range(MERGED_PAGES // MERGED_AT_ONCE)]
            writing.connection.execute("PRAGMA analysis_limit=400").fetchall()
            writing.connection.execute("PRAGMA optimize").fetchall()
            writing.ledger.gaps = counter(writing.connection, GAPS) > 0
            writing.ledger.purge |= writing.ledger.gaps or counter(writing.connection, "purge") > 0
            return {"merged": int(any(steps)), "purged": int(writing.ledger.purge), "saved": len(saved)}

        done: dict[str, int] = self._writer.run(work)
        with self._readers.borrow() as connection:
            log_pages, copied = _copy_log(connection)
            _empty_log(connection)
        return {**done, "log_pages": max(log_pages, 0), "checkpointed_pages": max(copied, 0)}

    def settings(self) -> dict[str, Any]:
        with self._readers.borrow() as connection:
            found = rows(connection, "SELECT name, value FROM settings ORDER BY name")
        return {name: _setting(name, value) for name, value in found}

    def graves(self) -> Graves:
        with self._readers.reading() as connection:
            return _graves(connection)

    def bury(self, graves: Graves) -> None:
        def work(writing: Writing) -> None:
            all_of_them = joined(_graves(writing.connection), graves)
            writing.connection.execute("UPDATE secrets SET value = ? WHERE name = 'tombstones'", (all_of_them.key,))
            dig(writing.connection, all_of_them.key, sorted(graves.hashes))
            writing.reload()

        run(self._writer, work)


def _merge(connection: Connection) -> bool:
    """Merge a bit of the full-text index; whether there was something to merge: FTS5 then changes two rows or more."""
    before = connection.total_changes()
    connection.execute("INSERT INTO fulltext (fulltext, rank) VALUES ('merge', ?)", (MERGED_AT_ONCE,))
    return connection.total_changes() - before >= 2


def _copy_log(connection: Connection) -> tuple[int, int]:
    """The pages of the log and how many were copied; none while somebody else is at it, the writer's own thread say."""
    try:
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:
        return 0, 0


def _empty_log(connection: Connection) -> None:
    """Give the space of the log back, unless somebody is using it."""
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return
    finally:
        connection.set_busy_timeout(BUSY_MS)


def _graves(connection: Connection) -> Graves:
    return Graves(tombstone_secret(connection), frozenset(rows(connection, "SELECT namespace, hash FROM tombstones")))


def _setting(name: str, value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError) as error:
        raise Corrupt(f"the setting {name} is damaged", "set it anew, or restore a backup") from error


def _size(connection: Connection) -> StoreSize:
    return StoreSize(
        {str(name): whole(memories) for name, memories in rows(connection, NAMESPACES)},
        one(connection, "PRAGMA page_count") * one(connection, "PRAGMA page_size"),
    )
