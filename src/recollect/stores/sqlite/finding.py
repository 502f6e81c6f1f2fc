"""Phase one of a full-text search: the rows of the best candidates, out of all that hold a word of the query.

In a large index a query of alternatives is answered from lists in memory, which give each word its BM25 (a phrase as if
it occurred once; phase two counts it). Words that very many memories hold find nothing there: they weigh next to
nothing, and their lists are long. Where every word of the query has its list, nothing is left for phase two to count.
Everything else, and every small index, is FTS5's own ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.domain.query import Node, Not, Unit
from recollect.domain.question import Filter
from recollect.stores.expressions import Run, expression, finders
from recollect.stores.sqlite.connection import Connection, rows
from recollect.stores.sqlite.filters import covers_store, scope_expression, scope_index, unindexed_conditions
from recollect.stores.sqlite.postings import MOST_TIMES, Listed, Postings, View
from recollect.stores.sqlite.scopes import NOBODY, rows_in_scope

LARGE_INDEX = 5_000
"""From so many memories on, common words do not find."""
FOUND_POSTINGS = 60_000
FOUND_SHARE = 0.16
"""The rarest words of a query find as long as together they are in no more memories: what is looked at is bounded."""
RANKED_SHARE = 0.04
"""The same where FTS5 has to rank them, which costs it ten times as much."""
LEAST_FINDERS = 3
CANDIDATES_PER_HIT = 6
LEAST_CANDIDATES = 200
LISTED_CANDIDATES = 50
SPARE_EXCLUDED = 200
"""So many excluded memories are found and dropped: cheaper than to list all others."""
SPARE_CANDIDATES = 16
SMALL_CANDIDATES = 1_000
BASE = np.float32(0.3)
"""BM25's k1 (1 - b); k1 b = 0.9 goes with the length."""
SAMPLED = 32
"""Of so many rows the weight of one is looked at, to guess where the greatest begin: sorting all takes far longer."""
COUNTED_SCOPE = 1_000
"""A scope of so few memories is counted whole."""


@dataclass(frozen=True, slots=True)
class Search:
    """A query with all that finding it needs to know."""

    query: Node
    runs: dict[Unit, Run]
    filter: Filter
    limit: int
    weights: Sequence[float]
    counted: dict[Unit, int]
    """In how many memories each unit occurs."""
    view: View
    """The state of the file that is searched."""

    @property
    def is_large(self) -> bool:
        return is_large(self.view)

    @property
    def most(self) -> int:
        """So many candidates hold the `limit` best, whatever the lexical leg makes of their counts."""
        return self.limit + self.limit // 4 + SPARE_CANDIDATES + len(self.filter.exclude)


class Candidates(NamedTuple):
    """What phase one found."""

    compiled: str = ""
    """The expression that found them."""
    rows: Sequence[int] = ()
    is_all: bool = False
    """Whether there are no others in scope."""
    counts: NDArray[np.float64] | None = None
    """How often each holds each unit that has tokens, by column, where the lists tell: nothing is left to count."""


def is_large(view: View) -> bool:
    """Whether words that many memories hold are left to the second phase."""
    return view.documents >= LARGE_INDEX


def find(connection: Connection, search: Search, postings: Postings) -> Candidates:
    """The best candidates."""
    whole = expression(search.query, search.runs)
    if whole is None:
        return Candidates(is_all=True)
    large = search.is_large
    if large and search.weights[0] == search.weights[1] > 0:
        units = [unit for unit in finders(search.query) if search.runs[unit].tokens]
        if units:
            return _listed(connection, search, units, postings)
    wanted = max(CANDIDATES_PER_HIT * search.limit, LEAST_CANDIDATES if large else SMALL_CANDIDATES)
    left_out = _common(search, finders(search.query), RANKED_SHARE) if large else set[Unit]()
    if left_out and scope_index(connection, search.filter) is None:  # a small scope bounds the work by itself
        rare = expression(search.query, search.runs, left_out)
        if rare is not None:
            compiled, found = _ranked(connection, rare, search, wanted)
            if len(found) >= search.limit:
                return Candidates(compiled, found)
    compiled, found = _ranked(connection, whole, search, wanted)
    return Candidates(compiled, found, len(found) < wanted)


def _common(search: Search, units: Sequence[Unit], share: float) -> set[Unit]:
    """The units that are left to scoring: the common ones, as long as three others find."""
    present = [unit for unit in units if search.runs[unit].tokens and search.counted[unit] > 0]
    present.sort(key=lambda unit: search.counted[unit])
    most = max(FOUND_POSTINGS, int(share * search.view.documents))
    sums = accumulate(search.counted[unit] for unit in present)
    return {
        unit for place, (unit, together) in enumerate(zip(present, sums)) if place >= LEAST_FINDERS and together > most
    }


def _listed(connection: Connection, search: Search, units: Sequence[Unit], postings: Postings) -> Candidates:
    """Candidates from the lists in memory. Where the rarer words find too few, all words find."""
    scope = rows_in_scope(connection, postings, search.filter, search.view, spare=SPARE_EXCLUDED)
    compiled, dropped = _without_dropped(connection, search, units, postings)
    rows = scope.rows
    if rows is None and search.view.documents - len(scope.refused) <= COUNTED_SCOPE:
        # Counts of the whole scope: what is excluded has no part in them.
        rows = rows_in_scope(connection, postings, search.filter, search.view).named(search.view.top)
    if rows is not None and len(rows) <= COUNTED_SCOPE:
        return Candidates(compiled, np.setdiff1d(rows, dropped, assume_unique=True).tolist(), True)
    left_out = _common(search, units, FOUND_SHARE)
    found, lists, all_counted = np.zeros(0, np.int64), list[Listed](), False
    for finding in ([unit for unit in units if unit not in left_out], units):
        weight, lists = _weighed(connection, search, finding, postings)
        weight[scope.refused] = weight[dropped] = 0
        all_counted = len(lists) == len(units)
        wanted = search.most if all_counted else LISTED_CANDIDATES + 2 * search.limit + len(search.filter.exclude)
        found = _heaviest(weight, wanted) if rows is None else rows[_heaviest(weight[rows], wanted)]
        if len(found) >= search.limit or not left_out:
            break
    return Candidates(compiled, found.tolist(), counts=_counts(found, lists) if all_counted else None)


def _without_dropped(
    connection: Connection, search: Search, units: Sequence[Unit], postings: Postings
) -> tuple[str, NDArray[np.integer]]:
    """The expression that these units find by, and the rows that hold what the query shuts out."""
    compiled = " OR ".join(search.runs[unit].quoted for unit in units)
    drop = expression(search.query.drop, search.runs) if isinstance(search.query, Not) else None
    if drop is None:
        return compiled, NOBODY
    return f"({compiled}) NOT {drop}", postings.rows(connection, f"{{content tags}} : ({drop})", search.view)


def _heaviest(weight: NDArray[np.float32], wanted: int) -> NDArray[np.int64]:
    """The places of the `wanted` greatest weights above zero, and of equal ones at the edge the first ones."""
    sample = np.sort(weight[::SAMPLED])[::-1]
    guess = 2 * wanted // SAMPLED + 8  # of the sample so many are greater than the edge, hardly ever fewer
    bound = sample[guess] if guess < len(sample) else 0
    found = np.flatnonzero(weight >= bound) if bound > 0 else np.flatnonzero(weight)
    if len(found) < wanted and bound > 0:
        found = np.flatnonzero(weight)
    if len(found) <= wanted:
        return found
    worth = weight[found]
    edge = np.partition(worth, len(worth) - wanted)[len(worth) - wanted]
    return np.concatenate([found[worth > edge], found[worth == edge][:wanted]])


def _weighed(
    connection: Connection, search: Search, units: Sequence[Unit], postings: Postings
) -> tuple[NDArray[np.float32], list[Listed]]:
    """The BM25 of every row by these units, and the lists of those units that are single words."""
    view = search.view
    lengths, slope = postings.lengths(connection, view), np.float32(0.9 / (view.average_length or 1.0))
    weight, lists = np.zeros(view.top + 1, np.float32), list[Listed]()
    for unit in units:
        rarity = (view.documents - search.counted[unit] + 0.5) / (search.counted[unit] + 0.5)
        inverse = np.float32(2.2 * max(np.log(max(rarity, 1e-300)), 1e-6))
        run = search.runs[unit]
        if len(run.tokens) == 1 and not run.open_end:
            lists.append(listed := postings.term(connection, run.tokens[0], view))
            times = listed.times
            weight[listed.found] += inverse * times / (times + BASE + slope * lengths[listed.found])
        else:
            rows = postings.rows(connection, f"{{content tags}} : {run.quoted}", view)
            weight[rows] += inverse / (1 + BASE + slope * lengths[rows])
    return weight, lists


def _counts(found: NDArray[np.integer], lists: Sequence[Listed]) -> NDArray[np.float64] | None:
    """How often each row holds each listed word, in its content and in its tags; None where a list lost count."""
    counts = np.zeros((len(found), len(lists), 2))
    for number, listed in enumerate(lists):
        if not len(listed.found):
            continue
        places = np.minimum(np.searchsorted(listed.found, found), len(listed.found) - 1)
        holding = np.flatnonzero(listed.found[places] == found)
        places = places[holding]
        times, in_tags = listed.times[places], listed.in_tags[places]
        if (times == MOST_TIMES).any():
            return None
        counts[holding, number, 0] = times - in_tags
        counts[holding, number, 1] = in_tags
    return counts


def _ranked(connection: Connection, text: str, search: Search, wanted: int) -> tuple[str, list[int]]:
    """The best rows in scope by FTS5's rank. Scope terms have weight 0: they restrict, they do not score."""
    filter, weights = search.filter, search.weights
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
