"""The tables, and how an older file becomes a current one: numbered steps, forward only, each of them atomic."""

from __future__ import annotations

import glob
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from recollect.domain.errors import Corrupt, StoreTooNew, StoreUnavailable
from recollect.domain.gist import gist
from recollect.stores.checksums import tombstone_checksum
from recollect.stores.sqlite.connection import Connection, damaged, one, rows, set_pragma
from recollect.stores.sqlite.copies import copy_file
from recollect.stores.sqlite.derived import narrow_down, slim_down
from recollect.stores.sqlite.subjects import add_subjects
from recollect.stores.sqlite.unspaced import part_letters
from recollect.stores.tokens import MARK_NUMBER

APPLICATION_ID = 0x5243_4C54

FIRST = f"""
CREATE TABLE memories (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    project TEXT,
    session TEXT,
    type TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    version INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    sensitive INTEGER NOT NULL,
    confidence REAL NOT NULL,
    importance REAL NOT NULL,
    source TEXT NOT NULL,
    key TEXT,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    text_hash INTEGER NOT NULL,
    embedded INTEGER NOT NULL DEFAULT 0,
    content TEXT NOT NULL
) STRICT;
CREATE INDEX memories_created ON memories (namespace, created_at);
CREATE INDEX memories_project ON memories (namespace, project, created_at) WHERE project IS NOT NULL;
CREATE INDEX memories_session ON memories (namespace, session, created_at) WHERE session IS NOT NULL;
CREATE INDEX memories_accessed ON memories (accessed_at DESC);
CREATE INDEX memories_accessed_embedded ON memories (accessed_at DESC) WHERE embedded > 0;
CREATE UNIQUE INDEX memories_key ON memories (namespace, key) WHERE key IS NOT NULL;
CREATE INDEX memories_text ON memories (text_hash);

CREATE TABLE texts (
    row INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    content_tokens INTEGER NOT NULL,
    tags TEXT NOT NULL,
    scope TEXT NOT NULL,
    tokens BLOB NOT NULL
) STRICT;
CREATE VIEW indexed_texts (row, content, tags, scope) AS
    SELECT m.row, replace(m.content, char({MARK_NUMBER}), ' '), t.tags, t.scope
    FROM memories m JOIN texts t ON t.row = m.row;
CREATE VIRTUAL TABLE fulltext USING fts5 (
    content, tags, scope, content = 'indexed_texts', content_rowid = 'row', tokenize = 'porter unicode61'
);
INSERT INTO fulltext (fulltext, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (fulltext, 'row');

CREATE TABLE common_terms (term TEXT PRIMARY KEY, memories INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE words (number INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE namespaces (namespace TEXT PRIMARY KEY, memories INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('documents', 0), ('tokens', 0), ('words_removed', 0), ('purge', 0), ('purges', 0);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE models (
    model INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    dimension INTEGER,
    done INTEGER NOT NULL DEFAULT 0,
    saved INTEGER
) STRICT;
CREATE TABLE vectors (
    place INTEGER PRIMARY KEY,
    start INTEGER,
    stop INTEGER,
    checksum INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE vector_log (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, row INTEGER NOT NULL
) STRICT;
CREATE TABLE outbox (
    model INTEGER NOT NULL REFERENCES models (model) ON DELETE CASCADE,
    row INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    attempts INTEGER NOT NULL DEFAULT 0,
    retry_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (model, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_order ON outbox (model, attempts, row);
CREATE INDEX outbox_row ON outbox (row);

CREATE TABLE links (
    source INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    type TEXT NOT NULL,
    target INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (source, type, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_target ON links (target);
CREATE TABLE tombstones (
    namespace TEXT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (namespace, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

Migration = Callable[[Connection], None]


def _first(connection: Connection) -> None:
    for statement in FIRST.split(";\n"):
        if statement.strip():
            connection.execute(statement).fetchall()
    for name in ("identity", "tombstones"):
        connection.execute("INSERT INTO secrets VALUES (?, ?)", (name, secrets.token_bytes(32))).fetchall()


def _keep_apart(connection: Connection) -> None:
    """Which memories are not to be merged when they are embedded."""
    connection.execute("ALTER TABLE memories ADD COLUMN apart INTEGER NOT NULL DEFAULT 0").fetchall()


def _seal_tombstones(connection: Connection) -> None:
    """A damaged tombstone, or their key, lets come back what was forgotten: each gets a checksum over both."""
    connection.execute("ALTER TABLE tombstones ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0").fetchall()
    key = one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'")
    if key is not None:
        sums = [
            (tombstone_checksum(key, namespace, hashed), namespace, hashed)
            for namespace, hashed in rows(connection, "SELECT namespace, hash FROM tombstones")
        ]
        connection.executemany("UPDATE tombstones SET checksum = ? WHERE namespace = ? AND hash = ?", sums).fetchall()


def _number_gists(connection: Connection) -> None:
    """What found the same text finds all that may say the same. The index is made anew: sorted rows fill its pages."""
    connection.execute("DROP INDEX memories_text").fetchall()
    cast(Any, connection).create_scalar_function("gist", gist, 1, deterministic=True)
    connection.execute("UPDATE memories SET text_hash = gist(content)").fetchall()
    cast(Any, connection).create_scalar_function("gist", None, 1)
    connection.execute("CREATE INDEX memories_text ON memories (text_hash)").fetchall()


# Step n takes a file from version n to n + 1. Released steps are never edited.
MIGRATIONS: tuple[Migration, ...] = (
    _first,
    add_subjects,
    slim_down,
    narrow_down,
    part_letters,
    _keep_apart,
    _seal_tombstones,
    _number_gists,
)


def version_of(connection: Connection) -> int:
    """The file's schema version; Corrupt for files of other programs."""
    version = int(one(connection, "PRAGMA user_version"))
    application = int(one(connection, "PRAGMA application_id"))
    if application == APPLICATION_ID:
        if version < 1:
            raise damaged()
        return version
    if application == 0 and version == 0 and one(connection, "SELECT count(*) FROM sqlite_schema") == 0:
        return 0
    raise Corrupt("the file belongs to another program", "choose another file for the store")


def require_known(version: int, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Leave a file alone that a newer recollect wrote."""
    if version > len(steps):
        raise StoreTooNew(
            f"the store has schema version {version}, this recollect knows {len(steps)}", "upgrade recollect"
        )


def require_current(version: int, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Leave a file alone that would have to be migrated and must not be written."""
    require_known(version, steps)
    if version < len(steps):
        raise StoreUnavailable(
            f"the store has schema version {version} and cannot be read as it is",
            "let `recollect doctor` open it where it can be written, which migrates it",
        )


def migrate(connection: Connection, path: Path | None, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the file to the current version, holding the gate: whoever comes second finds nothing left to do."""
    version = version_of(connection)
    require_known(version, steps)
    if 0 < version < len(steps) and path is not None:
        _copy_before(connection, path.with_name(f"{path.name}.v{version}.backup"))
    for number in range(version, len(steps)):
        _step(connection, steps[number], number + 1)


def _step(connection: Connection, step: Migration, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE").fetchall()
    try:
        step(connection)
        set_pragma(connection, "application_id", APPLICATION_ID)
        set_pragma(connection, "user_version", version)
        connection.execute("COMMIT").fetchall()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK").fetchall()
        raise


def _copy_before(connection: Connection, target: Path) -> None:
    """The way back: a copy of the file as it was, made only once for each version."""
    if target.exists():
        return
    for torn in target.parent.glob(f"{glob.escape(target.name)}.*.tmp*"):  # nobody else migrates: of a killed process
        torn.unlink(missing_ok=True)
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    copy_file(connection, temporary)
    temporary.replace(target)
