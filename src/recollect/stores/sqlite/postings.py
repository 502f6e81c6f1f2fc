"""Which memories hold a term, how often, and which an expression finds: kept between searches as arrays of rows.

FTS5 takes a microsecond and more to score a match but a fraction of one to list it, and a list in memory costs next
to nothing. Everything here is derived and follows the file: new memories are appended by their rising row numbers;
when texts were changed or erased (the counter `rewrites`), lists and lengths follow the log, which names them.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sqlite.connection import Connection, one, rows, whole
from recollect.stores.sqlite.outbox import TEXTS, logged_span
from recollect.stores.tokens import Streams, token_hash

KEPT_ROWS = 16_000_000
"""The bound of all lists together: 96 MB."""
LEAST_ROWS = 100
"""What a list counts for that bound at least: it takes room also where it is empty."""
LISTED_AT_ONCE = 1_000_000
MEASURED_AT_ONCE = 65_536
SHORT_BYTES = 3
"""Of the sizes of a memory's columns, where none has more than 127 tokens."""
MENDED_ROWS = 32
"""With more changed texts than this, a list is made anew."""
MOST_TIMES = 255
"""More occurrences than this in one memory count no more."""

Floats = NDArray[np.float32]
Rows = NDArray[np.integer]
Times = NDArray[np.uint8]


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
    """The rows up to `top` that hold a term or match an expression, rising, as of so many rewrites."""

    rewrites: int
    sequence: int
    """The last entry of the log that is taken in."""
    top: int
    found: Rows
    times: Times
    """How often each holds the term, in any column; without content for an expression."""
    in_tags: Times
    """How many of these times in the tags."""

    @property
    def size(self) -> int:
        return max(len(self.found), LEAST_ROWS)

    def until(self, top: int) -> Listed:
        """What an earlier state of the file holds of it."""
        count = np.searchsorted(self.found, top, "right")
        return replace(self, top=top, found=self.found[:count], times=self.times[:count], in_tags=self.in_tags[:count])


NONE = np.zeros(0, np.uint8)
NOTHING = Listed(-1, -1, -1, np.zeros(0, np.int32), NONE, NONE)

Listing = Callable[[Connection, str, int, int], tuple[Rows, Times, Times]]
"""(connection, what, after, top): the rows behind `after` up to `top`; how often each holds it, how often in tags.
Behind -1 are all rows; then there are none above `top`."""


SEEN = (
    "SELECT ifnull((SELECT value FROM counters WHERE name = 'rewrites'), 0),"
    " ifnull((SELECT max(row) FROM memories), 0),"
    " ifnull((SELECT value FROM counters WHERE name = 'documents'), 0),"
    " ifnull((SELECT value FROM counters WHERE name = 'tokens'), 0)"
)
"""One row: at every row SQLite lets go of the interpreter, and other threads of a recall want it."""


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
        return View(*map(whole, one(connection, SEEN)))

    def rows(self, connection: Connection, expression: str, view: View) -> Rows:
        """The rows that FTS5 finds, rising."""
        return self._current(connection, expression, view, _matching).found

    def term(self, connection: Connection, term: str, view: View) -> Listed:
        """The rows whose content or tags hold a term, and how often they do."""
        return self._current(connection, term, view, _holding)

    def holders(self, term: str, view: View) -> int | None:
        """How many memories hold a term, where its list is at hand."""
        known = self._lists.get(term)
        if known is None or known.rewrites != view.rewrites or known.top != view.top:
            return None
        return len(known.found)

    def _current(self, connection: Connection, what: str, view: View, listing: Listing) -> Listed:
        """A list as of this view; a term has no space in it, an expression has, so both share the names."""
        with self._lock:
            known = self._lists.get(what)
            if known is not None:
                self._lists.move_to_end(what)
        if known is not None and known.rewrites == view.rewrites and known.top >= view.top:
            return known if known.top == view.top else known.until(view.top)  # another thread saw a later state
        known = known if known is not None and known.rewrites <= view.rewrites else NOTHING
        if known.rewrites != view.rewrites:
            known = _mended(connection, what, known, view, listing)
        found, times, in_tags = listing(connection, what, known.top, view.top)
        if len(known.found):
            found = np.concatenate([known.found, found])
            times, in_tags = np.concatenate([known.times, times]), np.concatenate([known.in_tags, in_tags])
        fresh = Listed(view.rewrites, known.sequence, view.top, found, times, in_tags)
        self._keep(what, fresh)
        return fresh

    def _keep(self, expression: str, listed: Listed) -> None:
        with self._lock:
            before = self._lists.get(expression)
            if before is not None and before.rewrites > listed.rewrites:  # of a later state: worth more than ours
                return
            self._lists.pop(expression, None)
            self._kept += listed.size - (0 if before is None else before.size)
            self._lists[expression] = listed
            while self._kept > KEPT_ROWS and len(self._lists) > 1:
                self._kept -= self._lists.popitem(last=False)[1].size

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
                changed = _changed(connection, self._sequence, -1)
        lengths = np.zeros(max(view.top, self._measured.top) + 1, np.float32)
        lengths[: len(self._lengths)] = self._lengths[: len(lengths)]
        for low in range(self._measured.top, view.top, MEASURED_AT_ONCE):
            _read_stretch(connection, lengths, low, min(low + MEASURED_AT_ONCE, view.top))
        if changed:
            sql = "SELECT id, sz FROM fulltext_docsize WHERE id IN (SELECT value FROM json_each(?))"
            _read_lengths(lengths, rows(connection, sql, (json.dumps(changed),)))
        self._lengths, self._measured, self._sequence = lengths, view, last


def _mended(connection: Connection, what: str, known: Listed, view: View, listing: Listing) -> Listed:
    """The list without the texts that were changed or erased since, and with those that hold it now; nothing of it
    where it is too old for the log or too much has changed: then it is made from the beginning."""
    first, last = logged_span(connection)
    changed = _changed(connection, known.sequence, MENDED_ROWS + 1) if known.sequence >= first - 1 else None
    if changed is None or known is NOTHING or len(changed) > MENDED_ROWS:
        return replace(NOTHING, rewrites=view.rewrites, sequence=last)
    lasting = ~np.isin(known.found, changed)
    pieces = [(known.found[lasting], *(one[lasting] if len(one) else one for one in (known.times, known.in_tags)))]
    pieces += [listing(connection, what, row - 1, row) for row in changed if row <= known.top]
    found, times, in_tags = map(np.concatenate, zip(*pieces))
    order = np.argsort(found)
    times, in_tags = (one[order] if len(one) else one for one in (times, in_tags))
    return Listed(view.rewrites, last, known.top, found[order], times, in_tags)


def _changed(connection: Connection, after: int, most: int) -> list[int]:
    """The rows of the texts that were changed or erased behind this entry of the log."""
    sql = "SELECT DISTINCT row FROM vector_log WHERE sequence > ? AND model = ? LIMIT ?"
    return [row for (row,) in rows(connection, sql, (after, TEXTS, most))]


def _matching(connection: Connection, expression: str, after: int, top: int) -> tuple[Rows, Times, Times]:
    sql = "SELECT group_concat(rowid) FROM fulltext WHERE fulltext MATCH ?"
    return _numbers(connection, sql, expression, "rowid", after, top), NONE, NONE


def _holding(connection: Connection, term: str, after: int, top: int) -> tuple[Rows, Times, Times]:
    """Every occurrence names its row and column. What was appended is found by FTS5, which can begin behind a row."""
    if after >= 0:
        found, _, _ = _matching(connection, f'{{content tags}} : "{term}"', after, top)
        times, in_tags = _times(connection, term, found) if len(found) else (NONE, NONE)
        return found, times, in_tags
    sql = "SELECT group_concat(2 * doc + (col = 'tags')) FROM temp.instances WHERE term = ?"
    each = _numbers(connection, sql, term, "doc", after, top)
    if not len(each):
        return each, NONE, NONE
    found = each >> 1
    bounds = np.flatnonzero(found[1:] != found[:-1]) + 1
    firsts, ends = np.concatenate([[0], bounds]), np.concatenate([bounds, [len(each)]])
    return found[firsts], _bounded(ends - firsts), _bounded(np.add.reduceat(each & 1, firsts))


def _times(connection: Connection, term: str, found: Rows) -> tuple[Times, Times]:
    """How often some rows hold a term, and how often in their tags, by their token streams."""
    read = rows(
        connection,
        "SELECT t.tokens, t.content_tokens, t.row FROM json_each(?) j CROSS JOIN texts t ON t.row = j.value",
        (json.dumps(found.tolist()),),
    )
    streams = Streams([stream for stream, _, _ in read], [tokens for _, tokens, _ in read])
    counted = streams.count([token_hash(term)]).astype(np.int64)
    known = dict(zip([row for _, _, row in read], zip(counted.sum(axis=1).tolist(), counted[:, 1].tolist())))
    times, in_tags = np.array([known.get(row, (1, 0)) for row in found.tolist()]).T
    return _bounded(times), _bounded(in_tags)


def _bounded(times: NDArray[np.integer]) -> Times:
    return np.minimum(times, MOST_TIMES).astype(np.uint8)


def _numbers(connection: Connection, sql: str, what: str, row: str, after: int, top: int) -> Rows:
    """Row numbers as one text for each stretch: the cheapest way for many numbers out of SQLite."""
    kind = np.int32 if top < 2**30 else np.int64  # twice a row number has to fit
    if after < 0 and top <= LISTED_AT_ONCE:  # all there are, without a look at every number
        text = one(connection, sql, (what,))
        return np.sort(np.fromstring(str(text or ""), dtype=kind, sep=","))
    pieces = [np.zeros(0, kind)]
    for low in range(after, top, LISTED_AT_ONCE):
        bounds = (what, low, min(low + LISTED_AT_ONCE, top))
        text = one(connection, f"{sql} AND {row} > ? AND {row} <= ?", bounds)
        pieces.append(np.sort(np.fromstring(str(text or ""), dtype=kind, sep=",")))
    return np.concatenate(pieces)


def _read_stretch(connection: Connection, lengths: Floats, low: int, high: int) -> None:
    """The lengths of the rows behind `low` up to `high`: as one value where no row is missing and every size is short,
    which takes far less time than single rows take."""
    within = "FROM fulltext_docsize WHERE id > ? AND id <= ?"
    sql = f"SELECT count(*), max(length(sz)), CAST(group_concat(sz, '') AS BLOB) {within}"
    count, longest, sizes = one(connection, sql, (low, high))
    if count == high - low and longest == SHORT_BYTES and len(sizes) == SHORT_BYTES * count:
        lengths[low + 1 : high + 1] = _sums(sizes)
    elif count:
        _read_lengths(lengths, rows(connection, f"SELECT id, sz {within}", (low, high)))


def _sums(sizes: bytes) -> Floats:
    """Content and tags together, from sizes of three columns in a byte each."""
    return np.frombuffer(sizes, np.uint8).reshape(-1, SHORT_BYTES)[:, :2].sum(axis=1, dtype=np.float32)


def _read_lengths(lengths: Floats, found: list[tuple[int, bytes]]) -> None:
    """FTS5 keeps the sizes of a memory's columns (content, tags, scope) as varints, mostly of one byte each."""
    if not found:
        return
    short = [pair for pair in found if len(pair[1]) == SHORT_BYTES]
    if short:
        places = np.fromiter((row for row, _ in short), np.int64, len(short))
        lengths[places] = _sums(b"".join([size for _, size in short]))
    if len(short) < len(found):
        for row, size in found:
            if len(size) != SHORT_BYTES:
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
