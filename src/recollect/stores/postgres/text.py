"""Full text: the GIN index finds candidates (in a large index by the rarer words), then all words are counted.

The counts come from the token streams of the candidates; the lexical leg turns them into BM25, the same on every store.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import InvalidInput
from recollect.domain.query import And, Node, Not, Or, Unit, is_flat, units
from recollect.domain.question import Filter
from recollect.domain.subjects import Words
from recollect.domain.times import to_ms
from recollect.ports import ScopeCounts, TextMatches
from recollect.stores.expressions import Run, finders
from recollect.stores.memory.text import Run as Counted
from recollect.stores.memory.text import trigrams
from recollect.stores.postgres.connection import Connection, one, rows
from recollect.stores.postgres.filters import conditions, scope_query, without_idle_times
from recollect.stores.postgres.ledger import totals
from recollect.stores.postgres.lexemes import ENDLESS, Tokens, compiled, phrase_bytes, quoted, unit_query
from recollect.stores.postgres.replica import Reads
from recollect.stores.sqlite.subjects import number_of
from recollect.stores.tokens import TOKEN_BYTES, Streams, token_hash

Truth: TypeAlias = NDArray[np.bool_]

LARGE_INDEX = 20_000
"""From so many memories on, common words do not find, and only the best candidates are counted."""
FOUND_POSTINGS = 6_000
FOUND_SHARE = 0.01
"""The rarest words of a query find as long as together they are in no more memories."""
LEAST_FINDERS = 3
CANDIDATES = 500
UNPROVED_CANDIDATES = 20_000
"""So many are looked at where only the token streams can tell whether they match."""


@dataclass(frozen=True, slots=True)
class Search:
    """A query with all that finding it needs to know."""

    query: Node
    runs: dict[Unit, Run]
    filter: Filter
    limit: int
    held: dict[Unit, int]
    """In how many memories each unit occurs."""
    documents: int
    average_length: float
    is_most: bool
    """The tenant holds most of the index: its own mark in the index would find more than it spares."""


class PostgresText:
    """The TextIndex port."""

    def __init__(self, reads: Reads, tokens: Tokens) -> None:
        self._reads = reads
        self._tokens = tokens

    def match(self, query: Node, filter: Filter, limit: int, weights: Sequence[float] = (1.0, 1.0)) -> TextMatches:
        if len(weights) != 2 or not all(math.isfinite(weight) for weight in weights):
            raise InvalidInput("column weights must be two finite numbers", "give one for content, one for tags")
        runs = self._tokens.runs(query)
        asked = units(query)

        def work(connection: Connection) -> TextMatches:
            wanted = without_idle_times(connection, filter)
            documents, _, tokens = totals(connection)
            own = one(connection, "SELECT memories FROM counts WHERE namespace = %s", (filter.namespace,)) or 0
            held = self._unit_frequencies(connection, asked, runs)
            average = tokens / documents if documents else 0.0
            search = Search(query, runs, wanted, limit, held, documents, average, 2 * own > documents)
            text, found = _find(connection, search) if limit > 0 and documents else ("", [])
            ids, lengths, counts = self._count(connection, found, asked, search)
            whole = is_flat(query) and 0 < documents < LARGE_INDEX
            return TextMatches(
                ids=ids,
                lengths=lengths,
                counts=counts,
                units=asked,
                frequencies=np.array([held[unit] for unit in asked], dtype=np.float64),
                documents=documents,
                average_length=average,
                compiled=text,
                scope=_scope_counts(connection, wanted, counts) if limit > 0 and whole else None,
            )

        return self._reads.read(work, filter.namespace)

    def about(self, names: Sequence[Words], filter: Filter, most: int) -> dict[Words, list[str]]:
        numbers = {number: name for name in names if (number := number_of(filter.namespace, name)) is not None}
        scope = conditions(filter)
        query = (
            "SELECT t.about, m.id FROM unnest(%s::bigint[]) j (about) JOIN texts t ON t.namespace = %s"
            " AND t.about = j.about JOIN memories m ON m.namespace = t.namespace AND m.number = t.number"
            f" WHERE {scope.sql} AND (SELECT count(*) FROM (SELECT 1 FROM texts x WHERE x.namespace = t.namespace"
            " AND x.about = j.about LIMIT %s) held) <= %s ORDER BY m.id"
        )
        values = (list(numbers), filter.namespace, *scope.values, most + 1, most)
        memories: dict[Words, list[str]] = {}
        for number, id in self._reads.read(lambda connection: rows(connection, query, values), filter.namespace):
            memories.setdefault(numbers[number], []).append(id)
        return memories

    def tokens(self, text: str) -> list[str]:
        return self._tokens.tokens(text)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        return self._reads.read(lambda connection: _frequencies(connection, terms))

    def similar(self, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        folded = "".join(self._tokens.words(word))
        if not folded or limit <= 0:
            return []
        return self._reads.read(
            lambda connection: [
                (known, likeness)
                for known, likeness in rows(
                    connection, "SELECT * FROM similar_words(%s, %s, %s)", (sorted(trigrams(folded)), minimum, limit)
                )
            ]
        )

    def _unit_frequencies(
        self, connection: Connection, asked: Sequence[Unit], runs: dict[Unit, Run]
    ) -> dict[Unit, int]:
        """In how many memories of the whole index each unit occurs."""
        single = [unit for unit in asked if len(runs[unit].tokens) == 1 and not runs[unit].open_end]
        held = dict(zip(single, _frequencies(connection, [runs[unit].tokens[0] for unit in single])))
        for unit in asked:
            if unit not in held:
                held[unit] = self._occurrences(connection, runs[unit]) if runs[unit].tokens else 0
        return held

    def _occurrences(self, connection: Connection, run: Run) -> int:
        """How many memories hold a phrase or a prefix."""
        whole = run.tokens[:-1] if run.open_end else run.tokens
        phrase = phrase_bytes(whole) if len(whole) > 1 or (whole and run.open_end) else None
        query = f"{unit_query(run).text} | {quoted(ENDLESS)}"
        if not run.open_end:
            return int(one(connection, "SELECT count_texts(%s, %s)", (query, phrase)))
        if not whole:
            return int(one(connection, "SELECT count_texts(%s, NULL)", (unit_query(run).text,)))
        found = self._reads.counting(
            connection, lambda: rows(connection, "SELECT content, tags FROM texts_holding(%s, %s)", (query, phrase))
        )
        counted = Counted(run.tokens, open_end=True)
        return sum(any(counted.count(column) for column in self._columns(content, tags)) for content, tags in found)

    def _columns(self, content: str, tags: Sequence[str]) -> tuple[list[str], list[str]]:
        return self._tokens.tokens(content), self._tokens.tokens(" ".join(tags))

    def _count(
        self, connection: Connection, found: Sequence[int], asked: Sequence[Unit], search: Search
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Ids, lengths and counts of those candidates that truly match, by their token streams."""
        scope = conditions(search.filter)
        every = list(search.runs)
        unsure = any(search.runs[unit].open_end and search.runs[unit].tokens for unit in every)
        columns = "m.id, t.content_tokens, t.tokens" + (", m.content, m.tags" if unsure else "")
        kept = rows(
            connection,
            # One by one through the primary keys, whatever the planner believes about tables it has not seen yet.
            f"SELECT {columns} FROM unnest(%s::bigint[]) n (number),"
            " LATERAL (SELECT * FROM texts t WHERE t.namespace = %s AND t.number = n.number OFFSET 0) t,"
            f" LATERAL (SELECT * FROM memories m WHERE m.number = n.number AND {scope.sql} OFFSET 0) m",
            (list(found), search.filter.namespace, *scope.values),
        )
        counts = self._counts(kept, every, search)
        held: dict[Unit, Truth] = {
            unit: counts[:, at].sum(axis=1) > 0 for at, unit in enumerate(every) if search.runs[unit].tokens
        }
        answer = _holds(search.query, held)
        true = np.zeros(0, dtype=np.int64) if answer is None else np.flatnonzero(answer)
        chosen = [every.index(unit) for unit in asked]
        lengths = np.array([len(kept[at][2]) // TOKEN_BYTES - 2 for at in true.tolist()], dtype=np.float64)
        return tuple(kept[at][0] for at in true.tolist()), lengths, counts[true][:, chosen]

    def _counts(self, kept: list[tuple[Any, ...]], every: Sequence[Unit], search: Search) -> NDArray[np.float64]:
        counts = np.zeros((len(kept), len(every), 2), dtype=np.float64)
        if not kept:
            return counts
        streams = Streams.wide([row[2] for row in kept], [row[1] for row in kept])
        texts = [self._columns(row[3], row[4]) for row in kept] if len(kept[0]) > 3 else []
        for at, run in enumerate(search.runs[unit] for unit in every):
            if run.open_end and run.tokens:
                counted = Counted(run.tokens, open_end=True)
                counts[:, at, :] = [[counted.count(column) for column in text] for text in texts]
            elif run.tokens:
                counts[:, at, :] = streams.count([token_hash(token) for token in run.tokens])
        return counts


def _scope_counts(connection: Connection, filter: Filter, counts: NDArray[np.float64]) -> ScopeCounts | None:
    """The size of the scope beside the counts of its matches, all of which were counted."""
    scope = conditions(filter)
    size = one(connection, f"SELECT count(*) FROM memories m WHERE {scope.sql}", scope.values)
    return ScopeCounts(int(size), (counts.sum(axis=2) > 0).sum(axis=0).astype(np.float64))


def _holds(node: Node, held: dict[Unit, Truth]) -> Truth | None:
    """Which candidates satisfy a query; None where the query has no token and so asks for nothing."""
    if isinstance(node, And | Or):
        asked = [answer for part in node.parts if (answer := _holds(part, held)) is not None]
        combine = np.logical_and if isinstance(node, And) else np.logical_or
        return combine.reduce(asked) if asked else None
    if isinstance(node, Not):
        keep, drop = _holds(node.keep, held), _holds(node.drop, held)
        return keep if keep is None or drop is None else keep & ~drop
    return held.get(node)


def _frequencies(connection: Connection, terms: Sequence[str]) -> list[int]:
    found = rows(
        connection, "SELECT term, sum(memories)::bigint FROM terms WHERE term = ANY (%s) GROUP BY term", (list(terms),)
    )
    known = dict(found)
    return [int(known.get(term, 0)) for term in terms]


def _find(connection: Connection, search: Search) -> tuple[str, list[int]]:
    """The numbers of the candidates, and the tsquery that found them."""
    whole = compiled(search.query, search.runs)
    if whole is None:
        return "", []
    if search.documents < LARGE_INDEX:
        return _ask(connection, search, whole.text, None)
    proved = whole.exact or _conjunctive_phrases(search) is not None
    most = CANDIDATES + 2 * search.limit if proved else UNPROVED_CANDIDATES
    alternatives = [unit for unit in finders(search.query) if search.runs[unit].tokens]
    if proved and alternatives and isinstance(search.query, Or):
        rare = [unit for unit in alternatives if unit not in _common(search, alternatives)]
        for finding in (rare, alternatives):
            text, found = _ask_any(connection, search, most, finding)
            if len(found) >= search.limit or len(finding) == len(alternatives):
                return text, found
    return _ask(connection, search, whole.text, most)


def _common(search: Search, flat: Sequence[Unit]) -> set[Unit]:
    """The units that are left to counting: the common ones, as long as three others find."""
    present = sorted((unit for unit in flat if search.held[unit] > 0), key=lambda unit: search.held[unit])
    most = max(FOUND_POSTINGS, int(FOUND_SHARE * search.documents))
    left_out, together = set[Unit](), 0
    for place, unit in enumerate(present):
        together += search.held[unit]
        if place >= LEAST_FINDERS and together > most:
            left_out.add(unit)
    return left_out


def _conjunctive_phrases(search: Search) -> list[bytes] | None:
    """The phrases that every match must hold, where they are all that the tsquery leaves to prove; else None."""
    query = search.query
    parts = query.parts if isinstance(query, And) else (query,)
    runs = [search.runs[part] for part in parts if part in search.runs]  # type: ignore[comparison-overlap]
    if len(runs) < len(parts) or any(run.open_end and len(run.tokens) > 1 for run in runs):
        return None
    return [phrase_bytes(run.tokens) for run in runs if len(run.tokens) > 1]


def _ask(connection: Connection, search: Search, text: str, most: int | None) -> tuple[str, list[int]]:
    """All that match, or the `most` promising ones."""
    query = " & ".join([f"({text} | {quoted(ENDLESS)})", *scope_query(search.filter, search.is_most)])
    units_found = [unit for unit in search.held if search.runs[unit].tokens]
    found = rows(
        connection,
        "SELECT find_texts(%s, %s::bytea[], %s::tsquery[], %s::double precision[], %s, %s, %s, %s,"
        " %s::text[], %s::text[])",
        (
            query,
            _conjunctive_phrases(search) or [],
            [unit_query(search.runs[unit]).text for unit in units_found],
            [_weight(search, unit) for unit in units_found],
            search.average_length,
            most,
            *_unindexed(search.filter),
        ),
    )
    return query, [number for (number,) in found]


def _ask_any(connection: Connection, search: Search, most: int, finding: Sequence[Unit]) -> tuple[str, list[int]]:
    """The most promising of those that hold one of these units."""
    scope = scope_query(search.filter, search.is_most)
    queries = [" & ".join([unit_query(search.runs[unit]).text, *scope]) for unit in finding]
    found = rows(
        connection,
        "SELECT find_any(%s::tsquery[], %s::double precision[], %s, %s, %s, %s, %s::text[], %s::text[])",
        (
            [*queries, " & ".join([quoted(ENDLESS), *scope])],
            [*(_weight(search, unit) for unit in finding), sum(_weight(search, unit) for unit in finding)],
            search.average_length,
            most,
            *_unindexed(search.filter),
        ),
    )
    return " | ".join(queries), [number for (number,) in found]


def _weight(search: Search, unit: Unit) -> float:
    """The rarity of a unit, as BM25 has it."""
    held = search.held[unit]
    return max(math.log(max((search.documents - held + 0.5) / (held + 0.5), 1e-300)), 1e-6)


def _unindexed(filter: Filter) -> tuple[Any, ...]:
    """What of a filter the full-text index does not know: times and ids."""
    return (
        None if filter.after is None else to_ms(filter.after),
        None if filter.before is None else to_ms(filter.before),
        None if filter.only is None else sorted(filter.only),
        sorted(filter.exclude) if filter.exclude else None,
    )
