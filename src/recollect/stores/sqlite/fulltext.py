"""Full text in two phases: the rarer words of a query find candidates by FTS5's rank, all its words are counted.

Scoring is FTS5's whole cost, so in a large index words that many memories hold are left to the second phase, which
counts them in the kept token streams of the candidates alone. The lexical leg turns the counts into BM25.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import accumulate

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import InvalidInput, Timeout
from recollect.domain.query import Node, Unit, units
from recollect.domain.question import Filter
from recollect.ports import TextMatches
from recollect.stores.sqlite.connection import Connection, Readers, one, rows
from recollect.stores.sqlite.expressions import Run, expression, finders, runs_of
from recollect.stores.sqlite.filters import (
    conditions,
    covers_store,
    scope_expression,
    scope_index,
    unindexed_conditions,
)
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.tokens import Streams, Tokenizer, token_hash
from recollect.stores.sqlite.words import Lookalikes
from recollect.stores.sqlite.writer import Writer

LARGE_INDEX = 20_000
"""From so many memories on, common words do not find."""
FOUND_POSTINGS = 20_000
FOUND_SHARE = 0.04
"""The rarest words of a query find as long as together they are in no more memories: what FTS5 scores is bounded."""
LEAST_FINDERS = 3
COMMON_COUNT = 1_000
"""A term that so many memories hold is counted by every write from then on, instead of by every search."""
CANDIDATES_PER_HIT = 6
LEAST_CANDIDATES = 200
SMALL_CANDIDATES = 1_000
STEPS_BETWEEN_LOOKS = 20_000


class SqliteText:
    """The TextIndex port."""

    def __init__(self, readers: Readers, writer: Writer | None, deadline_s: float) -> None:
        self._readers = readers
        self._writer = writer
        self._deadline_s = deadline_s
        self._lookalikes = Lookalikes()
        self._own = apsw.Connection(":memory:")
        self._tokenizer = Tokenizer(self._own)
        self._lock = threading.Lock()

    def match(self, query: Node, filter: Filter, limit: int, weights: Sequence[float] = (1.0, 1.0)) -> TextMatches:
        if len(weights) != 2 or not all(math.isfinite(weight) for weight in weights):
            raise InvalidInput("column weights must be two finite numbers", "give one for content, one for tags")
        with self._lock:
            runs = runs_of(query, self._tokenizer)
        asked = units(query)
        with self._readers.reading() as connection, self._bounded(connection):
            documents, tokens = counter(connection, "documents"), counter(connection, "tokens")
            counted = self._unit_frequencies(connection, asked, runs)
            compiled, found = "", list[int]()
            if limit > 0 and documents:
                compiled, found = _find(connection, query, runs, filter, limit, weights, counted, documents)
            ids, lengths, counts = self._count(connection, found, filter, [runs[unit] for unit in asked])
        return TextMatches(
            ids=ids,
            lengths=lengths,
            counts=counts,
            units=asked,
            frequencies=np.array([counted[unit] for unit in asked], dtype=np.float64),
            documents=documents,
            average_length=tokens / documents if documents else 0.0,
            compiled=compiled,
        )

    def tokens(self, text: str) -> list[str]:
        with self._lock:
            return self._tokenizer.tokens(text)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        with self._readers.reading() as connection, self._bounded(connection):
            return self._frequencies(connection, terms)

    def similar(self, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        with self._lock:
            folded = "".join(self._tokenizer.words(word))
        with self._readers.reading() as connection:
            return self._lookalikes.nearest(connection, folded, minimum, limit)

    @contextmanager
    def _bounded(self, connection: Connection) -> Generator[None]:
        """Interrupt what runs for too long (the second line of defence: FTS5 does not look up often)."""
        deadline = time.monotonic() + self._deadline_s
        connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
        try:
            yield
        except apsw.InterruptError:
            raise Timeout("the full-text search took too long", "ask with fewer or rarer words") from None
        finally:
            connection.set_progress_handler(None)

    def _unit_frequencies(
        self, connection: Connection, asked: Sequence[Unit], runs: dict[Unit, Run]
    ) -> dict[Unit, int]:
        """In how many memories of the whole index each unit occurs."""
        single = [unit for unit in asked if len(runs[unit].tokens) == 1 and not runs[unit].open_end]
        counted = dict(zip(single, self._frequencies(connection, [runs[unit].tokens[0] for unit in single])))
        for unit in asked:
            if unit not in counted:
                counted[unit] = _occurrences(connection, runs[unit]) if runs[unit].tokens else 0
        return counted

    def _frequencies(self, connection: Connection, terms: Sequence[str]) -> list[int]:
        known = dict(
            rows(
                connection,
                "SELECT term, memories FROM common_terms WHERE term IN (SELECT value FROM json_each(?))",
                (json.dumps(list(terms)),),
            )
        )
        for term in terms:
            if term not in known:
                known[term] = one(connection, "SELECT doc FROM vocabulary WHERE term = ?", (term,)) or 0
                if known[term] >= COMMON_COUNT and self._writer is not None:
                    self._writer.offer(lambda writing, term=term: keep_count(writing, term))
        return [known[term] for term in terms]

    def _count(
        self, connection: Connection, found: Sequence[int], filter: Filter, runs: Sequence[Run]
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Ids, lengths and counts of the candidates; the filter is checked once more on the memories themselves."""
        needs_text = any(run.open_end and run.tokens for run in runs)
        scope = conditions(filter)
        columns = "m.id, t.content_tokens, t.tokens" + (", m.content, t.tags" if needs_text else "")
        kept = rows(
            connection,
            f"SELECT {columns} FROM texts t CROSS JOIN memories m ON m.row = t.row"
            f" WHERE t.row IN (SELECT value FROM json_each(?)) AND {scope.sql}",
            (json.dumps(found), *scope.values),
        )
        streams = Streams([row[2] for row in kept], [row[1] for row in kept])
        counts = np.zeros((len(kept), len(runs), 2), dtype=np.float64)
        if kept:
            texts = self._retokenized(kept) if needs_text else []
            for number, run in enumerate(runs):
                if run.open_end and run.tokens:
                    counts[:, number, :] = [[_open_count(column, run.tokens) for column in text] for text in texts]
                elif run.tokens:
                    counts[:, number, :] = streams.count([token_hash(token) for token in run.tokens])
        return tuple(row[0] for row in kept), streams.lengths, counts

    def _retokenized(self, kept: Sequence[tuple[str, int, bytes, str, str]]) -> list[tuple[list[str], list[str]]]:
        """Prefixes need the tokens themselves, which the streams do not hold."""
        with self._lock:
            return [(self._tokenizer.tokens(row[3]), self._tokenizer.tokens(row[4])) for row in kept]


def _find(
    connection: Connection,
    query: Node,
    runs: dict[Unit, Run],
    filter: Filter,
    limit: int,
    weights: Sequence[float],
    counted: dict[Unit, int],
    documents: int,
) -> tuple[str, list[int]]:
    """Phase one: the rows of the best candidates by FTS5's rank, and the expression that found them."""
    whole = expression(query, runs)
    if whole is None:
        return "", []
    wanted = max(CANDIDATES_PER_HIT * limit, SMALL_CANDIDATES if documents < LARGE_INDEX else LEAST_CANDIDATES)
    left_out = _common(query, runs, counted, documents)
    if left_out and scope_index(connection, filter) is None:  # a small scope bounds the work by itself
        rare = expression(query, runs, left_out)
        if rare is not None:
            compiled, found = _ranked(connection, rare, filter, wanted, weights)
            if len(found) >= limit:
                return compiled, found
    return _ranked(connection, whole, filter, wanted, weights)


def _common(query: Node, runs: dict[Unit, Run], counted: dict[Unit, int], documents: int) -> set[Unit]:
    """The units that are left to scoring: in a large index the common ones, as long as three others find."""
    if documents < LARGE_INDEX:
        return set()
    present = [unit for unit in finders(query) if runs[unit].tokens and counted[unit] > 0]
    present.sort(key=lambda unit: counted[unit])
    most = max(FOUND_POSTINGS, int(FOUND_SHARE * documents))
    sums = accumulate(counted[unit] for unit in present)
    return {
        unit for place, (unit, together) in enumerate(zip(present, sums)) if place >= LEAST_FINDERS and together > most
    }


def _ranked(
    connection: Connection, text: str, filter: Filter, wanted: int, weights: Sequence[float]
) -> tuple[str, list[int]]:
    """The best rows in scope. Scope terms have weight 0: they restrict, they do not score."""
    demands, refusals = scope_expression(filter, covers_store(connection, filter.namespace))
    compiled = " AND ".join([*demands, f"{{content tags}} : ({text})"])
    for refusal in refusals:
        compiled = f"({compiled}) NOT {refusal}"
    rest = unindexed_conditions(filter)
    join = "" if rest.sql == "1" else " CROSS JOIN memories m ON m.row = f.rowid"
    rank = f"bm25({float(weights[0])!r}, {float(weights[1])!r}, 0.0)"
    found = rows(
        connection,
        f"SELECT f.rowid FROM fulltext f{join} WHERE f.fulltext MATCH ? AND f.rank MATCH ? AND {rest.sql}"
        " ORDER BY f.rank LIMIT ?",
        (compiled, rank, *rest.values, wanted),
    )
    return compiled, [row for (row,) in found]


def _occurrences(connection: Connection, run: Run) -> int:
    """How many memories hold a phrase or prefix."""
    compiled = f"{{content tags}} : {run.quoted}"
    return int(one(connection, "SELECT count(*) FROM fulltext WHERE fulltext MATCH ?", (compiled,)))


def _open_count(column: list[str], tokens: tuple[str, ...]) -> int:
    """How often a run with an open end occurs in one column."""
    *whole, last = tokens
    size = len(whole)
    return sum(
        column[start + size].startswith(last) and column[start : start + size] == whole
        for start in range(len(column) - size)
    )


def keep_count(writing: Writing, term: str) -> None:
    """From now on every write keeps the number of memories that hold this term."""
    if term not in writing.common:
        held = one(writing.connection, "SELECT doc FROM vocabulary WHERE term = ?", (term,)) or 0
        writing.connection.execute("INSERT OR IGNORE INTO common_terms VALUES (?, ?)", (term, held))
        writing.reload()
