"""The columns of the full-text index that are not kept anywhere: they follow from a memory's row.

The index holds the terms of the tags and of the scope. Who needs the texts they came from, to take a memory out of the
index or to check it, asks the view `indexed_texts`, which makes them with functions of our own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import apsw

from recollect.domain.memory import Memory, Scope
from recollect.stores.scope_terms import terms_of
from recollect.stores.tokens import MARK_NUMBER, plain

if TYPE_CHECKING:
    from recollect.stores.sqlite.connection import Connection

# In the order of the statements: nothing may use a column when it goes.
ANEW = f"""
DROP VIEW indexed_texts;
CREATE TABLE slim_texts (
    row INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    content_tokens INTEGER NOT NULL,
    about INTEGER,
    tokens BLOB NOT NULL
) STRICT;
INSERT INTO slim_texts SELECT row, content_tokens, about, {{tokens}} FROM texts ORDER BY row;
DROP TABLE texts;
ALTER TABLE slim_texts RENAME TO texts;
CREATE INDEX texts_about ON texts (about) WHERE about IS NOT NULL;
CREATE VIEW indexed_texts (row, content, tags, scope) AS
    SELECT m.row, replace(m.content, char({MARK_NUMBER}), ' '), indexed_tags(m.tags),
        indexed_scope(m.namespace, m.project, m.session, m.type, m.tags)
    FROM memories m JOIN texts t ON t.row = m.row;
"""
SLIM = (
    ANEW.format(tokens="tokens")
    + """
DROP INDEX memories_accessed;
DROP INDEX memories_accessed_embedded;
CREATE INDEX memories_accessed_embedded ON memories (accessed_at) WHERE embedded > 0;
CREATE INDEX memories_accessed_waiting ON memories (accessed_at) WHERE embedded <= 0;
"""
)
NARROW = (
    ANEW.format(tokens="substr(tokens, 1, max(0, length(tokens) / 6 * 4 - 4))")
    + """
INSERT INTO fulltext (fulltext, rank) VALUES ('automerge', 0);
INSERT INTO fulltext (fulltext, rank) VALUES ('usermerge', 8);
"""
)


def slim_down(connection: Connection) -> None:
    """The step that leaves out what can be derived: 140 bytes of every memory."""
    _run(connection, SLIM)


def narrow_down(connection: Connection) -> None:
    """The step that keeps 32 bits of every token instead of 48, and from which on the writer says when to merge.

    The table is written anew, so that its pages are full.
    """
    _run(connection, NARROW)


def _run(connection: Connection, step: str) -> None:
    for statement in filter(str.strip, step.split(";\n")):
        connection.execute(statement).fetchall()


def add_functions(connection: Connection) -> None:
    """Make the view's functions known; a view may call them because they can do no harm."""
    add = cast(Any, connection).create_scalar_function
    for name, function, arguments in (
        ("indexed_content", _content_of_row, 1),
        ("indexed_tags", _tags_of_row, 1),
        ("indexed_scope", _scope_of_row, 5),
    ):
        add(name, function, arguments, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)


def tags_text(memory: Memory) -> str:
    """The tags column of one memory."""
    return plain(" ".join(memory.tags))


def _content_of_row(content: Any) -> str:
    return plain(str(content))


def _tags_of_row(tags: Any) -> str:
    return plain(" ".join(_list(tags)))


def _scope_of_row(namespace: Any, project: Any, session: Any, type: Any, tags: Any) -> str:
    return terms_of(Scope(namespace, project, session), type, _list(tags))


def _list(tags: Any) -> tuple[str, ...]:
    """The tags of a row; a row too damaged to have some has none, and does not fit the index then."""
    try:
        return tuple(str(tag) for tag in json.loads(tags))
    except (TypeError, ValueError):
        return ()
