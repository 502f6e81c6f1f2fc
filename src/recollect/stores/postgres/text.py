"""Full text: the GIN index finds candidates (in a large index by the rarer words), then all words are counted.

The counts come from the token streams of the candidates; the lexical leg turns them into BM25, the same on every store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import InvalidInput
from recollect.domain.query import And, Node, Not, Or, Unit, is_flat, units
from recollect.domain.question import Filter
from recollect.domain.subjects import Words
from recollect.domain.times import to_ms
from recollect.domain.trigrams import trigrams
from recollect.ports import ScopeCounts, TextMatches
from recollect.stores.expressions import Run, finders
from recollect.stores.postgres.connection import Connection, Rows, one, rows
from recollect.stores.postgres.filters import TIMES, conditions, scope_query, without_idle_times
from recollect.stores.postgres.lexemes import (
    ENDLESS,
    TAGGED,
    Tokens,
    compiled,
    counted_name,
    fits_index,
    phrase_bytes,
    quoted,
    unit_query,
)
from recollect.stores.postgres.replica import Reads
from recollect.stores.subjects import number_of
from recollect.stores.tokens import TOKEN_BYTES, Streams, token_hash

Truth: TypeAlias = NDArray[np.bool_]

LARGE_INDEX = 20_000
"""From so many memories on, common words do not find, and only the best candidates are counted."""
FOUND_POSTINGS = 6_000
FOUND_SHARE = 0.01
"""The rarest words of a query find as long as together they are in no more memories."""
LEAST_FINDERS = 3
MOST_FINDERS = 64
"""A longer question finds by its rarest words, three times as many candidates; all its words are counted."""
CANDIDATES = 300
ALONE_POSTINGS = 1_000
"""The rarest of the words that find do so each by itself as long as together they are in no more memories; what holds
one of the others is looked at only if it holds a second one."""
UNPROVED_CANDIDATES = 20_000
"""So many are looked at where only the token streams can tell whether they match."""


FACTS = (
    f"SELECT w.documents, w.tokens, (SELECT memories FROM counts WHERE namespace = %(namespace)s), {TIMES},"
    " (SELECT reltuples FROM pg_class WHERE oid = 'texts'::regclass),"
    " ARRAY(SELECT coalesce((SELECT sum(memories) FROM terms WHERE term = u.term AND {own}), 0)::bigint"
    " FROM unnest(%(terms)s::text[]) WITH ORDINALITY u (term, place) ORDER BY place)"
    " FROM (SELECT coalesce(sum(memories), 0)::bigint AS documents, coalesce(sum(tokens), 0)::bigint AS tokens"
    " FROM counts WHERE {own}) w"
)


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
    columns: tuple[float, float]
    """What a word counts in the content, and in the tags."""
    is_most: bool
    """The tenant holds most of the index: its own mark in the index would find more than it spares."""


@dataclass(frozen=True, slots=True)
class Way:
    """A function of the server that returns the numbers of candidates, and the tsquery that it asks."""

    text: str
    call: str
    values: tuple[Any, ...]


Attempt: TypeAlias = Callable[[Connection, Search, Callable[[Way], Rows]], tuple[str, Rows]]
"""Another finder that is asked first: how it was asked, and what it found."""


class PostgresText:
    """The TextIndex port."""

    def __init__(self, reads: Reads, tokens: Tokens, attempt: Attempt) -> None:
        self._reads = reads
        self._tokens = tokens
        self._attempt = attempt

    def match(self, query: Node, filter: Filter, limit: int, weights: Sequence[float] = (1.0, 1.0)) -> TextMatches:
        if len(weights) != 2 or not all(math.isfinite(weight) for weight in weights):
            raise InvalidInput("column weights must be two finite numbers", "give one for content, one for tags")
        runs = self._tokens.runs(query)
        asked = units(query)

        def work(connection: Connection, facts: Rows) -> TextMatches:
            search = self._search(connection, query, runs, filter, limit, facts[0], (weights[0], weights[1]))
            text, kept = self._find(connection, search) if limit > 0 and search.documents else ("", [])
            ids, lengths, counts = self._count(kept, asked, search)
            whole = is_flat(query) and 0 < search.documents < LARGE_INDEX
            return TextMatches(
                ids=ids,
                lengths=lengths,
                counts=counts,
                units=asked,
                frequencies=np.array([search.held[unit] for unit in asked], dtype=np.float64),
                documents=search.documents,
                average_length=search.average_length,
                compiled=text,
                scope=_scope_counts(connection, search.filter, counts) if limit > 0 and whole else None,
            )

        tenant = self._reads.tenant
        statement = FACTS.format(own="TRUE" if tenant is None else "namespace = %(tenant)s")
        terms = [counted_name(runs[unit].tokens[0]) for unit in asked if _is_word(runs[unit])]
        values = {"namespace": filter.namespace, "tenant": tenant, "terms": terms}
        return self._reads.read_from(statement, values, work, filter.namespace)

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
        for number, id in self._reads.ask(query, values, filter.namespace):
            memories.setdefault(numbers[number], []).append(id)
        return memories

    def tokens(self, text: str) -> list[str]:
        return self._tokens.tokens(text)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        names = [counted_name(term) for term in terms]
        found = self._reads.ask(
            "SELECT term, sum(memories)::bigint FROM terms WHERE term = ANY (%s) GROUP BY term", (names,)
        )
        known = dict(found)
        return [int(known.get(name, 0)) for name in names]

    def similar(self, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        folded = "".join(self._tokens.words(word))
        if not folded or limit <= 0 or not fits_index(folded):
            return []
        asked = sorted(trigrams(folded)), minimum, limit, folded
        found = self._reads.ask("SELECT * FROM alike_words(%s, %s, %s, %s)", asked)
        return [(known, likeness) for known, likeness in found]

    def _search(
        self,
        connection: Connection,
        query: Node,
        runs: dict[Unit, Run],
        filter: Filter,
        limit: int,
        facts: tuple[Any, ...],
        columns: tuple[float, float],
    ) -> Search:
        """What finding needs to know of the index: its size, its age, and in how many memories each unit occurs."""
        documents, tokens, own, first, last, known, counts = facts
        single = [unit for unit in units(query) if _is_word(runs[unit])]
        held: dict[Unit, int] = dict(zip(single, counts))
        for unit in units(query):
            if unit not in held:
                held[unit] = self._occurrences(connection, runs[unit]) if runs[unit].tokens else 0
        average = tokens / documents if documents else 0.0
        # Whoever is bound to a tenant does not know how much the others hold; the server's own guess is enough here.
        everybody = documents if self._reads.tenant is None else known
        is_most = 0 <= everybody < 2 * (own or 0)
        seen = without_idle_times(filter, first, last)
        return Search(query, runs, seen, limit, held, documents, average, columns, is_most)

    def _occurrences(self, connection: Connection, run: Run) -> int:
        """How many memories hold a phrase or a prefix."""
        whole = run.tokens[:-1] if run.open_end else run.tokens
        phrase = phrase_bytes(whole) if len(whole) > 1 or (whole and run.open_end) else None
        endless = "" if run.open_end and not whole else f" | {quoted(ENDLESS)}"
        tenant = self._reads.tenant
        own = [] if tenant is None else scope_query(Filter(tenant), False)
        query = " & ".join([f"({unit_query(run).text}{endless})", *own])
        if phrase is None or not run.open_end:
            return int(one(connection, "SELECT count_texts(%s, %s)", (query, phrase)))
        found = self._reads.counting(
            connection, lambda: rows(connection, "SELECT content, tags FROM texts_holding(%s, %s)", (query, phrase))
        )
        return sum(any(run.open_count(column) for column in self._columns(content, tags)) for content, tags in found)

    def _columns(self, content: str, tags: Sequence[str]) -> tuple[list[str], list[str]]:
        return self._tokens.tokens(content), self._tokens.tokens(" ".join(tags))

    def _find(self, connection: Connection, search: Search) -> tuple[str, Rows]:
        """Ids and token streams of the candidates, and the tsquery that found them."""
        scope = conditions(search.filter)
        unsure = any(run.open_end and run.tokens for run in search.runs.values())
        columns = "m.id, t.content_tokens, t.tokens" + (", m.content, m.tags" if unsure else "")

        def fetch(way: Way) -> Rows:
            return rows(
                connection,
                # One by one through the primary keys, whatever the planner believes about tables it has not seen yet.
                f"SELECT {columns} FROM {way.call} n (number),"
                " LATERAL (SELECT * FROM texts t WHERE t.namespace = %s AND t.number = n.number OFFSET 0) t,"
                f" LATERAL (SELECT * FROM memories m WHERE m.number = n.number AND {scope.sql} OFFSET 0) m",
                (*way.values, search.filter.namespace, *scope.values),
                binary=True,
            )

        text, kept = self._attempt(connection, search, fetch)
        for way in _ways(search):
            if len(kept) >= search.limit:
                break
            text, kept = way.text, fetch(way)
        return text, kept

    def _count(
        self, kept: Rows, asked: Sequence[Unit], search: Search
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Ids, lengths and counts of those candidates that truly match, by their token streams."""
        every = list(search.runs)
        counts = self._counts(kept, every, search)
        held: dict[Unit, Truth] = {
            unit: counts[:, at].sum(axis=1) > 0 for at, unit in enumerate(every) if search.runs[unit].tokens
        }
        answer = _holds(search.query, held)
        true = np.zeros(0, dtype=np.int64) if answer is None else np.flatnonzero(answer)
        chosen = [every.index(unit) for unit in asked]
        lengths = np.array([len(kept[at][2]) // TOKEN_BYTES - 2 for at in true.tolist()], dtype=np.float64)
        return tuple(kept[at][0] for at in true.tolist()), lengths, counts[true][:, chosen]

    def _counts(self, kept: Rows, every: Sequence[Unit], search: Search) -> NDArray[np.float64]:
        counts = np.zeros((len(kept), len(every), 2), dtype=np.float64)
        if not kept:
            return counts
        streams = Streams.wide([row[2] for row in kept], [row[1] for row in kept])
        texts = [self._columns(row[3], row[4]) for row in kept] if len(kept[0]) > 3 else []
        for at, run in enumerate(search.runs[unit] for unit in every):
            if run.open_end and run.tokens:
                counts[:, at, :] = [[run.open_count(column) for column in text] for text in texts]
            elif run.tokens:
                counts[:, at, :] = streams.count([token_hash(token) for token in run.tokens])
        return counts


def _is_word(run: Run) -> bool:
    """Whether a unit is one whole token: those are counted beforehand."""
    return len(run.tokens) == 1 and not run.open_end


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


def _ways(search: Search) -> Iterator[Way]:
    """Ways to the candidates, to be tried until one has found enough: the cheaper first."""
    whole = compiled(search.query, search.runs)
    if whole is None:
        return
    if search.documents < LARGE_INDEX:
        yield _all_of(search, whole.text, None)
        return
    # Of very many alternatives it is too dear to look at all; what their tokens propose is proved by counting.
    many = is_flat(search.query) and len(search.runs) > MOST_FINDERS
    proved = many or whole.exact or _conjunctive_phrases(search) is not None
    most = (3 if many else 1) * CANDIDATES + 2 * search.limit if proved else UNPROVED_CANDIDATES
    alternatives = may_find(search)
    if not (proved and alternatives and isinstance(search.query, Or)):
        yield _all_of(search, whole.text, most)
        return
    rare = rarer(search, alternatives)
    alone = _alone(search, rare)
    yield _any_of(search, most, rare, alone, alternatives)
    if len(alone) < len(alternatives):
        yield _any_of(search, most, alternatives, alternatives, ())


def may_find(search: Search) -> list[Unit]:
    """The alternatives that find, as they were written: of very many the rarest, because each is a query of its own."""
    flat = [unit for unit in finders(search.query) if search.runs[unit].tokens]
    if len(flat) <= MOST_FINDERS:
        return flat
    rarest = set(sorted(flat, key=lambda unit: (search.held[unit] == 0, search.held[unit]))[:MOST_FINDERS])
    return [unit for unit in flat if unit in rarest]


def _alone(search: Search, finding: Sequence[Unit]) -> list[Unit]:
    """The rarest of these units, as long as together they are in few memories; all of them where a scope leaves few."""
    if scope_query(search.filter, search.is_most):
        return list(finding)
    ordered = sorted(finding, key=lambda unit: search.held[unit])
    together = accumulate(search.held[unit] for unit in ordered)
    return [unit for place, (unit, count) in enumerate(zip(ordered, together)) if not place or count <= ALONE_POSTINGS]


def rarer(search: Search, flat: Sequence[Unit]) -> list[Unit]:
    """The units that find: all but the common ones, which are left to counting as long as three others find."""
    present = sorted((unit for unit in flat if search.held[unit] > 0), key=lambda unit: search.held[unit])
    most = max(FOUND_POSTINGS, int(FOUND_SHARE * search.documents))
    left_out, together = set[Unit](), 0
    for place, unit in enumerate(present):
        together += search.held[unit]
        if place >= LEAST_FINDERS and together > most:
            left_out.add(unit)
    return [unit for unit in flat if unit not in left_out]


def _conjunctive_phrases(search: Search) -> list[bytes] | None:
    """The phrases that every match must hold, where they are all that the tsquery leaves to prove; else None."""
    query = search.query
    parts = query.parts if isinstance(query, And) else (query,)
    runs = [search.runs[part] for part in parts if part in search.runs]  # type: ignore[comparison-overlap]
    if len(runs) < len(parts) or any(run.open_end and len(run.tokens) > 1 for run in runs):
        return None
    return [phrase_bytes(run.tokens) for run in runs if len(run.tokens) > 1]


def _all_of(search: Search, text: str, most: int | None) -> Way:
    """All that match, or the `most` promising ones."""
    query = " & ".join([f"({text} | {quoted(ENDLESS)})", *scope_query(search.filter, search.is_most)])
    worth = [part for unit in search.held if search.runs[unit].tokens for part in worths(search, unit)]
    values = (
        query,
        _conjunctive_phrases(search) or [],
        [part.text for part in worth],
        [part.weight for part in worth],
        search.average_length,
        most,
        *_unindexed(search.filter),
    )
    call = "find_texts(%s, %s::bytea[], %s::tsquery[], %s::double precision[], %s, %s, %s, %s, %s::text[], %s::text[])"
    return Way(query, call, values)


def _any_of(search: Search, most: int, finding: Sequence[Unit], alone: Sequence[Unit], beside: Sequence[Unit]) -> Way:
    """The most promising of those that hold one of these units; beside one that does not find alone, another one."""
    scope = scope_query(search.filter, search.is_most)
    queries: list[str] = []
    weights: list[float] = []
    for unit in finding:
        others = [] if unit in alone else [unit_query(search.runs[other]).text for other in beside if other != unit]
        demands = [f"({' | '.join(others)})"] if others else []
        for worth in worths(search, unit):
            queries.append(" & ".join([worth.text, *demands, *scope]))
            weights.append(worth.weight)
    values = (
        [*queries, " & ".join([quoted(ENDLESS), *scope])],
        [*weights, sum(map(abs, weights))],
        search.average_length,
        most,
        *_unindexed(search.filter),
    )
    call = "find_any(%s::tsquery[], %s::double precision[], %s, %s, %s, %s, %s::text[], %s::text[])"
    return Way(" | ".join(queries), call, values)


def rarity(search: Search, unit: Unit) -> float:
    """The rarity of a unit, as BM25 has it."""
    held = search.held[unit]
    return max(math.log(max((search.documents - held + 0.5) / (held + 0.5), 1e-300)), 1e-6)


@dataclass(frozen=True, slots=True)
class Worth:
    """A tsquery, and what it is worth that a text matches it."""

    text: str
    weight: float


def worths(search: Search, unit: Unit) -> list[Worth]:
    """What a unit is worth in a text of average length that holds it once, and how much more or less in a tag.

    A tsvector of an older version does not tell tags from the content, and counts as if tags held all of it.
    """
    run, (content, tags) = search.runs[unit], map(_gain, search.columns)
    worth = [Worth(unit_query(run).text, rarity(search, unit) * content)]
    if tags != content:
        worth.append(Worth(unit_query(run, only=TAGGED).text, rarity(search, unit) * (tags - content)))
    return worth


def _gain(weight: float) -> float:
    """What BM25 gives for a word that counts so much, where one that counts 1 is given 1."""
    return weight * 2.2 / (weight + 1.2) if weight > 0 else 0.0


def _unindexed(filter: Filter) -> tuple[Any, ...]:
    """What of a filter the full-text index does not know: times and ids."""
    return (
        None if filter.after is None else to_ms(filter.after),
        None if filter.before is None else to_ms(filter.before),
        None if filter.only is None else sorted(filter.only),
        sorted(filter.exclude) if filter.exclude else None,
    )
