"""How many memories there are of each type and project, without reading any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import apsw

from recollect.stores.scope_terms import scope_token
from recollect.stores.sqlite.connection import Connection, one, rows, text

MOST_TYPES = 50
"""Of one namespace; with more of them, or with more namespaces, it takes less to look at every memory."""


def count_types(connection: Connection, namespaces: Mapping[str, int]) -> dict[str, int]:
    """By the full-text index, which lists the memories of every type; row by row where that does not add up."""
    with suppress(apsw.Error):  # a damaged index is the doctor's concern
        total: Counter[str] = Counter()
        for namespace, memories in namespaces.items() if len(namespaces) <= MOST_TYPES else ():
            total.update(_types_of(connection, namespace, memories))
        if total.total() == sum(namespaces.values()):
            return dict(sorted(total.items()))
    found = rows(connection, "SELECT type, count(*) FROM memories GROUP BY type ORDER BY type")
    return {text(type): memories for type, memories in found}


def _types_of(connection: Connection, namespace: str, memories: int) -> dict[str, int]:
    """Find a memory of a type that is not counted yet and count that type, until all memories are counted."""
    found: dict[str, int] = {}
    others = f'{{scope}} : "{scope_token("namespace", namespace, "")}"'
    while sum(found.values()) < memories and len(found) < MOST_TYPES:
        row = one(connection, "SELECT rowid FROM fulltext WHERE fulltext MATCH ? LIMIT 1", (others,))
        type = one(connection, "SELECT type FROM memories WHERE row = ?", (row,))
        if type is None or type in found:
            break
        token = scope_token("type", namespace, text(type))
        found[type] = one(connection, "SELECT doc FROM vocabulary WHERE term = ?", (token,)) or 0
        others += f' NOT {{scope}} : "{token}"'
    return found


def count_projects(connection: Connection) -> dict[str, int]:
    """In the order of the index, which begins with the namespace."""
    total: Counter[str] = Counter()
    for project, memories in rows(
        connection, "SELECT project, count(*) FROM memories WHERE project IS NOT NULL GROUP BY namespace, project"
    ):
        total[text(project)] += memories
    return dict(sorted(total.items()))
