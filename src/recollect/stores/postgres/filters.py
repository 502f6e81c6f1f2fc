"""A Filter as SQL conditions on `memories` (alias m), and as lexemes of the full-text index."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from recollect.domain.question import Filter
from recollect.domain.times import to_ms
from recollect.stores.scope_terms import scope_token

_END = "(SELECT created_at FROM memories WHERE namespace = %(namespace)s ORDER BY created_at {way}, id {way} LIMIT 1)"
TIMES = f"{_END.format(way='ASC')}, {_END.format(way='DESC')}"
"""When the first and the last memory of a namespace were made, as columns of a statement."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """SQL that holds for the memories in scope, with its values."""

    sql: str
    values: tuple[Any, ...]


def conditions(filter: Filter) -> Conditions:
    """Every field of the filter."""
    parts, values = ["m.namespace = %s"], list[Any]([filter.namespace])

    def add(condition: str, value: Any) -> None:
        parts.append(condition)
        values.append(value)

    if filter.project is not None:
        add("m.project = %s", filter.project)
    if filter.sessions:
        add("m.session = ANY (%s)", list(filter.sessions))
    if filter.types:
        add("m.type = ANY (%s)", list(filter.types))
    if filter.without_types:
        add("m.type <> ALL (%s)", list(filter.without_types))
    if filter.tags:
        add("m.tags::jsonb @> %s::jsonb", json.dumps(filter.tags))
    if filter.without_tags:
        add("NOT m.tags::jsonb ?| %s::text[]", list(filter.without_tags))
    if filter.after is not None:
        add("m.created_at >= %s", to_ms(filter.after))
    if filter.before is not None:
        add("m.created_at < %s", to_ms(filter.before))
    if filter.exclude:
        add("m.id <> ALL (%s)", sorted(filter.exclude))
    if filter.only is not None:
        add("m.id = ANY (%s::text[])", sorted(filter.only))
    return Conditions(" AND ".join(parts), tuple(values))


def without_idle_times(filter: Filter, first: int | None, last: int | None) -> Filter:
    """The filter without those bounds of time that every memory of the namespace keeps anyway (see TIMES).

    Every question ends at its own time: left in, that bound would be asked of each memory that an index finds.
    """
    if first is None or last is None or (filter.after is None and filter.before is None):
        return filter
    after = None if filter.after is not None and to_ms(filter.after) <= first else filter.after
    before = None if filter.before is not None and to_ms(filter.before) > last else filter.before
    return replace(filter, after=after, before=before)


def is_whole_tenant(filter: Filter) -> bool:
    """Whether nothing but the namespace restricts."""
    return filter == Filter(namespace=filter.namespace)


def scope_query(filter: Filter, is_most: bool) -> list[str]:
    """What a full-text query must demand in addition, each a piece of tsquery text.

    A tenant that `is_most` of the index is not demanded: the finders check it on what they found.

    The lexemes are hashes: what a namesake lets through, the conditions on the memories keep out.
    """

    def any_of(kind: str, wanted: tuple[str, ...]) -> str:
        return f"({' | '.join(_quoted(scope_token(kind, filter.namespace, value)) for value in wanted)})"

    demands = [any_of("tag", (tag,)) for tag in filter.tags]
    if filter.project is not None:
        demands.append(any_of("project", (filter.project,)))
    if filter.sessions:
        demands.append(any_of("session", filter.sessions))
    if filter.types:
        demands.append(any_of("type", filter.types))
    if not demands and not is_most:
        demands.append(any_of("namespace", ("",)))
    demands += [f"!{_quoted(scope_token('type', filter.namespace, value))}" for value in filter.without_types]
    demands += [f"!{_quoted(scope_token('tag', filter.namespace, value))}" for value in filter.without_tags]
    return demands


def _quoted(token: str) -> str:
    return f"'{token}'"
