"""How a schema comes to be and grows: numbered steps, forward only, under one lock for all who start at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from psycopg import errors, sql

from recollect.domain.errors import Corrupt, StoreTooNew, StoreUnavailable
from recollect.domain.gist import gist
from recollect.stores.postgres import alike, metadata
from recollect.stores.postgres.alike import ALIKE, ALIKE_INDEXES
from recollect.stores.postgres.changes import COLUMNS
from recollect.stores.postgres.connection import EVERYONE, Connection, Server, one, rows, run, search_path
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.repairs import rebuild_texts
from recollect.stores.postgres.tables import (
    ENTERED,
    FINDERS,
    GRANTS,
    MEMORIES,
    ROOM,
    TALLIES,
    TALLIES_WALL,
    TALLY_ALL,
    TEXTS,
    VECTORS,
    WALLS,
)

MIGRATING = 0x5243_4C54
"""The class of the advisory lock; the schema's name is the other half of its key."""
OLDEST_PGVECTOR = (0, 8)
"""The first that goes on scanning where a filter left too few."""

UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\ud7ff\uf900-\ufaff\uff60-\uffff\U00020000-\U000323af]|\\u"
"""The blocks of all letters of domain/scripts.py, and more; tags may have them in JSON's own writing."""

NUMBERED_AT_ONCE = 2_000

WALLED = ["recollect.namespace", "recollect.index"]
"""The settings that say whose rows a transaction sees."""

Migration = Callable[[Connection], None]


def _first(connection: Connection) -> None:
    for part in (MEMORIES, VECTORS, TEXTS, FINDERS, WALLS):
        connection.execute(part.encode())
    run(connection, "INSERT INTO secrets VALUES ('tombstones', %s)", (secrets.token_bytes(32),))


def _second(connection: Connection) -> None:
    for part in (ENTERED, ALIKE_INDEXES, ALIKE):
        connection.execute(part.encode())


def _third(connection: Connection) -> None:
    """The finders as they are now: they hold nothing, so the first step makes them like this too."""
    connection.execute(FINDERS.encode())


def _fourth(connection: Connection) -> None:
    """The finder of look-alike words and its indexes as they are now, which the second step makes like this too."""
    for part in (ALIKE_INDEXES, ALIKE):
        connection.execute(part.encode())


def _fifth(connection: Connection) -> None:
    """What is too long for a page or an index: vectors of more than 4,000 numbers, and endless words."""
    connection.execute(ROOM.encode())


def _sixth(connection: Connection) -> None:
    """Letters of scripts without spaces become words: where there are any, the full text is written anew."""
    run(connection, "SELECT set_config(name, %s, true) FROM unnest(%s::text[]) name", (EVERYONE, WALLED))
    if one(connection, "SELECT EXISTS (SELECT 1 FROM memories WHERE content || tags::text ~ %s)", (UNSPACED,)):
        writing = Writing(connection, Tokens())
        rebuild_texts(writing, COLUMNS.replace(metadata.COLUMN, "m.metadata::text"))
        writing.settle()


def _seventh(connection: Connection) -> None:
    """Which memories are not to be merged when they are embedded."""
    run(connection, "ALTER TABLE memories ADD COLUMN apart boolean NOT NULL DEFAULT false")


def _eighth(connection: Connection) -> None:
    """What was counted row by row becomes sums that writes keep; nobody may write while they begin."""
    run(connection, "SELECT set_config(name, %s, true) FROM unnest(%s::text[]) name", (EVERYONE, WALLED))
    for part in (TALLIES, TALLIES_WALL, "LOCK TABLE memories, vectors, links IN SHARE MODE", TALLY_ALL):
        connection.execute(part.encode())


def _ninth(connection: Connection) -> None:
    """The finder of look-alike words that also knows the index of pg_trgm; which indexes there are is left as it is."""
    connection.execute(ALIKE.encode())


def _tenth(connection: Connection) -> None:
    """Metadata become jsonb; nobody may write while they do."""
    run(connection, "SELECT set_config(name, %s, true) FROM unnest(%s::text[]) name", (EVERYONE, WALLED))
    for part in (metadata.ADD, metadata.KEEP, metadata.CONVERT):
        connection.execute(part.encode())


def _eleventh(connection: Connection) -> None:
    """What found the same text finds all that may say the same; nobody may write meanwhile."""
    run(connection, "SELECT set_config(name, %s, true) FROM unnest(%s::text[]) name", (EVERYONE, WALLED))
    connection.execute(b"LOCK TABLE memories IN SHARE MODE")
    last: tuple[str, int] = ("", 0)
    sql = "SELECT namespace, number, content FROM memories WHERE (namespace, number) > (%s, %s)"
    while found := rows(connection, f"{sql} ORDER BY namespace, number LIMIT {NUMBERED_AT_ONCE}", last):
        last = found[-1][:2]
        numbered = [(namespace, number, gist(content)) for namespace, number, content in found]
        run(
            connection,
            "UPDATE memories m SET text_hash = u.gist FROM unnest(%s::text[], %s::bigint[], %s::bigint[])"
            " AS u (namespace, number, gist) WHERE m.namespace = u.namespace AND m.number = u.number",
            [list(column) for column in zip(*numbered)],
        )


# Step n takes a schema from version n to n + 1. Released steps are never edited.
MIGRATIONS: tuple[Migration, ...] = (
    _first,
    _second,
    _third,
    _fourth,
    _fifth,
    _sixth,
    _seventh,
    _eighth,
    _ninth,
    _tenth,
    _eleventh,
)


def prepare(server: Server, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the schema to the current version (a store for reading: only look), and make its names known."""
    schema = server.address.schema
    with server.plain() as connection:
        version = version_of(connection, schema)
        _require_known(version, steps)
        if version < len(steps) and server.read_only:
            raise StoreUnavailable("there is no current store at this address", "open it once for writing")
        if version < len(steps) or _lacks_grants(connection, server):
            _migrate(connection, server, steps)
        server.use(_extension_schema(connection))
    alike.keep(server)


def version_of(connection: Connection, schema: str) -> int:
    """The version of a schema, 0 where there is none; Corrupt where other tables live in it."""
    found = one(connection, "SELECT to_regclass(%s)", (f'"{schema}".versions',))
    if found is not None:
        table = sql.Identifier(schema, "versions")
        row = connection.execute(sql.SQL("SELECT max(version) FROM {}").format(table)).fetchone()
        version = 0 if row is None else row[0] or 0
        if isinstance(version, int):
            return version
    elif not one(connection, "SELECT count(*) FROM pg_tables WHERE schemaname = %s", (schema,)):
        return 0
    raise Corrupt(f"the schema {schema} belongs to another program", "choose another with ?schema=NAME")


def _require_known(version: int, steps: Sequence[Migration]) -> None:
    if version > len(steps):
        raise StoreTooNew(
            f"the store has schema version {version}, this recollect knows {len(steps)}", "upgrade recollect"
        )


def _migrate(connection: Connection, server: Server, steps: Sequence[Migration]) -> None:
    """All missing steps in one transaction; whoever comes second waits for the lock and finds nothing left to do."""
    schema = server.address.schema
    with connection.transaction():
        run(connection, "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (MIGRATING, schema))
        _require_extension(connection)
        extension = _extension_schema(connection)
        if one(connection, "SELECT to_regnamespace(%s)", (f'"{schema}"',)) is None:  # its owner may lack the right
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET LOCAL search_path = {}").format(search_path(schema, extension)))
        version = version_of(connection, schema)
        _require_known(version, steps)
        if version == 0:
            run(connection, "CREATE TABLE versions (version int PRIMARY KEY, made_at timestamptz DEFAULT now())")
        for number in range(version, len(steps)):
            steps[number](connection)
            run(connection, "INSERT INTO versions (version) VALUES (%s)", (number + 1,))
        named = [] if server.address.role is None else [server.address.role]
        for role in sorted({*_let_in(connection), *named}):
            names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
            connection.execute(sql.SQL(GRANTS).format(**names))


def _let_in(connection: Connection) -> list[str]:
    """The roles that write here already: what a step makes anew is for them too, whoever runs it."""
    found = rows(
        connection,
        "SELECT DISTINCT pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a"
        " WHERE c.oid = 'memories'::regclass AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner)",
    )
    return [name for (name,) in found]


def _lacks_grants(connection: Connection, server: Server) -> bool:
    """Whether the role that transactions step down to has yet to be let in."""
    role, schema = server.address.role, server.address.schema
    if role is None or server.read_only:
        return False
    return not one(connection, "SELECT has_table_privilege(%s, %s, 'INSERT')", (role, f'"{schema}".memories'))


def _require_extension(connection: Connection) -> None:
    installed = one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if installed is None:
        try:
            with connection.transaction():
                run(connection, "CREATE EXTENSION IF NOT EXISTS vector")
        except (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile) as error:
            raise StoreUnavailable(
                "the extension pgvector is missing", "an administrator runs: CREATE EXTENSION vector"
            ) from error
        installed = one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if tuple(int(part) for part in str(installed).split(".")[:2]) < OLDEST_PGVECTOR:
        raise StoreUnavailable(f"pgvector {installed} is too old", "ALTER EXTENSION vector UPDATE (0.8 or newer)")


def _extension_schema(connection: Connection) -> str:
    found = one(
        connection,
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    )
    return "public" if found is None else str(found)
