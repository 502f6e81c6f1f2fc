"""New memories of one or of many callers at once: the same tables and checks as one by one, few statements.

Only what cannot collide is taken: where a check would refuse one of the memories, or they depend on each other,
nothing is done here and the changes are made one by one, so that errors and their order are those of `changes`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recollect.domain.memory import EPISODE, Memory, tombstone_hash
from recollect.domain.times import to_ms
from recollect.stores.gists import comes_twice
from recollect.stores.rows import SOURCE
from recollect.stores.sqlite.changes import COLUMNS, INSERT_FULLTEXT, INSERT_TEXTS, tombstone_secret
from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.entries import Entries, Entry
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.lexicon import Tokens
from recollect.stores.sqlite.outbox import renew_followers
from recollect.stores.subjects import subject_number

AT_ONCE = 1_000
INSERT_MEMORIES = (
    f"INSERT INTO memories (row, text_hash, apart, {SOURCE}) VALUES ({', '.join('?' * (len(COLUMNS) + 3))})"
)


def insert_all(callers: Sequence[Entries], writing: Writing) -> bool:
    """Insert the memories of these callers and say so, or leave everything as it is and say that."""
    entries = [entry for caller in callers for entry in caller.each]
    if not _are_free(entries, writing):
        return False
    tokens = [tokens for caller in callers for tokens in caller.reading.tokens]
    for first in range(0, len(entries), AT_ONCE):
        _insert(entries[first : first + AT_ONCE], tokens[first : first + AT_ONCE], writing)
    for caller in callers:
        _sum_up(caller, writing)
    return True


def _are_free(entries: Sequence[Entry], writing: Writing) -> bool:
    """Whether no id, key or text is taken, in the store or among the entries, and no text is behind a tombstone."""
    connection = writing.connection
    memories = [entry.put.memory for entry in entries]
    ids = [memory.id for memory in memories]
    keys = [(memory.scope.namespace, memory.key) for memory in memories if memory.key is not None]
    if len(set(ids)) < len(ids) or len(set(keys)) < len(keys):
        return False
    return not (
        _any(connection, "m.id = j.value", ids)
        or _any(connection, "m.namespace = j.value ->> 0 AND m.key = j.value ->> 1", keys)
        or _is_one_there(entries, connection)
        or (writing.has_tombstones and _is_one_buried(entries, connection))
    )


def _is_one_there(entries: Sequence[Entry], connection: Connection) -> bool:
    """Whether a text that is to be kept once is in its place already, or comes twice."""
    once = [entry.number for entry in entries if entry.put.once]
    if not once:
        return False
    sql = "SELECT m.namespace, m.project, m.content FROM json_each(?) j CROSS JOIN memories m ON m.text_hash = j.value"
    held = rows(connection, sql, (json.dumps(once),))
    apart = not held and len({entry.number for entry in entries}) == len(entries)
    return not apart and comes_twice([entry.put for entry in entries], held)


def _any(connection: Connection, match: str, wanted: Sequence[Any]) -> bool:
    if not wanted:
        return False
    sql = f"SELECT EXISTS (SELECT 1 FROM json_each(?) j CROSS JOIN memories m ON {match})"
    return bool(one(connection, sql, (json.dumps(wanted),)))


def _is_one_buried(entries: Sequence[Entry], connection: Connection) -> bool:
    secret = tombstone_secret(connection)
    places = [(entry.put.memory.scope.namespace, entry.put.memory.content) for entry in entries]
    hashed = [(namespace, tombstone_hash(content, namespace, secret).hex()) for namespace, content in places]
    sql = (
        "SELECT EXISTS (SELECT 1 FROM json_each(?) j CROSS JOIN tombstones t"
        " ON t.namespace = j.value ->> 0 AND t.hash = unhex(j.value ->> 1))"
    )
    return bool(one(connection, sql, (json.dumps(hashed),)))


def _insert(entries: Sequence[Entry], tokens: Sequence[Tokens], writing: Writing) -> None:
    """Memories, token streams, full text and the outbox; row numbers go on where the last insertion ended."""
    connection = writing.connection
    last: int = one(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'memories'") or 0
    places = range(last + 1, last + 1 + len(entries))
    # One by one: a statement of several rows begins with a savepoint, at which FTS5 writes out what it has gathered.
    connection.executemany(
        INSERT_MEMORIES,
        [(row, entry.number, entry.put.apart, *entry.values) for row, entry in zip(places, entries)],
    )
    connection.executemany(
        INSERT_TEXTS,
        [
            (row, own.content, subject_number(entry.put.memory), own.stream)
            for row, entry, own in zip(places, entries, tokens)
        ],
    )
    connection.executemany(
        INSERT_FULLTEXT, [(row, entry.content, entry.tags, entry.scope) for row, entry in zip(places, entries)]
    )
    for row in _between_turns([entry.put.memory for entry in entries], places, writing):
        renew_followers(writing, row)
    waiting = [row for row, entry in zip(places, entries) if not entry.put.memory.sensitive]
    for model in writing.models.values():
        connection.executemany("INSERT INTO outbox (model, row) VALUES (?, ?)", [(model, row) for row in waiting])


def _between_turns(memories: Sequence[Memory], places: Sequence[int], writing: Writing) -> list[int]:
    """The rows of new turns in conversations of which later turns were there before."""
    turns = [(row, new) for row, new in zip(places, memories) if new.type == EPISODE and new.scope.session is not None]
    begins: dict[tuple[str, str | None], int] = {}
    for _, new in turns:
        place, moment = (new.scope.namespace, new.scope.session), to_ms(new.created_at)
        begins[place] = min(moment, begins.get(place, moment))
    sql = "SELECT EXISTS (SELECT 1 FROM memories WHERE namespace = ? AND session = ? AND created_at >= ? AND row < ?)"
    known = {place for place, moment in begins.items() if one(writing.connection, sql, (*place, moment, places[0]))}
    return [row for row, new in turns if (new.scope.namespace, new.scope.session) in known]


def _sum_up(caller: Entries, writing: Writing) -> None:
    """What the texts add to the counts and to the list of words."""
    reading, ledger = caller.reading, writing.ledger
    ledger.documents += len(caller.each)
    ledger.indexed += len(caller.each)
    ledger.tokens += sum(tokens.size for tokens in reading.tokens)
    ledger.namespaces.update([entry.put.memory.scope.namespace for entry in caller.each])
    if reading.state == writing.lexicon.state:
        ledger.terms.update(reading.terms)
        ledger.words |= reading.words
        return
    for entry in caller.each:
        text = writing.tokenizer.text(entry.content, entry.tags)
        ledger.terms.update(writing.common & text.terms)
        ledger.words |= text.words
