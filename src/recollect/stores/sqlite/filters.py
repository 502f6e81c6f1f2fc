"""A Filter as SQL conditions on `memories`, and as terms of the full-text scope column."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from recollect.domain.question import Filter
from recollect.domain.times import to_ms
from recollect.stores.scope_terms import scope_token
from recollect.stores.sqlite.connection import Connection, one

SMALL_SCOPE = 5_000
"""Up to so many memories, a scope is walked by its own index and sorted, instead of walking the order's index."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """SQL that holds for the memories in scope (table alias m), with its values."""

    sql: str
    values: tuple[Any, ...]


def conditions(filter: Filter) -> Conditions:
    """Every field of the filter."""
    scope = scope_conditions(filter)
    rest = unindexed_conditions(filter)
    return Conditions(f"{scope.sql} AND {rest.sql}", scope.values + rest.values)


def scope_conditions(filter: Filter) -> Conditions:
    """The fields that the full-text index knows as scope terms."""
    # Named memories are found by their ids: with the plus the planner cannot walk their namespace instead.
    parts, values = ["m.namespace = ?" if filter.only is None else "+m.namespace = ?"], [filter.namespace]
    if filter.project is not None:
        parts.append("m.project = ?")
        values.append(filter.project)
    for column, wanted, negated in (
        ("m.session", filter.sessions, False),
        ("m.type", filter.types, False),
        ("m.type", filter.without_types, True),
    ):
        if len(wanted) == 1 and not negated:
            parts.append(f"{column} = ?")
            values.append(wanted[0])
        elif wanted:
            parts.append(f"{column} {'NOT ' if negated else ''}IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(wanted))
    for tag in filter.tags:
        parts.append("EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)")
        values.append(tag)
    if filter.without_tags:
        parts.append("NOT EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value IN (SELECT value FROM json_each(?)))")
        values.append(json.dumps(filter.without_tags))
    return Conditions(" AND ".join(parts), tuple(values))


def unindexed_conditions(filter: Filter) -> Conditions:
    """The fields that only the memories' own columns can answer: times and ids."""
    parts: list[str] = []
    values: list[Any] = []
    if filter.after is not None:
        parts.append("m.created_at >= ?")
        values.append(to_ms(filter.after))
    if filter.before is not None:
        parts.append("m.created_at < ?")
        values.append(to_ms(filter.before))
    if filter.exclude:
        parts.append("m.id NOT IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(filter.exclude)))
    if filter.only is not None:
        parts.append("m.id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(filter.only)))
    return Conditions(" AND ".join(parts) or "1", tuple(values))


def is_turn(memory: str) -> str:
    """Whether a row of memories, by its name in a statement, is a turn of a conversation: others have no neighbours."""
    return f"{memory}.type = 'episode' AND {memory}.session IS NOT NULL"


def covers_store(connection: Connection, namespace: str) -> bool:
    """Whether no other namespace holds a memory."""
    return not one(connection, "SELECT EXISTS (SELECT 1 FROM namespaces WHERE namespace <> ?)", (namespace,))


def scope_index(connection: Connection, filter: Filter) -> str | None:
    """The index that finds the whole scope at once where the scope is small; else None."""
    if filter.only is not None:
        return ""
    for name, column, wanted in (
        ("memories_session", "session", filter.sessions),
        ("memories_project", "project", () if filter.project is None else (filter.project,)),
    ):
        if wanted:
            counted = one(
                connection,
                f"SELECT count(*) FROM (SELECT 1 FROM memories INDEXED BY {name} WHERE namespace = ?"
                f" AND {column} IN (SELECT value FROM json_each(?)) LIMIT {SMALL_SCOPE + 1})",
                (filter.namespace, json.dumps(wanted)),
            )
            if counted <= SMALL_SCOPE:
                return name
    held = one(connection, "SELECT memories FROM namespaces WHERE namespace = ?", (filter.namespace,)) or 0
    return "memories_created" if held <= SMALL_SCOPE else None


def scope_expression(filter: Filter, whole: bool) -> tuple[list[str], list[str]]:
    """What a full-text expression must demand, and what it must shut out; `whole`: the namespace is all there is."""

    def any_of(kind: str, wanted: tuple[str, ...]) -> str:
        tokens = [f'"{scope_token(kind, filter.namespace, value)}"' for value in wanted]
        return f"{{scope}} : ({' OR '.join(tokens)})"

    demands: list[str] = []
    if filter.project is not None:
        demands.append(any_of("project", (filter.project,)))
    if filter.sessions:
        demands.append(any_of("session", filter.sessions))
    if filter.types:
        demands.append(any_of("type", filter.types))
    demands.extend(any_of("tag", (tag,)) for tag in filter.tags)
    if not demands and not whole:
        demands.append(any_of("namespace", ("",)))
    refusals: list[str] = []
    if filter.without_types:
        refusals.append(any_of("type", filter.without_types))
    if filter.without_tags:
        refusals.append(any_of("tag", filter.without_tags))
    return demands, refusals
