"""What each Change does to the tables. An error undoes the caller's whole list (the writer rolls it back)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put, SetSetting, Touch
from recollect.domain.errors import Corrupt
from recollect.domain.gist import gist
from recollect.domain.memory import EPISODE, Memory, Scope, as_turn, same_text, tombstone_hash, turn_of
from recollect.domain.times import to_ms
from recollect.stores.checksums import link_checksum, tombstone_checksum
from recollect.stores.gists import Text, text_holder
from recollect.stores.refusals import (
    buried,
    check_erased,
    check_key,
    check_text,
    check_version,
    loose_link,
    nothing_to_forget,
)
from recollect.stores.rows import (
    SOURCE,
    dump_json,
    encode,
    touch_checksum,
)
from recollect.stores.scope_terms import scope_text
from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.derived import tags_text
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.outbox import drop_vectors, enqueue, log_text, renew_followers
from recollect.stores.sqlite.words import unlist_vanished
from recollect.stores.subjects import subject_number
from recollect.stores.tokens import narrow, plain

COLUMNS = SOURCE.replace(" ", "").split(",")
INSERT = f"INSERT INTO memories ({SOURCE}, text_hash, apart) VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"
INSERT_TEXTS = "INSERT INTO texts (row, content_tokens, about, tokens) VALUES (?, ?, ?, ?)"
INSERT_FULLTEXT = "INSERT INTO fulltext (rowid, content, tags, scope) VALUES (?, ?, ?, ?)"
REPLACE = f"UPDATE memories SET {', '.join(f'{name} = ?' for name in COLUMNS)}, text_hash = ? WHERE row = ?"

SHORT_TOKENS = 120
"""No word has so many places in a text of so few that FTS5 needs two bytes to say how long their list is."""

Old = tuple[int, int, str, str, int, int, int, str, str | None, str | None, int]
"""Of the replaced memory: row, version, namespace, content, accessed_at, access_count, sensitive, type, project,
session, created_at."""


def apply(change: Change, writing: Writing) -> None:
    """Make one change, or raise Conflict, NotFound or InvalidInput."""
    match change:
        case Put():
            _put(change, writing)
        case Erase():
            _erase(change, writing)
        case Touch():
            _touch(change, writing)
        case AddLink():
            _add_link(change, writing)
        case DropLink():
            _drop_link(change, writing)
        case SetSetting():
            _set(change, writing)


def _put(change: Put, writing: Writing) -> None:
    memory, connection = change.memory, writing.connection
    old: Old | None = one(
        connection,
        "SELECT row, version, namespace, content, accessed_at, access_count, sensitive, type, project, session,"
        " created_at FROM memories WHERE id = ?",
        (memory.id,),
    )
    check_version(change, None if old is None else (old[2], old[1]))
    check_key(memory, key_holder(connection, memory.scope.namespace, memory.key))
    number, moved = gist(memory.content), old is not None and _moves(memory, old)
    if change.once:
        scope = memory.scope
        others = texts_alike(connection, scope.namespace, scope.project, memory.content)
        check_text(text_holder(others, memory.content, not_id=memory.id))
    _check_tombstone(change, old, writing)
    if old is None:
        values = encode(memory, memory.version, to_ms(memory.accessed_at), memory.access_count)
        connection.execute(INSERT, (*values, number, change.apart))
        row, vanished = connection.last_insert_rowid(), frozenset[str]()
    else:
        row = old[0]
        if moved:
            renew_followers(writing, row)
        vanished = _unindex(row, old[3], old[2], writing)
        accessed_at, count = max(to_ms(memory.accessed_at), old[4]), max(memory.access_count, old[5])
        connection.execute(REPLACE, (*encode(memory, old[1] + 1, accessed_at, count), number, row))
        if memory.content != old[3] or memory.sensitive or moved:
            drop_vectors(writing, row)
            writing.ledger.purge = True
    said = old is None or (memory.content, memory.sensitive) != (old[3], bool(old[6]))
    if moved or (said and memory.type == EPISODE):
        renew_followers(writing, row)
    kept = index(row, memory, writing, again=old is not None)
    if old is not None:
        unlist_vanished(writing, vanished - kept)
    if not memory.sensitive and (old is None or memory.content != old[3] or old[6] or moved):
        enqueue(writing, row)


def _moves(memory: Memory, old: Old) -> bool:
    """Whether the memory leaves its place in a conversation, or comes into one."""
    before = as_turn(old[7], Scope(old[2], old[8], old[9]), old[10])
    return before != turn_of(memory)


def key_holder(connection: Connection, namespace: str, key: str | None) -> str | None:
    """The memory of this namespace that holds this key; None where no key is asked for."""
    if key is None:
        return None
    return one(connection, "SELECT id FROM memories WHERE namespace = ? AND key = ?", (namespace, key))


def texts_alike(connection: Connection, namespace: str, project: str | None, content: str) -> list[Text]:
    """What may say the same as a text in this namespace and project, lowest id first."""
    found = rows(
        connection,
        "SELECT id, type, session, content FROM memories WHERE text_hash = ? AND namespace = ? AND project IS ?"
        " ORDER BY id",
        (gist(content), namespace, project),
    )
    return [Text(*one) for one in found]


def is_buried(connection: Connection, namespace: str, content: str) -> bytes | None:
    """The tombstone's hash if this text was erased from this namespace."""
    hashed = tombstone_hash(content, namespace, tombstone_secret(connection))
    found = one(connection, "SELECT hash FROM tombstones WHERE namespace = ? AND hash = ?", (namespace, hashed))
    return None if found is None else hashed


def tombstone_secret(connection: Connection) -> bytes:
    """The key of the hashes, so that nobody can try texts against them."""
    key = one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'")
    if not isinstance(key, bytes):
        raise Corrupt("the key of the tombstones is lost", "restore the store from a backup")
    return key


def dig(connection: Connection, key: bytes, graves: Iterable[tuple[str, bytes]]) -> None:
    """Enter tombstones (namespace and hash) that were made with this key."""
    values = [(namespace, hashed, tombstone_checksum(key, namespace, hashed)) for namespace, hashed in graves]
    connection.executemany("INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?)", values)


def _check_tombstone(change: Put, old: Old | None, writing: Writing) -> None:
    memory, namespace = change.memory, change.memory.scope.namespace
    hashed = is_buried(writing.connection, namespace, memory.content) if writing.has_tombstones else None
    if hashed is None:
        return
    if change.revive:
        writing.connection.execute("DELETE FROM tombstones WHERE namespace = ? AND hash = ?", (namespace, hashed))
    elif old is None or same_text(old[3]) != same_text(memory.content):
        raise buried()


def index(row: int, memory: Memory, writing: Writing, again: bool = False) -> frozenset[str]:
    """Enter a memory into everything that finds it by words, `again` where it was just taken out; its words."""
    content, tags = plain(memory.content), tags_text(memory)
    text = writing.tokenizer.text(content, tags)
    if again and text.size > SHORT_TOKENS:
        _write_out(writing.connection)
    writing.connection.execute(INSERT_TEXTS, (row, text.content_tokens, subject_number(memory), narrow(text.stream)))
    writing.connection.execute(INSERT_FULLTEXT, (row, content, tags, scope_text(memory)))
    writing.count_text(text, memory.scope.namespace, 1)
    writing.list_words(text.words)
    return text.words


def _unindex(row: int, content: str, namespace: str, writing: Writing) -> frozenset[str]:
    """Take a memory out of everything that finds it by words, but for the list of words; its words."""
    connection = writing.connection
    found = one(connection, "SELECT tags, scope FROM indexed_texts WHERE row = ?", (row,))
    if found is None:  # damaged: a repair has left it out
        log_text(writing, row)
        return frozenset()
    tags, scope = found
    text = writing.tokenizer.text(plain(content), tags)
    connection.execute(
        "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) VALUES ('delete', ?, ?, ?, ?)",
        (row, plain(content), tags, scope),
    )
    connection.execute("DELETE FROM texts WHERE row = ?", (row,))
    writing.count_text(text, namespace, -1)
    log_text(writing, row)
    return text.words


def _write_out(connection: Connection) -> None:
    """Have FTS5 forget the old text before it hears the new one, as it does at a savepoint.

    Of a row that goes and comes back in one go, it leaves in the index those words of the old text that the new one
    says very often: it looks for the mark of what goes in the first byte of a length that takes two.
    """
    connection.execute("SAVEPOINT unindexed")
    connection.execute("RELEASE unindexed")


def _erase(change: Erase, writing: Writing) -> None:
    connection = writing.connection
    found = one(connection, "SELECT row, namespace, content, version FROM memories WHERE id = ?", (change.id,))
    if found is None:
        raise nothing_to_forget(change.id)
    row, namespace, content, version = found
    check_erased(change, version)
    renew_followers(writing, row)
    drop_vectors(writing, row)
    words = _unindex(row, content, namespace, writing)
    unlist_vanished(writing, words)
    connection.execute("DELETE FROM memories WHERE row = ?", (row,))
    if change.tombstone:
        key = tombstone_secret(connection)
        dig(connection, key, [(namespace, tombstone_hash(content, namespace, key))])
        writing.has_tombstones = True
    writing.ledger.purge = True


def _touch(change: Touch, writing: Writing) -> None:
    accessed_at = to_ms(change.accessed_at)
    found = rows(
        writing.connection,
        "SELECT row, accessed_at, access_count, checksum FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(change.ids),),
    )
    values: list[tuple[int, int, int, int]] = []
    for row, before, count, checksum in found:
        later, more = max(accessed_at, before), count + change.count
        values.append((later, more, checksum ^ touch_checksum(before, count) ^ touch_checksum(later, more), row))
    writing.connection.executemany(
        "UPDATE memories SET accessed_at = ?, access_count = ?, checksum = ? WHERE row = ?", values
    )


def _ends(source: str, target: str, writing: Writing) -> tuple[int, int] | None:
    return one(
        writing.connection,
        "SELECT a.row, b.row FROM memories a, memories b WHERE a.id = ? AND b.id = ? AND a.namespace = b.namespace",
        (source, target),
    )


def _add_link(change: AddLink, writing: Writing) -> None:
    link = change.link
    ends = _ends(link.source, link.target, writing)
    if ends is None:
        raise loose_link(link)
    created_at = to_ms(link.created_at)
    writing.connection.execute(
        "INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?, ?)",
        (ends[0], link.type, ends[1], created_at, link_checksum(ends[0], link.type, ends[1], created_at)),
    )


def _drop_link(change: DropLink, writing: Writing) -> None:
    link = change.link
    ends = _ends(link.source, link.target, writing)
    if ends is not None:
        writing.connection.execute(
            "DELETE FROM links WHERE source = ? AND type = ? AND target = ?", (ends[0], link.type, ends[1])
        )


def _set(change: SetSetting, writing: Writing) -> None:
    if change.value is None:
        writing.connection.execute("DELETE FROM settings WHERE name = ?", (change.name,))
        return
    value = dump_json(change.value, f"setting {change.name}")
    writing.connection.execute(
        "INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (change.name, value)
    )
