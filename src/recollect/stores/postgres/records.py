"""The memories themselves: writing in transactions that the tenant's writers take in turns, reading in every order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put
from recollect.domain.errors import InvalidInput
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import Memory
from recollect.domain.pages import Behind
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.domain.times import to_ms
from recollect.ports import ScanOrder
from recollect.stores.postgres.changes import COLUMNS, NAMED, apply, namespaces_of
from recollect.stores.postgres.connection import EVERYONE, Connection, Server, one, rows, run
from recollect.stores.postgres.filters import TIMES, conditions, is_whole_tenant, without_idle_times
from recollect.stores.postgres.inserting import insert_all
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.listening import announce
from recollect.stores.postgres.lookups import look_up
from recollect.stores.postgres.replica import Reads
from recollect.stores.refusals import lost_page
from recollect.stores.rows import decode

Answer = TypeVar("Answer")

ORDERS: dict[ScanOrder, str] = {
    "created_at": "m.created_at DESC, m.id DESC",
    "accessed_at": "m.accessed_at DESC, m.id DESC",
    "id": "m.id",
}


class PostgresRecords:
    """The Records port."""

    def __init__(self, server: Server, reads: Reads, tokens: Tokens) -> None:
        self._server = server
        self._reads = reads
        self._tokens = tokens

    def write(self, changes: Sequence[Change]) -> None:
        wanted = tuple(changes)
        _require_own(wanted, self._server.address.namespace)

        def work(writing: Writing) -> None:
            if any(isinstance(change, Put | Erase) for change in wanted):
                writing.lock(namespaces_of(wanted, writing.connection))
            elif any(isinstance(change, AddLink | DropLink) for change in wanted):
                writing.lock(())  # no tenant, but whoever counts all links has to wait
            if not insert_all(wanted, writing):
                for change in wanted:
                    apply(change, writing)

        if wanted:
            transact(self._server, self._tokens, work)

    def fetch(self, ids: Sequence[str]) -> list[Memory]:
        if not ids:
            return []
        found = self._server.ask(f"SELECT {COLUMNS} FROM {NAMED}", (list(dict.fromkeys(ids)),))
        by_id = {row[0]: row for row in found}
        return [decode(by_id[id]) for id in ids if id in by_id]

    def scan(
        self, filter: Filter, order: ScanOrder = "created_at", limit: int = 100, after: str | Behind | None = None
    ) -> list[Memory]:
        if limit <= 0:
            return []

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            scope = conditions(filter)
            page, values = _page(connection, filter, order, after)
            return rows(
                connection,
                f"SELECT {COLUMNS} FROM memories m WHERE {scope.sql}{page} ORDER BY {ORDERS[order]} LIMIT %s",
                (*scope.values, *values, limit),
            )

        return [decode(row) for row in self._server.read(work, filter.namespace)]

    def recent(self, filter: Filter, limit: int, embedded: bool) -> list[Hit]:
        if limit <= 0:
            return []
        only = (
            ", LATERAL (SELECT 1 FROM vectors v WHERE v.namespace = m.namespace AND v.number = m.number LIMIT 1) v"
            if embedded
            else ""
        )

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            ends = one(connection, f"SELECT {TIMES}", {"namespace": filter.namespace})
            wanted = without_idle_times(filter, *ends)
            scope = conditions(wanted)
            if is_whole_tenant(wanted):  # the index has the order; a planner without statistics would sort everything
                run(connection, "SET LOCAL enable_sort = off")
            return rows(
                connection,
                f"SELECT m.id, m.accessed_at FROM memories m{only} WHERE {scope.sql}"
                f" ORDER BY {ORDERS['accessed_at']} LIMIT %s",
                (*scope.values, limit),
            )

        return [Hit(id, accessed_at / 1000) for id, accessed_at in self._reads.read(work, filter.namespace)]

    def lookup(
        self,
        namespace: str,
        *,
        key: str | None = None,
        content: str | None = None,
        project: str | None = None,
        session: str | None = None,
    ) -> Lookup:
        def work(connection: Connection) -> Lookup:
            (found,) = look_up(connection, namespace, [Wanted(key, content, project)])
            projects = () if session is None else _projects(connection, namespace, session)
            return replace(found, session_projects=projects)

        return self._server.read(work, namespace)

    def lookups(self, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
        return self._server.read(lambda connection: look_up(connection, namespace, wanted), namespace)


def transact(server: Server, tokens: Tokens, work: Callable[[Writing], Answer]) -> Answer:
    """Do the work in a transaction that ends with its sums written; then tell the workers what it left for them."""

    def attempt(connection: Connection) -> tuple[Answer, bool]:
        writing = Writing(connection, tokens)
        answer = work(writing)
        writing.settle()
        return answer, writing.left_work

    answer, left_work = server.write(attempt)
    if left_work:
        announce(server)
    return answer


def _require_own(changes: Sequence[Change], tenant: str | None) -> None:
    """Say it before row-level security does, which would let a tenant have the name that stands for all of them."""
    for change in changes:
        if isinstance(change, Put) and change.memory.scope.namespace == EVERYONE:
            raise InvalidInput("no namespace can have this name", "choose another", "scope.namespace")
        if isinstance(change, Put) and tenant not in (None, change.memory.scope.namespace):
            raise InvalidInput(
                f"this store is bound to the namespace {tenant}", "write there, or open the store without ?namespace="
            )


def _projects(connection: Connection, namespace: str, session: str) -> tuple[str, ...]:
    found = rows(
        connection,
        "SELECT DISTINCT project FROM memories WHERE namespace = %s AND session = %s AND project IS NOT NULL"
        " ORDER BY project",
        (namespace, session),
    )
    return tuple(project for (project,) in found)


def _page(
    connection: Connection, filter: Filter, order: ScanOrder, after: str | Behind | None
) -> tuple[str, tuple[Any, ...]]:
    """The condition for everything behind the last memory of the previous page."""
    if after is None:
        return "", ()
    id = after.id if isinstance(after, Behind) else after
    if order == "id":
        return " AND m.id > %s", (id,)
    column = "created_at" if order == "created_at" else "accessed_at"
    return f" AND (m.{column}, m.id) < (%s, %s)", (_moment(connection, filter, column, after), id)


def _moment(connection: Connection, filter: Filter, column: str, after: str | Behind) -> int:
    """The time of the last memory of the previous page; known by its id alone, it must still be there."""
    if isinstance(after, Behind):
        return to_ms(after.at)
    last = one(connection, f"SELECT {column} FROM memories WHERE namespace = %s AND id = %s", (filter.namespace, after))
    if last is None:
        raise lost_page(after)
    return last
