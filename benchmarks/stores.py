"""Filling recollect's store, and the bare tables that one would otherwise write: the same rows, the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import apsw
import numpy as np

from benchmarks.corpus import Corpus
from benchmarks.meaning import Floats
from benchmarks.timing import Once
from recollect.domain.changes import Put
from recollect.domain.memory import Memory, content_hash
from recollect.ports import Embedded, Store
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.changes import apply
from recollect.stores.sqlite.connection import connect
from recollect.stores.sqlite.ledger import Ledger, Writing
from recollect.stores.sqlite.lexicon import Lexicon

MODEL = "benchmark"
BATCH = 5_000

BARE_TABLE = (
    "CREATE TABLE memories (row INTEGER PRIMARY KEY, id TEXT UNIQUE, namespace TEXT, project TEXT, session TEXT,"
    " type TEXT, created_at INTEGER, updated_at INTEGER, accessed_at INTEGER, access_count INTEGER, version INTEGER,"
    " pinned INTEGER, sensitive INTEGER, confidence REAL, importance REAL, source TEXT, key TEXT, tags TEXT,"
    " metadata TEXT, content TEXT)"
)
BARE_INSERT = f"INSERT INTO memories VALUES ({', '.join('?' * 20)})"
BARE_TEXT = "CREATE VIRTUAL TABLE fulltext USING fts5 (content, tags, tokenize = 'porter unicode61')"


def write_memories(store: Store, corpus: Corpus) -> Once:
    """All memories, without vectors; only the writing is timed."""
    total = Once()
    for piece in corpus.memories():
        _write_piece(store, piece, total)
    return total


def _write_piece(store: Store, piece: Sequence[Memory], total: Once) -> None:
    for first in range(0, len(piece), BATCH):
        changes = [Put(memory) for memory in piece[first : first + BATCH]]
        with Once() as took:
            store.records.write(changes)
        total.wall, total.cpu = total.wall + took.wall, total.cpu + took.cpu


def write_side_by_side(store: Store, bare: apsw.Connection, corpus: Corpus) -> tuple[Once, Once]:
    """All memories into the store, and all rows with their full text into bare tables in one transaction; only the
    writing is timed. Piece by piece in turn: a machine that is slow for a while is slow for both."""
    ours, theirs, number = Once(), Once(), 1
    bare.execute("BEGIN").fetchall()
    for piece in corpus.memories():
        _write_piece(store, piece, ours)
        with Once() as took:
            rows = [bare_row(number + place, memory) for place, memory in enumerate(piece)]
            bare.executemany(BARE_INSERT, rows)
            bare.executemany(
                "INSERT INTO fulltext (rowid, content, tags) VALUES (?, ?, ?)",
                [(row[0], row[19], row[17]) for row in rows],
            )
        theirs.wall, theirs.cpu = theirs.wall + took.wall, theirs.cpu + took.cpu
        number += len(piece)
    with Once() as took:
        bare.execute("COMMIT").fetchall()
    theirs.wall, theirs.cpu = theirs.wall + took.wall, theirs.cpu + took.cpu
    return ours, theirs


def write_vectors(store: Store, corpus: Corpus, vectors: Floats) -> Once:
    """The vectors of all memories."""
    assert store.vectors is not None
    total, place = Once(), 0
    for texts in corpus.texts():
        entries = [
            Embedded(f"m{place + n:09d}", content_hash(text), vectors[place + n][None]) for n, text in enumerate(texts)
        ]
        place += len(texts)
        for first in range(0, len(entries), BATCH):
            with Once() as took:
                store.vectors.put(MODEL, entries[first : first + BATCH])
            total.wall, total.cpu = total.wall + took.wall, total.cpu + took.cpu
    return total


def bare_row(number: int, memory: Memory) -> tuple[object, ...]:
    """A memory as anybody's table would keep it."""
    scope = memory.scope
    created = int(memory.created_at.timestamp() * 1000)
    return (
        number, memory.id, scope.namespace, scope.project, scope.session, memory.type, created, created, created,
        memory.access_count, memory.version, int(memory.pinned), int(memory.sensitive), memory.confidence,
        memory.importance, memory.source, memory.key, " ".join(memory.tags), "{}", memory.content,
    )  # fmt: skip


def open_bare(path: Path | str) -> apsw.Connection:
    """The common way: WAL, FULL, one table and one FTS5 table."""
    connection = apsw.Connection(str(path))
    for statement in ("PRAGMA journal_mode=wal", "PRAGMA synchronous=FULL", BARE_TABLE, BARE_TEXT):
        connection.execute(statement).fetchall()
    return connection


def write_bare_row(connection: apsw.Connection, number: int, memory: Memory) -> None:
    """One row and its full text, committed."""
    with connection:
        row = bare_row(number, memory)
        connection.execute(BARE_INSERT, row)
        connection.execute("INSERT INTO fulltext (rowid, content, tags) VALUES (?, ?, ?)", (number, row[19], row[17]))


def open_waiting(path: Path | str) -> Store:
    """A new store in which a model waits for every memory, so that a write has its outbox row too."""
    store = open_sqlite(path)
    assert store.vectors is not None
    store.vectors.missing(MODEL, 1)
    return store


class SameRows:
    """Writes a memory as a plain programmer would who wants the same rows: one statement for each, one commit."""

    def __init__(self, path: Path) -> None:
        open_waiting(path).close()
        self._connection = connect(str(path))
        self._writing = Writing(self._connection, Lexicon())
        self._writing.refresh()

    def write(self, memory: Memory) -> None:
        """The row with its indexes, token stream, full text, words, outbox and counts."""
        writing = self._writing
        writing.ledger = Ledger()
        self._connection.execute("BEGIN IMMEDIATE")
        writing.merge()
        apply(Put(memory), writing)
        writing.settle(writing.ledger)
        self._connection.execute("COMMIT")
        writing.committed(writing.ledger)

    def close(self) -> None:
        self._connection.close()


def any_of(question: str) -> str:
    """The plain query: all words joined by OR."""
    return " OR ".join(f'"{word}"' for word in question.split())


def plain_search(connection: apsw.Connection, question: str, limit: int = 50, where: str = "") -> list[int]:
    """FTS5 as commonly used; the ids of the best memories, as row numbers."""
    sql = f"SELECT f.rowid FROM fulltext f{where} ORDER BY f.rank LIMIT ?" if where else (
        "SELECT rowid FROM fulltext WHERE fulltext MATCH ? ORDER BY rank LIMIT ?"
    )  # fmt: skip
    found = cast("list[tuple[int]]", connection.execute(sql, (any_of(question), limit)).fetchall())
    return [row for (row,) in found]


def float_scan(vectors: Floats, query: Floats, limit: int = 50, allowed: np.ndarray | None = None) -> list[int]:
    """numpy over all float vectors; row numbers from 1."""
    scores = vectors @ query
    if allowed is not None:
        scores = np.where(allowed, scores, -9)
    best = np.argpartition(-scores, limit - 1)[:limit] if limit < len(scores) else np.arange(len(scores))
    return (best[np.lexsort((best, -scores[best]))] + 1).tolist()


def reciprocal(lists: Sequence[Sequence[int]], k: int = 60, limit: int = 5) -> list[int]:
    """Reciprocal rank fusion, as everybody writes it."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for place, row in enumerate(ranked, start=1):
            scores[row] = scores.get(row, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda row: (-scores[row], row))[:limit]
