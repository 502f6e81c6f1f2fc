"""The scan indexes of one process, one for each model: derived from the vectors in the file, following the vector log.

A saved index (a file beside the store) spares a process the reading of all vectors. It belongs to the log entry that
`models.saved` names, and it is thrown away with every erasure, because it still knows what was erased.
"""

from __future__ import annotations

import glob
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import Corrupt
from recollect.domain.question import Filter
from recollect.ports import Vector
from recollect.stores.codes import Allowed, CodeIndex
from recollect.stores.places import of_memory, of_model, row_of
from recollect.stores.sqlite.connection import CACHE, Connection, damaged, one, rows
from recollect.stores.sqlite.finding import SPARE_EXCLUDED
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.outbox import logged_span
from recollect.stores.sqlite.postings import Postings
from recollect.stores.sqlite.scopes import FEW_SHARE, NOBODY, rows_in_scope, without_idle_times

LOADED_ROWS = 2_048
PASSING_CACHE = -2_000
"""For vectors that are read once: pages are used again before they leave the processor's cache."""
REPLACED_ROWS = 500
TABLE_SHARE = 50
WORTH_SAVING = 20_000

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Scan:
    """One model's index, and the log entries up to which it is true and up to which it is saved."""

    index: CodeIndex
    sequence: int
    saved: int = -1


class Scans:
    """All models' scans, shared by the threads of a process. `path` is the store's file, None in memory."""

    def __init__(self, path: Path | None, postings: Postings) -> None:
        self.path = path
        self._postings = postings
        self._lock = threading.Lock()
        self._scans: dict[int, Scan] = {}

    def nearest(self, connection: Connection, model: int, vector: Vector, filter: Filter, limit: int) -> list[int]:
        """The places of the vectors in scope that are worth an exact look: those of the best `limit` and some more."""
        with self._lock:
            scan = self._current(connection, model, len(vector))
        if not len(scan.index):
            return []
        allowed, refused = _allowed(connection, self._postings, filter)
        wanted = limit + min(len(filter.exclude), SPARE_EXCLUDED)
        return scan.index.nearest(vector, wanted, allowed, refused)[0].tolist()

    def count(self, connection: Connection) -> int:
        """How many vectors there are of all models; those of a scan at hand are not read."""
        total = 0
        for model, dimension in rows(connection, "SELECT model, dimension FROM models"):
            if model in self._scans and dimension is not None:
                with self._lock:
                    total += len(self._current(connection, model, dimension).index)
            else:
                try:
                    sql = "SELECT count(*) FROM vectors WHERE place BETWEEN ? AND ?"
                    total += one(connection, sql, of_model(model))
                except OverflowError:
                    raise damaged() from None
        return total

    def _current(self, connection: Connection, model: int, dimension: int) -> Scan:
        """The model's scan as of this connection's view of the file, or a later one."""
        first, last = logged_span(connection)
        scan = self._scans.get(model)
        if scan is None or scan.sequence < first - 1 or scan.index.dimension != dimension:
            scan = self._loaded(connection, model, dimension)
        if scan is None or scan.sequence < first - 1:
            scan = Scan(CodeIndex(dimension), last)
            _add_all(connection, model, scan.index)
        elif scan.sequence < last:
            _follow(connection, model, scan, last)
        self._scans[model] = scan
        return scan

    def _loaded(self, connection: Connection, model: int, dimension: int) -> Scan | None:
        saved = one(connection, "SELECT saved FROM models WHERE model = ?", (model,))
        if self.path is None or saved is None:
            return None
        index = CodeIndex.load(sidecar(self.path, model), _stamp(connection, model, saved), dimension)
        return None if index is None else Scan(index, saved, saved)

    def save(self, connection: Connection, *, unsaved_only: bool = False) -> list[tuple[int, int]]:
        """Save the large indexes that changed; at which log entry which model, for `note_saved`.

        With `unsaved_only`, those that had to be built from all vectors, so that no other process has to do it again.
        """
        if self.path is None:
            return []
        saved: list[tuple[int, int]] = []
        with self._lock:
            for model, scan in self._scans.items():
                due = scan.saved < 0 if unsaved_only else scan.saved != scan.sequence
                dimension = one(connection, "SELECT dimension FROM models WHERE model = ?", (model,))
                if due and dimension is not None and len(scan.index) >= WORTH_SAVING:
                    now = self._current(connection, model, dimension)
                    now.saved = now.sequence  # before the attempt: a full disk must not be tried at every search
                    with suppress(OSError):  # which costs the next process the time to build it
                        now.index.save(sidecar(self.path, model), _stamp(connection, model, now.sequence))
                        saved.append((now.sequence, model))
        return saved


def note_saved(writing: Writing, saved: Sequence[tuple[int, int]], purges: int) -> None:
    """Make saved indexes known, unless something was erased meanwhile: the files may still know it, so they go."""
    if counter(writing.connection, "purges") == purges:
        writing.connection.executemany("UPDATE models SET saved = ? WHERE model = ?", saved)
    else:
        writing.ledger.purge = True


def sidecar(path: Path, model: int) -> Path:
    """The file of a saved index."""
    return path.with_name(f"{path.name}.{model}.codes")


def drop_sidecars(path: Path) -> None:
    """Throw the saved indexes away, also those that somebody did not live to finish: they hold erased vectors."""
    name = glob.escape(path.name)
    for pattern in (f"{name}.*.codes", f".{name}.*.codes.*"):
        for file in path.parent.glob(pattern):
            file.unlink(missing_ok=True)


def _stamp(connection: Connection, model: int, sequence: int) -> str:
    identity = one(connection, "SELECT hex(value) FROM secrets WHERE name = 'identity'")
    return f"{identity}:{model}:{sequence}"


def _allowed(connection: Connection, postings: Postings, filter: Filter) -> tuple[Allowed | None, Ints]:
    """The rows in scope, or for many of them a table to look them up; None for all but the rows beside it."""
    view = postings.view(connection)
    scope = rows_in_scope(connection, postings, without_idle_times(connection, filter), view, spare=SPARE_EXCLUDED)
    if scope.rows is None and len(scope.refused) * FEW_SHARE <= view.top:
        return None, scope.refused.astype(np.int64)
    if scope.rows is not None and len(scope.rows) * TABLE_SHARE < view.top:
        return scope.rows.astype(np.int64), NOBODY
    table = np.full(view.top + 2, scope.rows is None)
    table[scope.refused if scope.rows is None else scope.rows] = scope.rows is not None
    table[-1] = False  # stands for memories that came later
    return lambda owners: np.take(table, owners, mode="clip"), NOBODY


def _add_all(connection: Connection, model: int, index: CodeIndex) -> None:
    """Read every vector of a model, each piece by another thread while the one before is coded."""
    pieces = _pieces(connection, *of_model(model))
    connection.execute(f"PRAGMA cache_size={PASSING_CACHE}").fetchall()
    try:
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(next, pieces, None)
            while (piece := coming.result()) is not None:
                coming = reader.submit(next, pieces, None)
                _add(index, piece)
    finally:
        connection.execute(f"PRAGMA cache_size={CACHE}").fetchall()


def _pieces(connection: Connection, low: int, high: int) -> Iterator[list[tuple[int, bytes]]]:
    """The vectors from one place to another, few at a time: they stay in the processor's cache until they are coded."""
    sql = "SELECT place, data FROM vectors WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?"
    while found := rows(connection, sql, (low, high, LOADED_ROWS)):
        yield found
        low = found[-1][0] + 1


def _add(index: CodeIndex, found: Sequence[tuple[int, bytes]]) -> None:
    keys = np.array([key for key, _ in found], dtype=np.int64)
    try:
        matrix = np.frombuffer(b"".join([data for _, data in found]), dtype="<f4").reshape(len(found), -1)
        index.add(keys, row_of(keys), matrix)
    except (TypeError, ValueError) as error:  # of a wrong length, not of finite numbers, or nothing at all
        raise Corrupt("a vector is damaged", "run doctor with repair: it is made again") from error


def _follow(connection: Connection, model: int, scan: Scan, last: int) -> None:
    """Take in what the log names since the scan was current."""
    changed = [
        row
        for (row,) in rows(
            connection,
            "SELECT DISTINCT row FROM vector_log WHERE sequence > ? AND model = ? ORDER BY row",
            (scan.sequence, model),
        )
    ]
    for start in range(0, len(changed), REPLACED_ROWS):
        piece = changed[start : start + REPLACED_ROWS]
        ranges = json.dumps([of_memory(model, row) for row in piece])
        found = rows(
            connection,
            "SELECT v.place, v.data FROM json_each(?) j CROSS JOIN vectors v"
            " WHERE v.place BETWEEN j.value ->> 0 AND j.value ->> 1",
            (ranges,),
        )
        scan.index.remove(np.array(piece, dtype=np.int64))
        if found:
            _add(scan.index, [(key, data) for key, data in found])
    scan.sequence = last
