"""A BM25 extension of the server as another finder of candidates, where the address asks for it (`bm25=extension`).

What pg_textsearch writes is in nobody's log, and one open write keeps readers waiting. So its index stands on an
UNLOGGED copy of our tokens that nobody adds to once it is made: after a crash, on a standby and in a restored backup
that copy is empty, and so is the table that would tell of it. What changes later is noted by a trigger and found by its
tsvector, until upkeep makes the next copy. Whatever fails here, our own finder answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
from psycopg import sql

from recollect.domain.errors import RecollectError
from recollect.domain.query import is_flat
from recollect.stores.postgres.connection import Connection, Rows, Server, one, rows, run, search_path
from recollect.stores.postgres.filters import is_whole_tenant
from recollect.stores.postgres.ledger import totals
from recollect.stores.postgres.lexemes import ENDLESS, phrase_bytes, quoted, unit_query
from recollect.stores.postgres.ranked_tables import COPY, DROP, END, SETTLED, SIFT, TABLES
from recollect.stores.postgres.text import CANDIDATES, LARGE_INDEX, Search, Way, may_find, rarer, rarity

log = logging.getLogger(__name__)

KNOWN = "pg_textsearch"
LEAST = LARGE_INDEX
"""Smaller indexes need no help."""
AWAY_S = 60.0
"""So long the extension is left alone after it failed."""
BUILDING = 0x5243_4C57
"""The class of the advisory lock of whoever makes a copy."""
LOCK_S = 5

DETECTED = (
    "SELECT e.extname, e.extversion FROM pg_am a JOIN pg_depend d ON d.classid = 'pg_am'::regclass"
    " AND d.objid = a.oid AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid WHERE a.amname = 'bm25'"
)
"""Several extensions claim the access method: the one it belongs to counts."""
IS_THERE = "SELECT to_regclass('ranked_state') IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Copied:
    """The copy that is whole: how many texts it holds, how many came later, from how many on the next one is due."""

    number: int
    held: int
    later: int
    due: int


@dataclass(frozen=True, slots=True)
class Known:
    """What the server has for BM25: an extension, and how far our copy for it is."""

    name: str
    version: str
    copied: Copied | None


class Ranked:
    """The extension as a finder, and the care of its copy."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._wanted = server.address.bm25 == "extension"
        self._away_until = 0.0

    def attempt(self, connection: Connection, search: Search, fetch: Callable[[Way], Rows]) -> tuple[str, Rows]:
        """What the extension finds and how it was asked; nothing where it cannot or must not."""
        way = _way(search) if self._wanted and time.monotonic() >= self._away_until else None
        if way is None:
            return "", []
        there = connection.execute(f"SAVEPOINT ranked; {IS_THERE}".encode())
        there.nextset()
        try:
            return (way.text, fetch(way)) if there.fetchone() == (True,) else ("", [])
        except psycopg.Error as error:
            connection.execute("ROLLBACK TO SAVEPOINT ranked")
            self._away_until = time.monotonic() + AWAY_S
            log.warning("the BM25 extension fails, our own finder answers: %s", type(error).__name__)
            return "", []

    def described(self, connection: Connection) -> str:
        """The extension, and whether it is used or why not, for people to read."""
        known = _known(connection)
        if known is None:
            return "no BM25 extension"
        if known.name != KNOWN:
            how = f"not used: only {KNOWN} is known"
        elif not self._wanted:
            how = "not used: the address does not ask for it with bm25=extension"
        elif known.copied is None:
            how = f"not used: no index here, upkeep by the owner of the tables builds one from {LEAST} memories on"
        elif known.copied.later > 2 * known.copied.due:
            how = "not used: too much came later than its index, upkeep by the owner of the tables builds the next"
        else:
            how = f"finds among {known.copied.held} memories, our own finder among {known.copied.later} later ones"
        return f"{known.name} {known.version} ({how})"

    def keep(self) -> int:
        """Make the copy that is due, or drop what nobody asks for; how many were made. Only the owner of texts can."""
        owner, is_there, known, documents = self._server.read(_state)
        if owner is None:
            return 0
        try:
            if not self._wanted or known is None or known.name != KNOWN:
                if is_there:
                    self._drop(owner)
                return 0
            if known.copied is not None and known.copied.later <= known.copied.due:
                with self._as(owner) as connection:
                    run(connection, SIFT.format(copy=known.copied.number))
                return 0
            if documents < LEAST:
                return 0
            if not is_there:
                with self._as(owner) as connection:
                    connection.execute(TABLES.encode())
            return self._make(owner)
        except RecollectError as error:
            log.warning("the index of the BM25 extension is left as it is: %s", error)
            return 0

    def _make(self, owner: str) -> int:
        with self._as(owner, steady=True) as connection:
            if not one(connection, "SELECT pg_try_advisory_xact_lock(%s, hashtext(current_schema()))", (BUILDING,)):
                return 0
            before = _copies(connection)
            copy = 1 + max((int(name.removeprefix("ranked_")) for name in before), default=0)
            connection.execute(COPY.format(copy=copy).encode())
        with self._as(owner) as connection:
            run(connection, SETTLED)
            run(connection, SIFT.format(copy=copy))
        with suppress(RecollectError):  # somebody still reads there: they go with the next one
            self._drop_copies(owner, before)
        return 1

    def _drop(self, owner: str) -> None:
        with self._as(owner) as connection:
            connection.execute(END.encode())
            copies = _copies(connection)
        self._drop_copies(owner, copies)
        with self._as(owner) as connection:
            connection.execute(DROP.encode())

    def _drop_copies(self, owner: str, names: list[str]) -> None:
        for name in names:
            with self._as(owner) as connection:
                run(connection, f"DROP TABLE {name}")

    @contextmanager
    def _as(self, owner: str, *, steady: bool = False) -> Generator[Connection]:
        """A transaction of the owner of our tables, who waits for nobody for long."""
        with self._server.plain() as connection:
            path = search_path(self._server.address.schema, self._server.extension)
            how = sql.SQL("ISOLATION LEVEL REPEATABLE READ" if steady else "")
            connection.execute(
                sql.SQL(
                    "BEGIN {how}; SET LOCAL ROLE {owner}; SET LOCAL search_path = {path};"
                    " SET LOCAL lock_timeout = {lock}; SET LOCAL statement_timeout = 0"
                ).format(how=how, owner=sql.Identifier(owner), path=path, lock=sql.Literal(f"{LOCK_S}s"))
            )
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _way(search: Search) -> Way | None:
    """For plain words of which any may occur in a tenant that is most of the index: nothing else can be demanded."""
    asked = may_find(search)
    if search.documents < LEAST or not (search.is_most and is_whole_tenant(search.filter)):
        return None
    if search.columns[0] != search.columns[1]:  # the extension does not know what is in a tag
        return None
    if (
        not asked
        or not is_flat(search.query)
        or any(len(run.tokens) > 1 or run.open_end for run in search.runs.values())
    ):
        return None
    words = " ".join(f"x{phrase_bytes(search.runs[unit].tokens).hex()}" for unit in asked)
    rare = rarer(search, asked)
    weights = [rarity(search, unit) for unit in rare]
    values = (
        words,
        [*(unit_query(search.runs[unit]).text for unit in rare), quoted(ENDLESS)],
        [*weights, sum(weights)],
        search.average_length,
        CANDIDATES + 2 * search.limit,
    )
    call = "(SELECT DISTINCT find_ranked(%s, %s::tsquery[], %s::double precision[], %s, %s))"
    return Way(words, call, values)


def _copies(connection: Connection) -> list[str]:
    named = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname ~ %s"
    return [name for (name,) in rows(connection, named, ("^ranked_[0-9]+$",))]


def _known(connection: Connection) -> Known | None:
    found = one(connection, DETECTED)
    if found is None:
        return None
    is_there = one(connection, IS_THERE)
    copied = one(connection, "SELECT copy, held, later, due FROM ranked_copy()") if is_there else None
    return Known(found[0], found[1], None if copied is None else Copied(*copied))


def _state(connection: Connection) -> tuple[str | None, bool, Known | None, int]:
    """The owner of our tables if we may act for him, whether there is a copy, the extension, and how much there is."""
    owner = one(
        connection,
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'texts'::regclass"
        " AND pg_has_role(session_user, relowner, 'USAGE')",
    )
    return owner, one(connection, IS_THERE), _known(connection), totals(connection)[0]
