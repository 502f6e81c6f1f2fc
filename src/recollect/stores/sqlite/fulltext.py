"""Full text in two phases: the rarer words of a query find candidates (see `finding`), then all words are counted.

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
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import InvalidInput, Timeout
from recollect.domain.query import Node, Unit, is_flat, units
from recollect.domain.question import Filter
from recollect.domain.subjects import Words
from recollect.ports import ScopeCounts, TextMatches
from recollect.stores.expressions import Run, runs_of
from recollect.stores.sqlite.connection import Connection, Readers, one, rows
from recollect.stores.sqlite.filters import conditions, is_turn
from recollect.stores.sqlite.finding import Candidates, Search, find, is_large
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.postings import Postings, View
from recollect.stores.sqlite.scopes import size_of_scope, without_idle_times
from recollect.stores.sqlite.words import Lookalikes
from recollect.stores.sqlite.writer import Writer
from recollect.stores.subjects import number_of
from recollect.stores.tokens import Streams, Tokenizer, token_hash

COMMON_COUNT = 1_000
"""A term that so many memories hold is counted by every write from then on, instead of by every search."""
KEPT_COUNTS = 20_000
"""The bound of the terms and phrases whose counts are kept between searches."""
STEPS_BETWEEN_LOOKS = 20_000


@dataclass(frozen=True, slots=True)
class Counted:
    """In how many memories terms and phrases occur, as of one state of the file."""

    view: View
    held: dict[str, int] = field(default_factory=dict[str, int])


class CountedRows(NamedTuple):
    """Candidates with all that BM25 needs."""

    rows: NDArray[np.int64]
    lengths: NDArray[np.float64]
    counts: NDArray[np.float64]


class SqliteText:
    """The TextIndex port."""

    def __init__(
        self, readers: Readers, writer: Writer | None, postings: Postings, lookalikes: Lookalikes, deadline_s: float
    ) -> None:
        self._readers = readers
        self._writer = writer
        self._postings = postings
        self._deadline_s = deadline_s
        self._lookalikes = lookalikes
        self._own = apsw.Connection(":memory:")
        self._tokenizer = Tokenizer(self._own)
        self._lock = threading.Lock()
        self._counted = Counted(View(-1, 0))

    def match(self, query: Node, filter: Filter, limit: int, weights: Sequence[float] = (1.0, 1.0)) -> TextMatches:
        if len(weights) != 2 or not all(math.isfinite(weight) for weight in weights):
            raise InvalidInput("column weights must be two finite numbers", "give one for content, one for tags")
        with self._lock:
            runs = runs_of(query, self._tokenizer)
        asked = units(query)
        with self._readers.reading() as connection, self._bounded(connection):
            view = self._postings.view(connection)
            documents = view.documents
            search = Search(
                query, runs, without_idle_times(connection, filter), limit, weights,
                self._unit_frequencies(connection, asked, runs, view), view,
            )  # fmt: skip
            found = find(connection, search, self._postings) if limit > 0 and documents else Candidates()
            counted = self._count(connection, found, search, asked)
            ids, turns, lengths, counts = _in_scope(connection, counted, search)
            scope = self._scope_counts(connection, search, counted) if found.is_all and is_flat(query) else None
        return TextMatches(
            ids=ids,
            lengths=lengths,
            counts=counts,
            units=asked,
            frequencies=_frequencies_of(asked, search),
            documents=documents,
            average_length=view.average_length,
            compiled=found.compiled,
            scope=scope,
            turns=turns,
        )

    def about(self, names: Sequence[Words], filter: Filter, most: int) -> dict[Words, list[str]]:
        numbers = {number: name for name in names if (number := number_of(filter.namespace, name)) is not None}
        scope = conditions(filter)
        with self._readers.reading() as connection, self._bounded(connection):
            found = rows(
                connection,
                f"SELECT t.about, m.id FROM json_each(?) j CROSS JOIN texts t ON t.about = j.value"
                f" CROSS JOIN memories m ON m.row = t.row AND {scope.sql}"
                " WHERE (SELECT count(*) FROM (SELECT 1 FROM texts x WHERE x.about = j.value LIMIT ?)) <= ?"
                " ORDER BY m.id",
                (json.dumps(list(numbers)), *scope.values, most + 1, most),
            )
        memories: dict[Words, list[str]] = {}
        for number, id in found:
            memories.setdefault(numbers[number], []).append(id)
        return memories

    def tokens(self, text: str) -> list[str]:
        with self._lock:
            return self._tokenizer.tokens(text)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        with self._readers.reading() as connection, self._bounded(connection):
            return self._frequencies(connection, terms, self._postings.view(connection))

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
        self, connection: Connection, asked: Sequence[Unit], runs: dict[Unit, Run], view: View
    ) -> dict[Unit, int]:
        """In how many memories of the whole index each unit occurs."""
        single = [unit for unit in asked if len(runs[unit].tokens) == 1 and not runs[unit].open_end]
        counted = dict(zip(single, self._frequencies(connection, [runs[unit].tokens[0] for unit in single], view)))
        for unit in asked:
            if unit not in counted:
                counted[unit] = self._occurrences(connection, runs[unit], view) if runs[unit].tokens else 0
        return counted

    def _frequencies(self, connection: Connection, terms: Sequence[str], view: View) -> list[int]:
        held = self._held(view)
        for term in terms:
            if term not in held and (count := self._postings.holders(term, view)) is not None:
                held[term] = count
        unknown = [term for term in terms if term not in held]
        if unknown:
            fresh = dict(
                rows(
                    connection,
                    "SELECT term, memories FROM common_terms WHERE term IN (SELECT value FROM json_each(?))",
                    (json.dumps(unknown),),
                )
            )
            others = [term for term in unknown if term not in fresh]
            sql = "SELECT j.value, v.doc FROM json_each(?) j CROSS JOIN vocabulary v ON v.term = j.value"
            counted = dict(rows(connection, sql, (json.dumps(others),)))
            for term in others:
                fresh[term] = counted.get(term, 0)
                if fresh[term] >= COMMON_COUNT and self._writer is not None:
                    self._writer.offer(lambda writing, term=term: keep_count(writing, term))
            held.update(fresh)
        return [held[term] for term in terms]

    def _occurrences(self, connection: Connection, run: Run, view: View) -> int:
        """How many memories hold a phrase or prefix. A quoted one is no term, so both may be kept side by side."""
        held = self._held(view)
        known = held.get(run.quoted)
        if known is None:
            expression = f"{{content tags}} : {run.quoted}"
            if is_large(view) and not run.open_end:  # the list is about to be needed anyway
                known = len(self._postings.rows(connection, expression, view))
            else:
                known = int(one(connection, "SELECT count(*) FROM fulltext WHERE fulltext MATCH ?", (expression,)))
            held[run.quoted] = known
        return known

    def _held(self, view: View) -> dict[str, int]:
        """The counts of this state of the file; any other state begins anew."""
        counted = self._counted
        if counted.view != view or len(counted.held) > KEPT_COUNTS:
            self._counted = counted = Counted(view)
        return counted.held

    def _count(self, connection: Connection, found: Candidates, search: Search, asked: Sequence[Unit]) -> CountedRows:
        """How often the candidates hold each unit: from the lists that found them, or from their token streams."""
        if found.counts is not None:
            counts = np.zeros((len(found.rows), len(asked), 2))
            counts[:, [number for number, unit in enumerate(asked) if search.runs[unit].tokens]] = found.counts
            numbers = np.array(found.rows, dtype=np.int64)
            lengths = self._postings.lengths(connection, search.view)[numbers].astype(np.float64)
            return CountedRows(numbers, lengths, counts)
        kept = rows(
            connection,
            "SELECT t.row, t.content_tokens, t.tokens FROM json_each(?) j CROSS JOIN texts t ON t.row = j.value",
            (json.dumps(sorted(found.rows)),),
        )
        numbers = np.array([row[0] for row in kept], dtype=np.int64)
        streams = Streams([row[2] for row in kept], [row[1] for row in kept])
        counts = np.zeros((len(kept), len(asked), 2))
        runs = [search.runs[unit] for unit in asked]
        texts = self._retokenized(connection, numbers) if any(run.open_end and run.tokens for run in runs) else []
        for number, run in enumerate(runs if kept else ()):
            if run.open_end and run.tokens:
                counts[:, number, :] = [[run.open_count(column) for column in text] for text in texts]
            elif run.tokens:
                counts[:, number, :] = streams.count([token_hash(token) for token in run.tokens])
        return CountedRows(numbers, streams.lengths, counts)

    def _scope_counts(self, connection: Connection, search: Search, counted: CountedRows) -> ScopeCounts | None:
        """The size of the scope beside the counts of its matches; None where it is the whole store."""
        size = size_of_scope(connection, self._postings, search.filter, search.view)
        return None if size is None else ScopeCounts(size, counted.counts.any(axis=2).sum(axis=0).astype(float))

    def _retokenized(self, connection: Connection, numbers: NDArray[np.int64]) -> list[tuple[list[str], list[str]]]:
        """Prefixes need the tokens themselves, which the streams do not hold."""
        found = rows(
            connection,
            "SELECT row, content, tags FROM indexed_texts WHERE row IN (SELECT value FROM json_each(?))",
            (json.dumps(numbers.tolist()),),
        )
        with self._lock:
            tokens = {row: (self._tokenizer.tokens(text), self._tokenizer.tokens(tags)) for row, text, tags in found}
        return [tokens[row] for row in numbers.tolist()]


def _frequencies_of(asked: Sequence[Unit], search: Search) -> NDArray[np.float64]:
    return np.array([search.counted[unit] for unit in asked], dtype=np.float64)


def _in_scope(
    connection: Connection, counted: CountedRows, search: Search
) -> tuple[tuple[str, ...], frozenset[str], NDArray[np.float64], NDArray[np.float64]]:
    """Ids, turns, lengths and counts of the candidates; the filter is checked once more, on the memories themselves."""
    best = np.flatnonzero(counted.counts.any(axis=(1, 2)))
    if search.is_large:
        best = best[_best(counted.counts[best], counted.lengths[best], search)]
    numbers: list[int] = counted.rows[best].tolist()
    scope = conditions(search.filter)
    read: list[tuple[int, str, int]] = json.loads(  # in one row: after every row SQLite asks for the interpreter
        one(
            connection,
            f"SELECT json_group_array(json_array(m.row, m.id, {is_turn('m')}))"
            f" FROM json_each(?) j CROSS JOIN memories m ON m.row = j.value WHERE {scope.sql}",
            (json.dumps(numbers), *scope.values),
        )
    )
    ids: dict[int, str] = {row: id for row, id, _ in read}
    if len(ids) < len(numbers):
        best = best[[number in ids for number in numbers]]
    turns = frozenset([id for _, id, turn in read if turn])
    return tuple(ids[number] for number in numbers if number in ids), turns, counted.lengths[best], counted.counts[best]


def _best(counts: NDArray[np.float64], lengths: NDArray[np.float64], search: Search) -> NDArray[np.int64]:
    """The places of somewhat more than `limit` candidates, by FTS5's own formula; the lexical leg has its own."""
    if len(counts) <= search.most:
        return np.arange(len(counts))
    held = _frequencies_of(units(search.query), search)
    inverse = np.maximum(np.log(np.maximum((search.view.documents - held + 0.5) / (held + 0.5), 1e-300)), 1e-6)
    occurring = counts @ np.asarray(search.weights, dtype=np.float64)
    damping = 1.2 * (0.25 + 0.75 * lengths / (search.view.average_length or 1.0))
    scores = (inverse * occurring * 2.2 / (occurring + damping[:, None])).sum(axis=1)
    return np.sort(np.argsort(-scores, kind="stable")[: search.most])


def keep_count(writing: Writing, term: str) -> None:
    """From now on every write keeps the number of memories that hold this term."""
    if term not in writing.common:
        held = one(writing.connection, "SELECT doc FROM vocabulary WHERE term = ?", (term,)) or 0
        writing.connection.execute("INSERT OR IGNORE INTO common_terms VALUES (?, ?)", (term, held))
        writing.reload()
