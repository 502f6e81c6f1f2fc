"""Rebuilding what is derived from the memories: token streams, full text, words, counts, marks and the outbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from recollect.domain.errors import Corrupt
from recollect.domain.gist import gist
from recollect.domain.memory import Memory
from recollect.stores.checksums import holds_vector, link_checksum
from recollect.stores.places import of_model, row_of
from recollect.stores.rows import SOURCE, decode
from recollect.stores.sqlite.changes import INSERT_TEXTS, index
from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.derived import tags_text
from recollect.stores.sqlite.ledger import Writing
from recollect.stores.sqlite.outbox import ENTERED, TEXTS, log_text
from recollect.stores.subjects import subject_number
from recollect.stores.tokens import NARROW_BYTES, narrow, plain

Work = Callable[[Writing], None]
Enter = Callable[[int, Memory, Writing], object]

OF_VECTORS = {"vector", "vector-orphan", "outbox"}
OF_TEXTS = {"tokens", "subject", "counters", "words", "fulltext", "text-hash"}
OF_LINKS = {"link"}
FOR_GOOD = {"tombstones", "setting"}
"""What nothing else in the file tells."""

MENDED_AT_ONCE = 1_000
"""So many texts are looked at in one transaction."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What fails its checksum: the places of vectors with it, and the links."""

    vectors: Sequence[tuple[int, int]] = ()
    links: Sequence[tuple[int, str, int, int]] = ()
    last_row: int = 0
    """Of the memories; later ones were written by somebody who did it right."""


def find_broken(connection: Connection) -> Broken:
    """A vector is made again from its text; a link with a wrong checksum points who knows where."""
    vectors = [
        (key, checksum)
        for key, start, stop, checksum, data in connection.execute("SELECT * FROM vectors")
        if not holds_vector(key, start, stop, checksum, data)
    ]
    links = [
        (source, type, target, checksum)
        for source, type, target, created_at, checksum in connection.execute("SELECT * FROM links")
        if link_checksum(source, type, target, created_at) != checksum
    ]
    return Broken(vectors, links, one(connection, "SELECT max(row) FROM memories") or 0)


def repairs(kinds: set[str], broken: Broken) -> list[Work]:
    """The work for these kinds of findings, a transaction each, so that others can write in between.

    Memories that are damaged themselves stay as they are. What says nothing of its own cause is answered with all.
    """
    wanted: list[Work] = [lambda writing: _drop(writing, broken)]
    kinds = kinds - FOR_GOOD
    if not kinds <= OF_VECTORS | OF_LINKS:
        is_readable = kinds <= {"memory"} | OF_TEXTS | OF_VECTORS | OF_LINKS
        wanted += _in_steps(broken, bool(kinds & {"memory", "fulltext"})) if is_readable else [_texts]
    if not kinds <= OF_TEXTS | OF_LINKS:
        wanted.append(_outbox)
    return wanted


def _drop(writing: Writing, broken: Broken) -> None:
    """With the checksum that was found wrong: somebody may have written a sound one meanwhile."""
    run = writing.connection.executemany
    run("DELETE FROM vectors WHERE place = ? AND checksum IS ?", broken.vectors)
    run("DELETE FROM links WHERE source = ? AND type = ? AND target = ? AND checksum IS ?", broken.links)


def _in_steps(broken: Broken, with_index: bool) -> list[Work]:
    """Texts and sums, and then the full-text index where that is wrong, in one go: a search must not meet half of it.

    Every step leaves less to mend, whoever ends it there.
    """
    starts = range(0, broken.last_row, MENDED_AT_ONCE)
    steps = [partial(_mend, after=start, enter=index if not with_index else _keep_text) for start in starts]
    return [_forget_words, *steps, *([_index_anew] if with_index else []), _count_anew]


def _forget_words(writing: Writing) -> None:
    """Nobody is to believe that a word is listed because it was once."""
    writing.connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'words_removed'")
    writing.forget_words()


def _mend(writing: Writing, after: int, enter: Enter) -> None:
    """Token streams, subjects, words and text hashes of the next rows, where they are wrong; what has no stream is
    entered, what is damaged itself has none."""
    connection = writing.connection
    held = "SELECT content_tokens, about, tokens FROM texts WHERE row = ?"
    for number in range(after + 1, after + 1 + MENDED_AT_ONCE):
        memory = _sound(connection, number)
        if memory is None:
            if enter is _keep_text:
                connection.execute("DELETE FROM texts WHERE row = ?", (number,))
            continue
        connection.execute(
            "UPDATE memories SET text_hash = ?1 WHERE row = ?2 AND text_hash <> ?1",
            (gist(memory.content), number),
        )
        text = writing.tokenizer.text(plain(memory.content), tags_text(memory))
        right = (text.content_tokens, subject_number(memory), narrow(text.stream))
        found = one(connection, held, (number,))
        if found is None:
            enter(number, memory, writing)
        elif found != right:
            connection.execute(
                "UPDATE texts SET content_tokens = ?, about = ?, tokens = ? WHERE row = ?", (*right, number)
            )
            log_text(writing, number)
        writing.list_words(text.words)


def _keep_text(row: int, memory: Memory, writing: Writing) -> None:
    """The stream alone, for an index that is going to be made anew."""
    text = writing.tokenizer.text(plain(memory.content), tags_text(memory))
    values = (row, text.content_tokens, subject_number(memory), narrow(text.stream))
    writing.connection.execute(INSERT_TEXTS, values)


def _index_anew(writing: Writing) -> None:
    writing.connection.execute("INSERT INTO fulltext (fulltext) VALUES ('rebuild')")
    writing.connection.execute("INSERT INTO vector_log (model, row) SELECT ?, row FROM memories", (TEXTS,))
    writing.ledger.logged = writing.ledger.rewritten = True


def _count_anew(writing: Writing) -> None:
    """The sums that every write keeps, from the texts themselves."""
    connection = writing.connection
    writing.ledger.take_back_texts(writing.total)
    connection.execute("DELETE FROM common_terms")
    connection.execute("DELETE FROM namespaces")
    connection.execute(
        "INSERT INTO namespaces SELECT m.namespace, count(*) FROM memories m JOIN texts t ON t.row = m.row GROUP BY 1"
    )
    for name, sum in (("documents", "count(*)"), ("tokens", f"total(length(tokens) / {NARROW_BYTES} - 1)")):
        connection.execute(f"INSERT OR REPLACE INTO counters SELECT ?, CAST({sum} AS INTEGER) FROM texts", (name,))
    writing.ledger.rewritten = True
    writing.reload()


def _texts(writing: Writing) -> None:
    """All of it in one go, without a look at what is there: the file may be too damaged for that."""
    connection = writing.connection
    writing.ledger.take_back_texts(writing.total)
    connection.execute("DELETE FROM texts")
    connection.execute("INSERT INTO fulltext (fulltext) VALUES ('delete-all')")
    for table in ("common_terms", "words", "namespaces"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("UPDATE counters SET value = 0 WHERE name IN ('documents', 'tokens')")
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'words_removed'")
    connection.execute("INSERT INTO vector_log (model, row) SELECT ?, row FROM memories", (TEXTS,))
    writing.ledger.logged = writing.ledger.rewritten = True
    writing.forget_words()
    writing.reload()
    numbers = [number for (number,) in rows(connection, "SELECT row FROM memories ORDER BY row")]
    for number in numbers:
        memory = _sound(connection, number)
        if memory is not None:
            index(number, memory, writing)
            connection.execute("UPDATE memories SET text_hash = ? WHERE row = ?", (gist(memory.content), number))


def _sound(connection: Connection, row: int) -> Memory | None:
    """The memory of a row; None where there is none, or none that is as it was written."""
    try:
        found = connection.execute(f"SELECT {SOURCE} FROM memories WHERE row = ?", (row,)).fetchone()
        return None if found is None else decode(found)
    except (Corrupt, UnicodeDecodeError):  # damaged, perhaps beyond reading
        return None


def _outbox(writing: Writing) -> None:
    connection = writing.connection
    writing.ledger.done.subtract(writing.total.done)
    able = {row for (row,) in connection.execute("SELECT row FROM memories WHERE NOT sensitive")}
    embedded: Counter[int] = Counter()
    for model, dimension in rows(connection, "SELECT model, dimension FROM models"):
        vectors = connection.execute(
            "SELECT place, length(data) FROM vectors WHERE place BETWEEN ? AND ?",
            of_model(model),
        ).fetchall()
        wrong = {key for key, size in vectors if row_of(key) not in able or size != 4 * (dimension or 0)}
        owners = {row_of(key) for key, _ in vectors} - {row_of(key) for key in wrong}
        connection.executemany("DELETE FROM vectors WHERE place = ?", [(key,) for key in sorted(wrong)])
        connection.execute("DELETE FROM outbox WHERE model = ?", (model,))
        connection.executemany(
            "INSERT INTO outbox (model, row) VALUES (?, ?)", [(model, row) for row in sorted(able - owners)]
        )
        connection.execute("DELETE FROM counters WHERE name = ?", (f"{ENTERED}{model}",))
        connection.execute("UPDATE models SET done = ? WHERE model = ?", (len(owners), model))
        connection.executemany(
            "INSERT INTO vector_log (model, row) VALUES (?, ?)", [(model, row) for row in sorted(able)]
        )
        embedded.update(owners)
    connection.execute("UPDATE memories SET embedded = 0 WHERE embedded <> 0")
    connection.executemany("UPDATE memories SET embedded = ? WHERE row = ?", [(n, row) for row, n in embedded.items()])
