"""An embedder that remembers: a text is embedded once for each model, whatever is rebuilt, asked or swept later."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from recollect.encoders.wrapped import Wrapped
from recollect.ports import Embedder, Matrix, Vector

QUERY, DOCUMENT = 0, 1
AT_ONCE = 500


def file_of(folder: Path, model: str) -> Path:
    """The file of one model's vectors: a readable stem and a hash."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", model)[:40].strip(".-") or "model"
    return folder / f"{stem}-{hashlib.sha256(model.encode()).hexdigest()[:12]}.db"


class RememberingEmbedder(Wrapped):
    """Passes on to another embedder what it has not seen. Texts are kept as hashes only.

    Without a file it remembers questions for its own lifetime: nothing of a private store reaches the disk.
    """

    def __init__(self, inner: Embedder, file: Path | None) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._queries: dict[str, Vector] = {}
        self.embedded = 0
        """How many texts the model itself had to read."""
        self.query_ms: list[float] = []
        """What the model took for each question, in the runs that asked it."""
        self._file = file
        self._database = _opened(file)

    def embed_query(self, text: str) -> Vector:
        """The vector at hand, or the model's, with the time it took."""
        key = _hash(text)
        with self._lock:
            known = self._queries.get(key)
            if known is None:
                known = self._stored_query(key)
            if known is not None:
                return known
        began = perf_counter()
        vector = self._inner.embed_query(text)
        ms = (perf_counter() - began) * 1000
        with self._lock:
            self.embedded += 1
            self.query_ms.append(ms)
            self._queries[key] = vector
            self._put([(QUERY, key, _blob(vector), ms)])
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Rows at hand and rows of the model, in the order of the texts."""
        keys = [_hash(text) for text in texts]
        with self._lock:
            rows = self._stored(sorted(set(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if missing:
            fresh = self._inner.embed_documents(list(missing.values()))
            with self._lock:
                self.embedded += len(missing)
                self._put([(DOCUMENT, key, _blob(row), None) for key, row in zip(missing, fresh, strict=True)])
            rows |= dict(zip(missing, fresh, strict=True))
        return np.stack([rows[key] for key in keys])

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _stored_query(self, key: str) -> Vector | None:
        for blob, ms in self._rows("SELECT vector, ms FROM vectors WHERE kind = 0 AND text = ?", (key,)):
            if len(blob) == self._bytes:
                self._queries[key] = _vector(blob)
                self.query_ms.append(float(ms))
        return self._queries.get(key)

    def _stored(self, keys: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._rows(f"SELECT text, vector FROM vectors WHERE kind = 1 AND text IN ({marks})", some)
            found |= {str(text): _vector(blob) for text, blob in rows if len(blob) == self._bytes}
        return found

    @property
    def _bytes(self) -> int:
        return self.dimension * np.dtype("<f4").itemsize

    def _rows(self, query: str, values: Sequence[str]) -> list[Any]:
        """What is known; nothing where the file cannot be read."""
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                self._begin_anew()
            return []

    def _put(self, rows: Sequence[tuple[int, str, bytes, float | None]]) -> None:
        """What cannot be kept (a full disk, a folder that is only read) is embedded again next time."""
        try:
            with self._database as database:
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                self._begin_anew()

    def _begin_anew(self) -> None:
        self._database.close()
        self._database = _anew(self._file)


def _opened(file: Path | None) -> sqlite3.Connection:
    """The file, or memory alone where none can be made. A damaged file is begun anew: it is a cache."""
    if file is None:
        return _prepared(":memory:")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _prepared(file)
    except sqlite3.DatabaseError as error:
        return _anew(file) if _is_damage(error) else _prepared(":memory:")
    except OSError:
        return _prepared(":memory:")


def _anew(file: Path | None) -> sqlite3.Connection:
    try:
        for damaged in () if file is None else (file, file.with_name(f"{file.name}-journal")):
            damaged.unlink(missing_ok=True)
        return _prepared(file or ":memory:")
    except (OSError, sqlite3.DatabaseError):
        return _prepared(":memory:")


def _prepared(file: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=60, check_same_thread=False)
    try:
        # What a power cut takes away is embedded again.
        database.execute("PRAGMA synchronous = OFF")
        database.execute(
            "CREATE TABLE IF NOT EXISTS vectors"
            " (kind INTEGER, text TEXT, vector BLOB, ms REAL, PRIMARY KEY (kind, text)) WITHOUT ROWID"
        )
        database.execute("SELECT kind, text, vector, ms FROM vectors LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """No database, one with holes, or one with another table of that name."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _blob(vector: Vector) -> bytes:
    return np.asarray(vector, dtype="<f4").tobytes()


def _vector(blob: bytes) -> Vector:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)
