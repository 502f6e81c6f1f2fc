"""The step from which on letters of scripts without spaces are indexed each as a word."""

from __future__ import annotations

from typing import Any

from recollect.domain.scripts import has_unspaced
from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.tokens import NARROW_BYTES, Tokenizer, narrow, plain

READ_AT_ONCE = 1_000
VIEW = """
CREATE VIEW indexed_texts (row, content, tags, scope) AS
    SELECT m.row, indexed_content(m.content), indexed_tags(m.tags),
        indexed_scope(m.namespace, m.project, m.session, m.type, m.tags)
    FROM memories m JOIN texts t ON t.row = m.row
"""


def part_letters(connection: Connection) -> None:
    """Read the memories that hold such letters anew; runs of them are words no longer, and are forgotten as such."""
    connection.execute("DROP VIEW indexed_texts").fetchall()
    connection.execute(VIEW).fetchall()
    tokenizer = Tokenizer(connection)
    long = [(word,) for (word,) in rows(connection, "SELECT word FROM words") if len(word) > 1 and has_unspaced(word)]
    connection.executemany("DELETE FROM words WHERE word = ?", long)
    last, changed = 0, False
    sql = "SELECT m.row, m.content, i.tags, t.tokens FROM memories m JOIN texts t ON t.row = m.row"
    sql += " JOIN indexed_texts i ON i.row = m.row WHERE m.row > ? ORDER BY m.row LIMIT ?"
    while found := rows(connection, sql, (last, READ_AT_ONCE)):
        last = found[-1][0]
        for row in found:
            if has_unspaced(row[1]) or has_unspaced(row[2]):
                _read_anew(connection, tokenizer, row)
                changed = True
    if changed:
        connection.execute("INSERT INTO fulltext (fulltext) VALUES ('rebuild')").fetchall()
        for (term,) in rows(connection, "SELECT term FROM common_terms"):
            held = one(connection, "SELECT doc FROM vocabulary WHERE term = ?", (term,)) or 0
            connection.execute("UPDATE common_terms SET memories = ? WHERE term = ?", (held, term)).fetchall()


def _read_anew(connection: Connection, tokenizer: Tokenizer, row: tuple[Any, ...]) -> None:
    number, content, tags, stream = row
    text = tokenizer.text(plain(content), tags)
    connection.execute(
        "UPDATE texts SET content_tokens = ?, tokens = ? WHERE row = ?",
        (text.content_tokens, narrow(text.stream), number),
    ).fetchall()
    more = text.size - (len(stream) // NARROW_BYTES - 1)
    connection.execute("UPDATE counters SET value = value + ? WHERE name = 'tokens'", (more,)).fetchall()
    connection.executemany("INSERT OR IGNORE INTO words (word) VALUES (?)", [(word,) for word in sorted(text.words)])
