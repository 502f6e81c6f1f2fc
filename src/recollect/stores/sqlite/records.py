"""The memories themselves: writing through the one writer, reading through the pool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recollect.domain.changes import Change
from recollect.domain.errors import StoreUnavailable
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import Memory
from recollect.domain.pages import Behind
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.domain.times import to_ms
from recollect.ports import ScanOrder
from recollect.stores.refusals import lost_page
from recollect.stores.rows import SOURCE, decode
from recollect.stores.sqlite.changes import apply
from recollect.stores.sqlite.connection import Connection, Readers, one, rows
from recollect.stores.sqlite.filters import conditions, scope_index
from recollect.stores.sqlite.ledger import Writing, counter
from recollect.stores.sqlite.lookups import look_up
from recollect.stores.sqlite.writer import Work, Writer

COLUMNS = ", ".join(f"m.{name.strip()}" for name in SOURCE.split(","))

ORDERS: dict[ScanOrder, str] = {
    "created_at": "m.created_at DESC, m.id DESC",
    "accessed_at": "m.accessed_at DESC, m.id DESC",
    "id": "m.id",
}


class SqliteRecords:
    """The Records port."""

    def __init__(self, readers: Readers, writer: Writer | None) -> None:
        self._readers = readers
        self._writer = writer

    def write(self, changes: Sequence[Change]) -> None:
        wanted = tuple(changes)

        def work(writing: Writing) -> None:
            for change in wanted:
                apply(change, writing)

        if wanted:
            writable(self._writer).run(work, wanted)

    def fetch(self, ids: Sequence[str]) -> list[Memory]:
        if not ids:
            return []
        with self._readers.borrow() as connection:
            found = rows(
                connection,
                f"SELECT {COLUMNS} FROM json_each(?) j CROSS JOIN memories m ON m.id = j.value",
                (json.dumps(list(ids)),),
            )
        by_id = {row[0]: row for row in found}
        return [decode(by_id[id]) for id in ids if id in by_id]

    def scan(
        self, filter: Filter, order: ScanOrder = "created_at", limit: int = 100, after: str | Behind | None = None
    ) -> list[Memory]:
        if limit <= 0:
            return []
        with self._readers.reading() as connection:
            scope = conditions(filter)
            page, values = _page(connection, filter, order, after)
            by = _by_ids(connection, filter, limit) if order == "id" else ""
            found = rows(
                connection,
                f"SELECT {COLUMNS} FROM memories m{by} WHERE {scope.sql}{page} ORDER BY {ORDERS[order]} LIMIT ?",
                (*scope.values, *values, limit),
            )
        return [decode(row) for row in found]

    def recent(self, filter: Filter, limit: int, embedded: bool) -> list[Hit]:
        if limit <= 0:
            return []
        scope = conditions(filter)
        embedded_too = " AND m.embedded > 0" if embedded else ""
        with self._readers.reading() as connection:
            small = scope_index(connection, filter)
            if small is not None:
                parts = [(f" INDEXED BY {small}" if small else "", embedded_too)]
            else:
                parts = [(" INDEXED BY memories_accessed_embedded", " AND m.embedded > 0")]
                parts += [] if embedded else [(" INDEXED BY memories_accessed_waiting", " AND m.embedded <= 0")]
            best = [
                f"SELECT * FROM (SELECT m.id, m.accessed_at FROM memories m{by} WHERE {scope.sql}{only}"
                f" ORDER BY {ORDERS['accessed_at']} LIMIT ?)"
                for by, only in parts
            ]
            found = rows(
                connection,
                f"{' UNION ALL '.join(best)} ORDER BY accessed_at DESC, id DESC LIMIT ?",
                (*(*scope.values, limit) * len(best), limit),
            )
        return [Hit(id, accessed_at / 1000) for id, accessed_at in found]

    def lookup(
        self,
        namespace: str,
        *,
        key: str | None = None,
        content: str | None = None,
        project: str | None = None,
        session: str | None = None,
    ) -> Lookup:
        with self._readers.reading() as connection:
            (found,) = look_up(connection, namespace, [Wanted(key, content, project)])
            projects = () if session is None else _projects(connection, namespace, session)
            return replace(found, session_projects=projects)

    def lookups(self, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
        with self._readers.reading() as connection:
            return look_up(connection, namespace, wanted)


def run(writer: Writer | None, work: Work) -> Any:
    """Write, unless the store was opened for reading."""
    return writable(writer).run(work)


def writable(writer: Writer | None) -> Writer:
    """The writer, unless the store was opened for reading, closed, or opened by another process."""
    if writer is None:
        hint = "open it without read_only, where its file and its folder can be written"
        raise StoreUnavailable("the store is open for reading only", hint)
    writer.require_open()
    return writer


def _projects(connection: Connection, namespace: str, session: str) -> tuple[str, ...]:
    found = rows(
        connection,
        "SELECT DISTINCT project FROM memories WHERE namespace = ? AND session = ? AND project IS NOT NULL"
        " ORDER BY project",
        (namespace, session),
    )
    return tuple(project for (project,) in found)


def _by_ids(connection: Connection, filter: Filter, limit: int) -> str:
    """Walk the ids of all namespaces where a page is found sooner so than by sorting its namespace."""
    held = one(connection, "SELECT memories FROM namespaces WHERE namespace = ?", (filter.namespace,)) or 0
    walks = filter.only is None and limit * counter(connection, "documents") < held * held
    return " INDEXED BY sqlite_autoindex_memories_1" if walks else ""


def _page(
    connection: Connection, filter: Filter, order: ScanOrder, after: str | Behind | None
) -> tuple[str, tuple[Any, ...]]:
    """The condition for everything behind the last memory of the previous page."""
    if after is None:
        return "", ()
    id = after.id if isinstance(after, Behind) else after
    if order == "id":
        return " AND m.id > ?", (id,)
    column = "created_at" if order == "created_at" else "accessed_at"
    return f" AND (m.{column}, m.id) < (?, ?)", (_moment(connection, filter, column, after), id)


def _moment(connection: Connection, filter: Filter, column: str, after: str | Behind) -> int:
    """The time of the last memory of the previous page; known by its id alone, it must still be there."""
    if isinstance(after, Behind):
        return to_ms(after.at)
    last = one(connection, f"SELECT {column} FROM memories WHERE id = ? AND namespace = ?", (after, filter.namespace))
    if last is None:
        raise lost_page(after)
    return last
