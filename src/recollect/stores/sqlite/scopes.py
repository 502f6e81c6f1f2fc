"""The rows of a scope, before any search looks at them: from the lists of the full-text index's scope terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from recollect.domain.question import Filter
from recollect.domain.times import to_ms
from recollect.stores.sqlite.connection import Connection, one, whole
from recollect.stores.sqlite.filters import conditions, covers_store, scope_expression
from recollect.stores.sqlite.postings import Postings, View, common_rows

Rows = NDArray[np.integer]

END = "SELECT {end}(created_at) FROM memories INDEXED BY memories_created WHERE namespace = ?"
ALWAYS = -(2**63 - 1), 2**63 - 2
FEW_ROWS = 4_096
"""Listing so many takes less than a millisecond."""
FEW_SHARE = 16
"""So much less than listing all is worth a try in a large store."""
FEWEST_ROWS = 512
"""So few left out are looked for first: most filters of time leave out hardly anything, or nearly everything."""
NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Within:
    """What a filter lets through: the rows named, rising, or where `rows` is None everything but the refused ones."""

    rows: Rows | None
    refused: Rows

    def named(self, top: int) -> Rows:
        """The rows, one by one, out of all up to the top; rows of forgotten memories may be among them."""
        return _without(self.rows, self.refused, top)


def without_idle_times(connection: Connection, filter: Filter) -> Filter:
    """The filter without those bounds of time that every memory of the namespace keeps anyway."""
    after, before = filter.after, filter.before
    if after is not None:
        first = one(connection, END.format(end="min"), (filter.namespace,))
        after = None if first is not None and to_ms(after) <= whole(first) else after
    if before is not None:
        last = one(connection, END.format(end="max"), (filter.namespace,))
        before = None if last is not None and to_ms(before) > whole(last) else before
    return filter if (after, before) == (filter.after, filter.before) else replace(filter, after=after, before=before)


def rows_in_scope(connection: Connection, postings: Postings, filter: Filter, view: View, *, spare: int = 0) -> Within:
    """The rows that the filter lets through, but for up to `spare` excluded memories: who finds so many more than are
    wanted can drop them afterwards.

    To pass over rows takes next to nothing, to pick out nearly all of them as long as a search: where nothing is
    demanded, those that are refused are named. Scope terms are hashes: what a namesake lets through must be checked on
    the memories' own columns.
    """
    found, refused = _scope(connection, postings, filter, view, spare)
    return Within(None, refused) if found is None else Within(_without(found, refused, view.top), NOBODY)


def size_of_scope(connection: Connection, postings: Postings, filter: Filter, view: View) -> int | None:
    """How many memories the filter lets through; None when that is everything."""
    found, refused = _scope(connection, postings, filter, view, 0)
    if found is None:
        return view.documents - len(refused) if len(refused) else None
    return len(_without(found, refused, view.top))


def _scope(
    connection: Connection, postings: Postings, filter: Filter, view: View, spare: int
) -> tuple[Rows | None, Rows]:
    """The rows that are demanded, None where none are, and those that are refused."""
    if filter.only is not None:
        scope = conditions(filter)
        return _numbers(connection, f"SELECT group_concat(row) FROM memories m WHERE {scope.sql}", scope.values), NOBODY
    terms = scope_expression(filter, covers_store(connection, filter.namespace))
    demanded, refused = ([postings.rows(connection, term, view) for term in some] for some in terms)
    if filter.after is not None or filter.before is not None:
        inside, outside = _by_time(connection, filter, max(FEW_ROWS, view.top // FEW_SHARE))
        demanded += [] if inside is None else [inside]
        refused += [] if outside is None else [outside]
    everything = not demanded and not any(map(len, refused))
    if filter.exclude and not (everything and len(filter.exclude) <= spare):
        refused.append(_excluded(connection, filter))
    return reduce(common_rows, demanded) if demanded else None, _union(refused)


def _union(lists: Sequence[Rows]) -> Rows:
    """The rows of all rising lists, each once. Mostly there is one; several are merged, as numpy's own way to make
    numbers distinct takes ten times as long as a search."""
    held = [one for one in lists if len(one)]
    if len(held) < 2:
        return held[0] if held else NOBODY
    merged = np.sort(np.concatenate(held), kind="stable")
    return merged[np.concatenate([[True], merged[1:] != merged[:-1]])]


def _without(rows: Rows | None, refused: Rows, top: int) -> Rows:
    """The rows that are not refused; None stands for all up to the top."""
    rows = np.arange(1, top + 1) if rows is None else rows
    if not len(refused):
        return rows
    is_open = np.ones(max(rows.max(initial=0), refused.max()) + 1, np.bool_)
    is_open[refused] = False
    return rows[is_open[rows]]


def _by_time(connection: Connection, filter: Filter, few: int) -> tuple[Rows | None, Rows | None]:
    """The rows of the filter's time, or those of all other times, whichever are few; else the former."""

    def left_out(limit: int) -> Rows:
        return _union([_between(connection, filter.namespace, *span, limit) for span in others])

    first = ALWAYS[0] if filter.after is None else to_ms(filter.after)
    last = ALWAYS[1] if filter.before is None else to_ms(filter.before) - 1
    others = ((ALWAYS[0], first - 1), (last + 1, ALWAYS[1]))
    if len(outside := left_out(FEWEST_ROWS)) < FEWEST_ROWS:
        return None, outside
    inside = _between(connection, filter.namespace, first, last, few)
    if len(inside) < few:
        return inside, None
    if len(outside := left_out(few)) < few:
        return None, outside
    return _between(connection, filter.namespace, first, last, -1), None


def _between(connection: Connection, namespace: str, first: int, last: int, limit: int) -> Rows:
    sql = (
        "SELECT group_concat(row) FROM (SELECT row FROM memories INDEXED BY memories_created"
        " WHERE namespace = ? AND created_at BETWEEN ? AND ? LIMIT ?)"
    )
    return _numbers(connection, sql, (namespace, first, last, limit))


def _excluded(connection: Connection, filter: Filter) -> Rows:
    scope = conditions(Filter(namespace=filter.namespace, only=filter.exclude))
    return _numbers(connection, f"SELECT group_concat(row) FROM memories m WHERE {scope.sql}", scope.values)


def _numbers(connection: Connection, sql: str, values: tuple[object, ...]) -> Rows:
    text = one(connection, sql, values)
    return np.sort(np.fromstring(str(text), dtype=np.int64, sep=",")) if text else np.zeros(0, np.int64)
