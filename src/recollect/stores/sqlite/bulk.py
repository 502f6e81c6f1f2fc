"""Many new memories at once: the same tables and the same checks as one by one, a statement for each table.

Only what cannot collide is taken: where a check would refuse one of the memories, or they depend on each other,
nothing is done here and the changes are made one by one, so that errors and their order are those of `changes`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from recollect.domain.changes import Change, Put
from recollect.domain.memory import EPISODE, Memory
from recollect.domain.times import to_ms
from recollect.stores.sqlite.changes import INSERT_AT, INSERT_FULLTEXT, INSERT_TEXTS, is_buried
from recollect.stores.sqlite.connection import one
from recollect.stores.sqlite.filters import scope_text
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.outbox import renew_followers
from recollect.stores.sqlite.rows import encode, text_number
from recollect.stores.sqlite.subjects import subject_number
from recollect.stores.sqlite.tokens import Text, plain

WORTH_IT = 8
AT_ONCE = 1_000


def insert_all(changes: Sequence[Change], writing: Writing) -> bool:
    """Insert the memories and say so, or leave everything as it is and say that."""
    if len(changes) < WORTH_IT:
        return False
    puts = [change for change in changes if isinstance(change, Put) and change.expected_version is None]
    if len(puts) < len(changes):
        return False
    numbers = [text_number(put.memory.content) for put in puts]
    if not _are_free(puts, numbers, writing):
        return False
    for first in range(0, len(puts), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        _insert([put.memory for put in puts[some]], numbers[some], writing)
    return True


def _are_free(puts: Sequence[Put], numbers: Sequence[int], writing: Writing) -> bool:
    """Whether no id, key or text is taken, in the store or among the puts, and no text is behind a tombstone."""
    connection = writing.connection
    ids = [put.memory.id for put in puts]
    keys = [(put.memory.scope.namespace, put.memory.key) for put in puts if put.memory.key is not None]
    if len(set(ids)) < len(ids) or len(set(keys)) < len(keys):
        return False
    if any(put.once for put in puts):
        if len(set(numbers)) < len(numbers):
            return False
        once = [number for put, number in zip(puts, numbers) if put.once]
        if one(connection, _any("m.text_hash = j.value"), (json.dumps(once),)):
            return False
    held = one(connection, _any("m.id = j.value"), (json.dumps(ids),)) or (
        keys and one(connection, _any("m.namespace = j.value ->> 0 AND m.key = j.value ->> 1"), (json.dumps(keys),))
    )
    if held:
        return False
    return not writing.has_tombstones or not any(
        is_buried(connection, put.memory.scope.namespace, put.memory.content) for put in puts
    )


def _any(match: str) -> str:
    return f"SELECT EXISTS (SELECT 1 FROM json_each(?) j CROSS JOIN memories m ON {match})"


def _insert(memories: Sequence[Memory], numbers: Sequence[int], writing: Writing) -> None:
    """Memories, token streams, full text and the outbox; row numbers go on where the last insertion ended."""
    connection = writing.connection
    last: int = one(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'memories'") or 0
    places = range(last + 1, last + 1 + len(memories))
    columns = [(plain(memory.content), plain(" ".join(memory.tags))) for memory in memories]
    scopes = [scope_text(memory) for memory in memories]
    texts = _texts(columns, memories, writing)
    connection.executemany(
        INSERT_AT,
        [
            (*encode(memory, memory.version, to_ms(memory.accessed_at), memory.access_count), number, row)
            for memory, number, row in zip(memories, numbers, places)
        ],
    )
    connection.executemany(
        INSERT_TEXTS,
        [
            (row, text.content_tokens, tags, scope, text.stream, subject_number(memory))
            for row, text, (_, tags), scope, memory in zip(places, texts, columns, scopes, memories)
        ],
    )
    connection.executemany(INSERT_FULLTEXT, [(row, *pair, scope) for row, pair, scope in zip(places, columns, scopes)])
    for row in _between_turns(memories, places, writing):
        renew_followers(writing, row)
    able = [row for row, memory in zip(places, memories) if not memory.sensitive]
    for model in writing.models.values():
        connection.executemany("INSERT INTO outbox (model, row) VALUES (?, ?)", [(model, row) for row in able])


def _between_turns(memories: Sequence[Memory], places: Sequence[int], writing: Writing) -> list[int]:
    """The rows of new turns in conversations of which later turns were there before."""
    begins: dict[tuple[str, str], int] = {}
    for memory in memories:
        if memory.type == EPISODE and memory.scope.session is not None:
            place, moment = (memory.scope.namespace, memory.scope.session), to_ms(memory.created_at)
            begins[place] = min(moment, begins.get(place, moment))
    sql = "SELECT EXISTS (SELECT 1 FROM memories WHERE namespace = ? AND session = ? AND created_at >= ? AND row < ?)"
    known = {place for place, moment in begins.items() if one(writing.connection, sql, (*place, moment, places[0]))}
    return [row for row, new in zip(places, memories) if (new.scope.namespace, new.scope.session) in known]


def _texts(columns: Sequence[tuple[str, str]], memories: Sequence[Memory], writing: Writing) -> list[Text]:
    """The token streams, entered into the sums. Terms that are counted, and odd words, need a look at each text."""
    together = None if writing.common else writing.tokenizer.texts(columns)
    if together is None:
        texts = [writing.tokenizer.text(*pair) for pair in columns]
        words = set[str]().union(*[text.words for text in texts])
    else:
        texts, words = together
    for memory, text in zip(memories, texts):
        writing.count_text(text, memory.scope.namespace, 1)
    writing.list_words(words)
    return texts
