"""What each Change does to the tables. An error undoes the caller's whole list: the transaction is rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put, SetSetting, Touch
from recollect.domain.gist import gist
from recollect.domain.memory import Link, Memory, same_text, tombstone_hash, turn_of
from recollect.domain.times import to_ms
from recollect.stores import refusals
from recollect.stores.checksums import link_checksum
from recollect.stores.gists import Text, text_holder
from recollect.stores.postgres import metadata
from recollect.stores.postgres.connection import Connection, one, rows, run
from recollect.stores.postgres.inserting import (
    NAMES,
    enqueue,
    insert,
    renew_followers,
    replace_text,
    require_storable,
)
from recollect.stores.postgres.ledger import Writing
from recollect.stores.rows import (
    decode,
    dump_json,
    encode,
    touch_checksum,
)

COLUMNS = ", ".join({"tags": "m.tags::text", "metadata": metadata.COLUMN}.get(name, f"m.{name}") for name in NAMES)
"""The columns of SOURCE, as `rows.decode` reads them."""
NAMED = "unnest(%s::text[]) u (id), LATERAL (SELECT * FROM memories m WHERE m.id = u.id OFFSET 0) m"
"""The memories with these ids, one by one through their index, whatever the planner believes."""
REPLACE = (
    "UPDATE memories SET "
    + ", ".join(f"{name} = {metadata.held('given.text') if name == 'metadata' else '%s'}" for name in NAMES)
    + f", text_hash = %s, metadata_exact = {metadata.exact('given.text')} FROM (SELECT %s::text) given (text)"
)
"""The metadata come last: they are read twice."""


def apply(change: Change, writing: Writing) -> None:
    """Make one change, or raise Conflict, NotFound or InvalidInput."""
    match change:
        case Put():
            _put(change, writing)
        case Erase():
            _erase(change, writing)
        case Touch():
            _touch(change, writing)
        case AddLink(link):
            _add_link(link, writing)
        case DropLink(link):
            _drop_link(link, writing)
        case SetSetting():
            _set(change, writing)


def namespaces_of(changes: Sequence[Change], connection: Connection) -> set[str]:
    """The tenants whose texts these changes touch."""
    known = {change.memory.scope.namespace for change in changes if isinstance(change, Put)}
    erased = [change.id for change in changes if isinstance(change, Erase)]
    if erased:
        known |= {name for (name,) in rows(connection, "SELECT namespace FROM memories WHERE id = ANY (%s)", (erased,))}
    return known


def _stored(id: str, connection: Connection) -> tuple[int, Memory] | None:
    found = one(connection, f"SELECT m.number, {COLUMNS} FROM memories m WHERE m.id = %s FOR UPDATE", (id,))
    return None if found is None else (found[0], decode(found[1:]))


def _put(change: Put, writing: Writing) -> None:
    memory, connection = change.memory, writing.connection
    stored = _stored(memory.id, connection)
    old = None if stored is None else stored[1]
    refusals.check_version(change, None if old is None else (old.scope.namespace, old.version))
    refusals.check_key(memory, key_holder(connection, memory.scope.namespace, memory.key))
    if change.once:
        scope = memory.scope
        others = texts_alike(connection, scope.namespace, scope.project, memory.content)
        refusals.check_text(text_holder(others, memory.content, not_id=memory.id))
    _check_tombstone(change, old, connection)
    if stored is None:
        insert([change], writing)
        return
    _replace(memory, *stored, writing)


def _replace(memory: Memory, number: int, old: Memory, writing: Writing) -> None:
    require_storable(memory)
    connection, namespace = writing.connection, memory.scope.namespace
    moved = turn_of(old) != turn_of(memory)
    if moved:
        renew_followers(namespace, [number], writing)
    accessed_at = max(to_ms(memory.accessed_at), to_ms(old.accessed_at))
    encoded = encode(
        memory, old.version + 1, accessed_at, max(memory.access_count, old.access_count), metadata.AS_JSONB
    )
    values = dict(zip(NAMES, encoded))
    written = values.pop("metadata")
    run(
        connection,
        f"{REPLACE} WHERE namespace = %s AND number = %s",
        (*values.values(), gist(memory.content), written, namespace, number),
    )
    if memory.content != old.content or memory.sensitive or moved:
        writing.tally_gone(namespace, [number])
        run(connection, "DELETE FROM outbox WHERE namespace = %s AND number = %s", (namespace, number))
    replace_text(number, old, memory, writing)
    if not memory.sensitive and (memory.content != old.content or old.sensitive or moved):
        enqueue(namespace, [number], writing)
    if moved or (memory.content, memory.sensitive) != (old.content, old.sensitive):
        renew_followers(namespace, [number], writing)


def key_holder(connection: Connection, namespace: str, key: str | None) -> str | None:
    """The memory of this tenant that holds this key; None where no key is asked for."""
    if key is None:
        return None
    return one(connection, "SELECT id FROM memories WHERE namespace = %s AND key = %s", (namespace, key))


def texts_alike(connection: Connection, namespace: str, project: str | None, content: str) -> list[Text]:
    """What may say the same as a text in this namespace and project, lowest id first."""
    found = rows(
        connection,
        "SELECT id, type, session, content FROM memories WHERE namespace = %s AND text_hash = %s"
        " AND project IS NOT DISTINCT FROM %s ORDER BY id",
        (namespace, gist(content), project),
    )
    return [Text(*one) for one in found]


def buried(connection: Connection, namespace: str, contents: Sequence[str]) -> set[bytes]:
    """The tombstones of those of these texts that were erased from this namespace."""
    secret = one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'")
    hashes = [tombstone_hash(content, namespace, bytes(secret)) for content in contents]
    found = rows(
        connection, "SELECT hash FROM tombstones WHERE namespace = %s AND hash = ANY (%s)", (namespace, hashes)
    )
    return {bytes(hashed) for (hashed,) in found}


def _check_tombstone(change: Put, old: Memory | None, connection: Connection) -> None:
    memory, namespace = change.memory, change.memory.scope.namespace
    for hashed in buried(connection, namespace, [memory.content]):
        if change.revive:
            run(connection, "DELETE FROM tombstones WHERE namespace = %s AND hash = %s", (namespace, hashed))
        elif old is None or same_text(old.content) != same_text(memory.content):
            raise refusals.buried()


def _erase(change: Erase, writing: Writing) -> None:
    connection = writing.connection
    stored = _stored(change.id, connection)
    if stored is None:
        raise refusals.nothing_to_forget(change.id)
    number, memory = stored
    refusals.check_erased(change, memory.version)
    namespace = memory.scope.namespace
    writing.count(memory, writing.tokens.text(memory.content, memory.tags), -1)
    renew_followers(namespace, [number], writing)
    writing.tally_gone(namespace, [number])
    links = "DELETE FROM links WHERE namespace = %s AND (source = %s OR target = %s)"
    writing.tally(namespace, "links", "", -run(connection, links, (namespace, number, number)))
    run(connection, "DELETE FROM memories WHERE namespace = %s AND number = %s", (namespace, number))
    if change.tombstone:
        secret = one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'")
        hashed = tombstone_hash(memory.content, namespace, bytes(secret))
        run(connection, "INSERT INTO tombstones VALUES (%s, %s) ON CONFLICT DO NOTHING", (namespace, hashed))


def _touch(change: Touch, writing: Writing) -> None:
    accessed_at = to_ms(change.accessed_at)
    found = rows(
        writing.connection,
        "SELECT namespace, number, accessed_at, access_count, checksum FROM memories WHERE id = ANY (%s)"
        " ORDER BY namespace, number FOR NO KEY UPDATE",
        (list(change.ids),),
    )
    values: list[tuple[Any, ...]] = []
    for namespace, number, before, count, checksum in found:
        later, more = max(accessed_at, before), count + change.count
        if (later, more) != (before, count):
            fresh = checksum ^ touch_checksum(before, count) ^ touch_checksum(later, more)
            values.append((namespace, number, later, more, fresh))
    if values:
        run(
            writing.connection,
            "UPDATE memories m SET accessed_at = u.later, access_count = u.more, checksum = u.fresh"
            " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"
            " AS u (namespace, number, later, more, fresh)"
            " WHERE m.namespace = u.namespace AND m.number = u.number",
            [list(column) for column in zip(*values)],
        )


def _ends(link: Link, connection: Connection) -> tuple[str, int, int] | None:
    return one(
        connection,
        "SELECT a.namespace, a.number, b.number FROM memories a JOIN memories b ON b.namespace = a.namespace"
        " WHERE a.id = %s AND b.id = %s FOR KEY SHARE",
        (link.source, link.target),
    )


def _add_link(link: Link, writing: Writing) -> None:
    ends = _ends(link, writing.connection)
    if ends is None:
        raise refusals.loose_link(link)
    namespace, source, target = ends
    created_at = to_ms(link.created_at)
    made = run(
        writing.connection,
        "INSERT INTO links VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (namespace, source, link.type, target, created_at, link_checksum(source, link.type, target, created_at)),
    )
    writing.tally(namespace, "links", "", made)


def _drop_link(link: Link, writing: Writing) -> None:
    ends = _ends(link, writing.connection)
    if ends is not None:
        gone = run(
            writing.connection,
            "DELETE FROM links WHERE namespace = %s AND source = %s AND type = %s AND target = %s",
            (ends[0], ends[1], link.type, ends[2]),
        )
        writing.tally(ends[0], "links", "", -gone)


def _set(change: SetSetting, writing: Writing) -> None:
    if change.value is None:
        run(writing.connection, "DELETE FROM settings WHERE name = %s", (change.name,))
        return
    value = dump_json(change.value, f"setting {change.name}")
    run(
        writing.connection,
        "INSERT INTO settings VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (change.name, value),
    )
