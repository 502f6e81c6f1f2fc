"""Keeping the schema healthy: facts, check and repair, routine work, settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from psycopg import sql

from recollect.domain.errors import Conflict, InvalidInput
from recollect.ports import MARKS, Finding, Graves, StoreSize, StoreStats
from recollect.stores.graves import joined
from recollect.stores.postgres import alike
from recollect.stores.postgres.checks import find_all
from recollect.stores.postgres.connection import Connection, Server, one, rows, run
from recollect.stores.postgres.ledger import TallyKind, Writing
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.nearest import (
    EXACT_SCOPE,
    INDEXED_DIMENSIONS,
    drop_index,
    has_index,
    index_name,
    owns_vectors,
)
from recollect.stores.postgres.ranked import Ranked
from recollect.stores.postgres.records import transact
from recollect.stores.postgres.repairs import repair_all

CHECK_S = 600.0
MERGE = (
    "SELECT coalesce(sum(gin_clean_pending_list(c.oid)), 0)::bigint FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
    " WHERE a.amname = 'gin' AND c.relnamespace = %s::regnamespace AND pg_has_role(session_user, c.relowner, 'USAGE')"
)
"""What was written since is kept beside a GIN index, and every search reads it through: now it goes into the index."""


class PostgresCare:
    """The Care port."""

    def __init__(self, server: Server, tokens: Tokens, ranked: Ranked) -> None:
        self._server = server
        self._tokens = tokens
        self._ranked = ranked

    def size(self) -> StoreSize:
        return self._server.read(self._size)

    def _size(self, connection: Connection) -> StoreSize:
        return StoreSize(
            dict(rows(connection, "SELECT namespace, memories FROM counts ORDER BY namespace")),
            one(
                connection,
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
                " WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r'",
                (f'"{self._server.address.schema}"',),
            ),
        )

    def stats(self) -> StoreStats:
        return self._server.read(self._stats)

    def _stats(self, connection: Connection) -> StoreStats:
        size = self._size(connection)
        engine = one(connection, "SELECT current_setting('server_version')")
        vector = one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        words = alike.described(connection, self._server.address)
        return StoreStats(
            kind="postgresql",
            location=self._server.address.shown,
            memories=size.memories,
            tombstones=one(connection, "SELECT count(*) FROM tombstones"),
            links=sum(_tallied(connection, "links").values()),
            vectors=sum(_tallied(connection, "vectors").values()),
            bytes=size.bytes,
            schema_version=one(connection, "SELECT max(version) FROM versions"),
            engine_version=f"PostgreSQL {engine}, pgvector {vector}, {words}, {self._ranked.described(connection)}",
            types=_tallied(connection, "type"),
            projects=_tallied(connection, "project"),
            namespaces=size.namespaces,
        )

    def check(self, repair: bool = False) -> list[Finding]:
        findings = self._findings()
        if not repair or not findings or self._server.read_only:
            return findings
        transact(self._server, self._tokens, repair_all)
        still = {(finding.kind, finding.detail) for finding in self._findings()}
        return [replace(finding, repaired=(finding.kind, finding.detail) not in still) for finding in findings]

    def _findings(self) -> list[Finding]:
        return self._server.read(lambda connection: find_all(connection, self._tokens), seconds=CHECK_S)

    def backup(self, path: Path) -> None:
        raise InvalidInput(
            f"a PostgreSQL store is not copied to {path.name}: the server keeps it",
            "use pg_dump or the server's own backups, or export the memories as JSON lines",
        )

    def tidy(self) -> dict[str, int]:
        if self._server.read_only:
            return {}
        stale = self._server.read(_stale_tables)
        with self._server.plain() as connection:
            for table in stale:
                connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(self._server.address.schema, table)))
            merged = one(connection, MERGE, (f'"{self._server.address.schema}"',))
        indexed = sum(self._build_index(*model) for model in self._server.read(_large_models))
        indexed += alike.keep(self._server) + self._ranked.keep()
        return {"analyzed": len(stale), "merged": merged, "indexed": indexed}

    def _build_index(self, model: int, dimension: int) -> int:
        """Build the HNSW index of a model that has outgrown scanning, without stopping anybody's writes.

        What an interrupted build left behind goes first: such an index is never used and never finished.
        """
        schema = self._server.address.schema
        statement = sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table}"
            " USING hnsw ((code::{kind}) {operators}) WHERE model = {model}"
        ).format(
            name=sql.Identifier(index_name(model)),
            table=sql.Identifier(schema, "vectors"),
            kind=sql.SQL("{}.halfvec({})").format(sql.Identifier(self._server.extension), sql.Literal(dimension)),
            operators=sql.Identifier(self._server.extension, "halfvec_ip_ops"),
            model=sql.Literal(model),
        )
        with self._server.plain() as connection:
            connection.execute(drop_index(schema, model))
            connection.execute(statement)
        return 1

    def settings(self) -> dict[str, Any]:
        found = self._server.read(
            lambda connection: rows(connection, "SELECT name, value::text FROM settings ORDER BY name")
        )
        return {name: json.loads(value) for name, value in found}

    def graves(self) -> Graves:
        return self._server.read(_graves)

    def bury(self, graves: Graves) -> None:
        def work(writing: Writing) -> None:
            writing.lock_all()
            ours = _graves(writing.connection)
            if self._server.address.namespace is not None and ours.key != graves.key:
                raise Conflict("other tenants' tombstones have a key of their own", "copy into a store of its own")
            all_of_them = joined(ours, graves)
            if all_of_them.key != ours.key:
                run(
                    writing.connection,
                    "UPDATE secrets SET value = %s WHERE name = 'tombstones'",
                    (all_of_them.key,),
                )
            pairs = sorted(graves.hashes)
            run(
                writing.connection,
                "INSERT INTO tombstones SELECT * FROM unnest(%s::text[], %s::bytea[]) ON CONFLICT DO NOTHING",
                ([namespace for namespace, _ in pairs], [hashed for _, hashed in pairs]),
            )

        if graves.hashes:  # a key alone is of no use here, and all tenants' tombstones depend on the one that is
            transact(self._server, self._tokens, work)


def _tallied(connection: Connection, kind: TallyKind) -> dict[str, int]:
    """The sums of one kind, by name, of all tenants that the store sees."""
    found = rows(
        connection,
        "SELECT name, sum(held)::bigint FROM tallies WHERE kind = %s GROUP BY name HAVING sum(held) <> 0 ORDER BY name",
        (kind,),
    )
    return dict(found)


def _graves(connection: Connection) -> Graves:
    key = bytes(one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'"))
    found = rows(connection, "SELECT namespace, hash FROM tombstones")
    return Graves(key, frozenset((namespace, bytes(hashed)) for namespace, hashed in found))


def _stale_tables(connection: Connection) -> list[str]:
    """Tables that have changed much since the planner looked at them; only their owner can make it look again."""
    return [
        name
        for (name,) in rows(
            connection,
            "SELECT s.relname FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid"
            " WHERE s.schemaname = current_schema() AND pg_has_role(session_user, c.relowner, 'USAGE')"
            " AND s.n_mod_since_analyze > 1000 AND s.n_mod_since_analyze > s.n_live_tup / 10 ORDER BY s.relname",
        )
    ]


def _large_models(connection: Connection) -> list[tuple[int, int]]:
    """Models with more vectors than are scanned and no index, unless one is being built; only their owner can."""
    being_built = "SELECT EXISTS (SELECT 1 FROM pg_stat_progress_create_index WHERE relid = 'vectors'::regclass)"
    if not owns_vectors(connection) or one(connection, being_built):
        return []
    known = rows(
        connection,
        "SELECT model, dimension FROM models WHERE dimension <= %s AND NOT starts_with(name, %s)",
        (INDEXED_DIMENSIONS, MARKS),
    )
    return [
        (model, dimension)
        for model, dimension in known
        if not has_index(connection, model)
        and one(
            connection,
            "SELECT count(*) > %s FROM (SELECT 1 FROM vectors WHERE model = %s LIMIT %s) few",
            (EXACT_SCOPE, model, EXACT_SCOPE + 1),
        )
    ]
