"""Which memories an expression of the full-text index finds, kept between searches as arrays of row numbers.

FTS5 takes a microsecond and more to score a match but a fraction of one to list it, and a list in memory costs next
to nothing. Everything here is derived and follows the file: new memories are appended by their rising row numbers;
when a text was changed or erased (the counter `rewrites`), the lists start over and the lengths follow the log.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.outbox import TEXTS, logged_span

KEPT_ROWS = 16_000_000
"""The bound of all lists together: 64 MB."""
LISTED_AT_ONCE = 4_000_000

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class View:
    """The state of the file that a search looks at."""

    rewrites: int
    top: int
    """The highest row number."""
    documents: int = 0
    tokens: int = 0

    @property
    def average_length(self) -> float:
        return self.tokens / self.documents if self.documents else 0.0


@dataclass(frozen=True, slots=True)
class Listed:
    """The rows up to `top` that an expression finds, rising, as of so many rewrites."""

    rewrites: int
    top: int
    found: NDArray[np.integer]


class Postings:
    """The lists of one process, shared by its threads; every method is called inside a read transaction."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[str, Listed] = OrderedDict()
        self._kept = 0
        self._lengths = np.zeros(0, np.float32)
        self._measured = View(-1, 0)
        self._sequence = 0

    def view(self, connection: Connection) -> View:
        """What the connection sees."""
        counted = dict(rows(connection, "SELECT name, value FROM counters"))
        top = one(connection, "SELECT max(row) FROM memories") or 0
        return View(counted.get("rewrites", 0), top, counted["documents"], counted["tokens"])

    def rows(self, connection: Connection, expression: str, view: View) -> NDArray[np.integer]:
        """The rows that FTS5 finds, rising."""
        with self._lock:
            known = self._lists.get(expression)
            if known is not None:
                self._lists.move_to_end(expression)
        if known is not None and known.rewrites == view.rewrites:
            if known.top == view.top:
                return known.found
            if known.top > view.top:  # another thread looks at a later state
                return known.found[: np.searchsorted(known.found, view.top, "right")]
            found = np.concatenate([known.found, *_listed(connection, expression, known.top, view.top)])
        else:
            found = np.concatenate(list(_listed(connection, expression, 0, view.top)) or [np.zeros(0, np.int32)])
        if known is None or known.rewrites <= view.rewrites:
            self._keep(expression, Listed(view.rewrites, view.top, found))
        return found

    def _keep(self, expression: str, listed: Listed) -> None:
        with self._lock:
            before = self._lists.pop(expression, None)
            self._kept += len(listed.found) - (0 if before is None else len(before.found))
            self._lists[expression] = listed
            while self._kept > KEPT_ROWS and len(self._lists) > 1:
                self._kept -= len(self._lists.popitem(last=False)[1].found)

    def lengths(self, connection: Connection, view: View) -> Floats:
        """The number of tokens of each memory, by row number. They may be those of a later state."""
        with self._lock:
            if view.top > self._measured.top or view.rewrites > self._measured.rewrites:
                self._measure(connection, view)
            return self._lengths

    def _measure(self, connection: Connection, view: View) -> None:
        first, last = logged_span(connection)
        changed: list[int] = []
        if view.rewrites > self._measured.rewrites:
            if self._sequence < first - 1 or not len(self._lengths):
                self._measured = View(-1, 0)
            else:
                changed = [
                    row
                    for (row,) in rows(
                        connection,
                        "SELECT DISTINCT row FROM vector_log WHERE sequence > ? AND model = ?",
                        (self._sequence, TEXTS),
                    )
                ]
        lengths = np.zeros(max(view.top, self._measured.top) + 1, np.float32)
        lengths[: len(self._lengths)] = self._lengths[: len(lengths)]
        _read_lengths(
            lengths, rows(connection, "SELECT id, sz FROM fulltext_docsize WHERE id > ?", (self._measured.top,))
        )
        if changed:
            sql = "SELECT id, sz FROM fulltext_docsize WHERE id IN (SELECT value FROM json_each(?))"
            _read_lengths(lengths, rows(connection, sql, (json.dumps(changed),)))
        self._lengths, self._measured, self._sequence = lengths, view, last


def _listed(connection: Connection, expression: str, after: int, top: int) -> Iterable[NDArray[np.integer]]:
    """The rows behind `after`, as one text for each stretch: the cheapest way for many numbers out of SQLite."""
    kind = np.int32 if top < 2**31 else np.int64
    for low in range(after, top, LISTED_AT_ONCE):
        text = one(
            connection,
            "SELECT group_concat(rowid) FROM fulltext WHERE fulltext MATCH ? AND rowid > ? AND rowid <= ?",
            (expression, low, min(low + LISTED_AT_ONCE, top)),
        )
        if text:
            yield np.sort(np.fromstring(str(text), dtype=kind, sep=","))


def _read_lengths(lengths: Floats, found: list[tuple[int, bytes]]) -> None:
    """FTS5 keeps the sizes of a memory's columns (content, tags, scope) as varints, mostly of one byte each."""
    if not found:
        return
    short = [pair for pair in found if len(pair[1]) == 3]
    if short:
        places = np.fromiter((row for row, _ in short), np.int64, len(short))
        sizes = np.frombuffer(b"".join([size for _, size in short]), np.uint8).reshape(-1, 3)
        lengths[places] = sizes[:, :2].sum(axis=1, dtype=np.float32)
    if len(short) < len(found):
        for row, size in found:
            if len(size) != 3:
                lengths[row] = sum(_varints(size)[:2])


def _varints(data: bytes) -> list[int]:
    numbers, number = list[int](), 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def common_rows(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.integer]:
    """The rows in both of two rising lists; quick when one is short."""
    if len(left) > len(right):
        left, right = right, left
    if not len(left):
        return left
    places = np.searchsorted(right, left)
    places[places == len(right)] = 0
    return left[right[places] == left]
