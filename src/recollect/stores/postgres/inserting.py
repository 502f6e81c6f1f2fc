"""New memories, one or many at once, with everything that is derived from them: a statement for each table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.domain.changes import Change, Put
from recollect.domain.errors import InvalidInput
from recollect.domain.gist import gist
from recollect.domain.memory import EPISODE, TURNS_BEFORE, Memory, tombstone_hash
from recollect.domain.times import to_ms
from recollect.stores.gists import comes_twice
from recollect.stores.postgres import metadata
from recollect.stores.postgres.connection import Connection, one, rows, run
from recollect.stores.postgres.ledger import Writing
from recollect.stores.postgres.lexemes import vector_text
from recollect.stores.rows import SOURCE, encode
from recollect.stores.subjects import subject_number

WORTH_IT = 8
AT_ONCE = 1_000

TYPES = {
    **dict.fromkeys(("created_at", "updated_at", "version", "accessed_at", "access_count", "checksum"), "bigint"),
    **dict.fromkeys(("pinned", "sensitive"), "smallint"),
    **dict.fromkeys(("confidence", "importance"), "double precision"),
    "tags": "json",
}
NAMES = SOURCE.replace(" ", "").split(",")
INSERT = (
    f"INSERT INTO memories (number, text_hash, apart, {SOURCE}, metadata_exact) SELECT number, text_hash, apart, "
    + ", ".join(metadata.held(name) if name == "metadata" else name for name in NAMES)
    + f", {metadata.exact('metadata')} FROM unnest(%b::bigint[], %b::bigint[], %b::boolean[], "
    + ", ".join(f"%b::{TYPES.get(name, 'text')}[]" for name in NAMES)
    + f") AS u (number, text_hash, apart, {SOURCE})"
)
INSERT_TEXTS = (
    "INSERT INTO texts (namespace, number, content_tokens, length, terms, tokens, about)"
    " SELECT a, b, c, d, e::tsvector, f, g"
    " FROM unnest(%b::text[], %b::bigint[], %b::int[], %b::int[], %b::text[], %b::bytea[], %b::bigint[])"
    " AS u (a, b, c, d, e, f, g)"
)


# The turns behind each of these turns that have vectors; an index serves the order.
FOLLOWERS = """
SELECT DISTINCT f.number FROM memories t, LATERAL (
    SELECT f.number FROM memories f WHERE f.namespace = t.namespace AND f.session = t.session
    AND f.project IS NOT DISTINCT FROM t.project AND f.type = 'episode'
    AND (f.created_at, f.number) > (t.created_at, t.number) ORDER BY f.created_at, f.number LIMIT %(most)s
) f
WHERE t.namespace = %(namespace)s AND t.number = ANY (%(numbers)s) AND t.type = 'episode' AND t.session IS NOT NULL
AND EXISTS (SELECT 1 FROM vectors v WHERE v.namespace = t.namespace AND v.number = f.number) ORDER BY 1
"""


def insert_all(changes: Sequence[Change], writing: Writing) -> bool:
    """Insert the memories and say so, or leave everything as it is where a check might refuse one, and say that."""
    puts = [change for change in changes if isinstance(change, Put) and change.expected_version is None]
    if len(changes) < WORTH_IT or len(puts) < len(changes) or not _are_free(puts, writing.connection):
        return False
    for first in range(0, len(puts), AT_ONCE):
        insert(puts[first : first + AT_ONCE], writing)
    return True


def _are_free(puts: Sequence[Put], connection: Connection) -> bool:
    """Whether no id, key or text is taken, in the store or among the puts, and no text is behind a tombstone."""
    ids = [put.memory.id for put in puts]
    keys = [(put.memory.scope.namespace, put.memory.key) for put in puts if put.memory.key is not None]
    numbers = [gist(put.memory.content) for put in puts]
    if len(set(ids)) < len(ids) or len(set(keys)) < len(keys):
        return False
    once = [(put.memory.scope.namespace, number) for put, number in zip(puts, numbers) if put.once]
    if once and _is_one_there(puts, numbers, once, connection):
        return False
    secret = bytes(one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'"))
    graves = [
        (put.memory.scope.namespace, tombstone_hash(put.memory.content, put.memory.scope.namespace, secret))
        for put in puts
    ]
    return not one(
        connection,
        "SELECT EXISTS (SELECT 1 FROM memories WHERE id = ANY (%s)) OR EXISTS (SELECT 1 FROM memories m JOIN"
        " unnest(%s::text[], %s::text[]) AS u (n, k) ON m.namespace = u.n AND m.key = u.k) OR EXISTS (SELECT 1 FROM"
        " tombstones t JOIN unnest(%s::text[], %s::bytea[]) AS u (n, h)"
        " ON t.namespace = u.n AND t.hash = u.h)",
        (ids, *_pairs(keys), *_pairs(graves)),
    )


def _is_one_there(
    puts: Sequence[Put], numbers: Sequence[int], once: Sequence[tuple[str, int]], connection: Connection
) -> bool:
    """Whether a text that is to be kept once is in its place already, or comes twice."""
    held = rows(
        connection,
        "SELECT m.namespace, m.project, m.content FROM memories m"
        " JOIN unnest(%s::text[], %s::bigint[]) AS u (n, h) ON m.namespace = u.n AND m.text_hash = u.h",
        _pairs(once),
    )
    apart = not held and len(set(numbers)) == len(numbers)
    return not apart and comes_twice(puts, held)


def _pairs(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def insert(puts: Sequence[Put], writing: Writing) -> None:
    """Memories, full text, counts and the outbox; nothing is checked here."""
    connection = writing.connection
    memories = [put.memory for put in puts]
    numbers = [
        number
        for (number,) in rows(
            connection, "SELECT nextval('numbers') FROM generate_series(1, %s) ORDER BY 1", (len(memories),)
        )
    ]
    values = [
        encode(memory, memory.version, to_ms(memory.accessed_at), memory.access_count, metadata.AS_JSONB)
        for memory in memories
    ]
    for memory in memories:
        require_storable(memory)
    hashes = [gist(memory.content) for memory in memories]
    apart = [put.apart for put in puts]
    run(connection, INSERT, [numbers, hashes, apart, *[list(column) for column in zip(*values)]])
    index(numbers, memories, writing)
    by_namespace: dict[str, list[int]] = {}
    for memory, number in zip(memories, numbers):
        if not memory.sensitive:
            by_namespace.setdefault(memory.scope.namespace, []).append(number)
    for namespace, able in by_namespace.items():
        enqueue(namespace, able, writing)
    turns: dict[str, list[int]] = {}
    for memory, number in zip(memories, numbers):
        if memory.type == EPISODE and memory.scope.session is not None:
            turns.setdefault(memory.scope.namespace, []).append(number)
    for namespace, new in turns.items():
        renew_followers(namespace, new, writing)


def require_storable(memory: Memory) -> None:
    """JSON could smuggle in the one character that PostgreSQL cannot compare."""
    if any("\0" in tag for tag in memory.tags):
        raise InvalidInput("a tag holds a NUL character", "remove it", "tags")


def index(numbers: Sequence[int], memories: Sequence[Memory], writing: Writing) -> None:
    """Enter memories into everything that finds them by words."""
    texts = [writing.tokens.text(memory.content, memory.tags) for memory in memories]
    columns = [
        (
            memory.scope.namespace,
            number,
            text.content_tokens,
            text.size,
            vector_text(memory, text, writing.tokens.tokens(" ".join(memory.tags)) if memory.tags else ()),
            text.stream,
            subject_number(memory),
        )
        for number, memory, text in zip(numbers, memories, texts)
    ]
    run(writing.connection, INSERT_TEXTS, [list(column) for column in zip(*columns)])
    for memory, text in zip(memories, texts):
        writing.count(memory, text, 1)


def replace_text(number: int, old: Memory, memory: Memory, writing: Writing) -> None:
    """Take the old text out of everything that finds by words, and enter the new one."""
    namespace = memory.scope.namespace
    writing.count(old, writing.tokens.text(old.content, old.tags), -1)
    run(writing.connection, "DELETE FROM texts WHERE namespace = %s AND number = %s", (namespace, number))
    index([number], [memory], writing)


def renew_followers(namespace: str, numbers: Sequence[int], writing: Writing) -> None:
    """The turns that were embedded together with these turns of conversations wait again: they have changed or will."""
    connection = writing.connection
    found = rows(connection, FOLLOWERS, {"numbers": list(numbers), "namespace": namespace, "most": TURNS_BEFORE})
    followers = [number for (number,) in found]
    if followers:
        writing.tally_gone(namespace, followers)
        enqueue(namespace, followers, writing)


def enqueue(namespace: str, numbers: Sequence[int], writing: Writing) -> None:
    """Ask every model for vectors of these memories (again)."""
    entered = run(
        writing.connection,
        "INSERT INTO outbox (namespace, number, model) SELECT %s, n, model FROM unnest(%s::bigint[]) n, models"
        " ON CONFLICT (namespace, number, model)"
        " DO UPDATE SET attempts = 0, retry_at = 0, worker = 0, leased_until = 0",
        (namespace, list(numbers)),
    )
    writing.left_work |= entered > 0
