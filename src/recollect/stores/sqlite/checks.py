"""Finding damage and drift: what SQLite sees, what checksums see, and what no longer fits together.

SQLite's own integrity check sees few flipped bits in payloads; the checksums of rows, vectors and links see the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

import apsw

from recollect.domain.errors import Corrupt
from recollect.domain.gist import gist
from recollect.ports import Finding
from recollect.stores.checksums import holds_vector, link_checksum, tombstone_checksum
from recollect.stores.places import ROW_MASK, model_of
from recollect.stores.refusals import PASSAGE_BITS
from recollect.stores.rows import SOURCE, is_sound
from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.ledger import counter
from recollect.stores.sqlite.outbox import HELD, entered_up_to
from recollect.stores.sqlite.sums import WIDE, indexed_sum, text_sum
from recollect.stores.subjects import stored_number
from recollect.stores.tokens import Tokenizer, narrow, plain

REPORTED = 20
"""So many examples of one kind are named; the rest is counted."""

Found = Iterator[tuple[str, str]]
Severity = Literal["warning", "error"]
Check = Callable[[Connection], Found]


def find_all(connection: Connection) -> list[Finding]:
    """Every finding, errors first. A file that SQLite itself cannot read yields one finding for each failed check."""
    findings: list[Finding] = []
    for check, severity in CHECKS:
        seen: Counter[str] = Counter()
        try:
            for kind, detail in check(connection):
                seen[kind] += 1
                if seen[kind] <= REPORTED:
                    findings.append(Finding(kind, detail, severity))
        except (
            apsw.Error,
            Corrupt,
            AttributeError,
            TypeError,
            ValueError,
        ) as error:  # values may be of any kind, or missing
            findings.append(Finding("unreadable", f"{check.__name__.strip('_')}: {type(error).__name__}", "error"))
        findings.extend(
            Finding(kind, f"{count - REPORTED} more of this kind", severity)
            for kind, count in seen.items()
            if count > REPORTED
        )
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _pages(connection: Connection) -> Found:
    # FTS5 would check what this connection remembers of an index that another one has changed; a query makes it look.
    rows(connection, "SELECT rowid FROM fulltext WHERE fulltext MATCH '\"look\"' LIMIT 1")
    for (message,) in rows(connection, "PRAGMA integrity_check(20)"):
        if message != "ok":
            yield "pages", message
    for table, _, _, _ in rows(connection, "PRAGMA foreign_key_check"):
        yield "references", f"a row of {table} points nowhere"


def _memories(connection: Connection) -> Found:
    for row in connection.execute(f"SELECT {SOURCE}, text_hash FROM memories"):
        if not is_sound(row[:-1]):
            yield "memory", f"memory {row[0]} fails its checksum"
        elif gist(row[16]) != row[-1]:
            yield "text-hash", f"memory {row[0]} has a wrong text hash"


def _vectors(connection: Connection) -> Found:
    dimensions = dict(rows(connection, "SELECT model, dimension FROM models"))
    for key, start, stop, checksum, data, is_owned in connection.execute(
        f"SELECT v.*, EXISTS (SELECT 1 FROM memories WHERE row = v.place >> {PASSAGE_BITS} & {ROW_MASK}"
        " AND NOT sensitive) FROM vectors v"
    ):
        if not holds_vector(key, start, stop, checksum, data):
            yield "vector", f"the vector at {key} fails its checksum"
        elif not is_owned or len(data) != 4 * (dimensions.get(model_of(key)) or 0):
            yield "vector-orphan", f"the vector at {key} belongs to no memory or has a wrong length"


def _links(connection: Connection) -> Found:
    for source, type, target, created_at, checksum in connection.execute("SELECT * FROM links"):
        if link_checksum(source, type, target, created_at) != checksum:
            yield "link", f"the link {source} {type} {target} fails its checksum"


def _texts(connection: Connection) -> Found:
    """The token streams and the full text against the texts, and the sums that every write keeps."""
    tokenizer = Tokenizer(connection)
    total, documents, expected = 0, 0, 0
    namespaces: Counter[str] = Counter()
    words: set[str] = set()
    for row, content, namespace, metadata, tags, scope, split, stream, about in connection.execute(
        "SELECT m.row, m.content, m.namespace, m.metadata, indexed_tags(m.tags),"
        " indexed_scope(m.namespace, m.project, m.session, m.type, m.tags), t.content_tokens, t.tokens, t.about"
        " FROM memories m LEFT JOIN texts t ON t.row = m.row"
    ):
        if stream is None:
            yield "tokens", f"memory row {row} has no token stream"
            continue
        text = tokenizer.text(plain(content), tags)
        documents, total = documents + 1, total + text.size
        namespaces[namespace] += 1
        words |= text.words
        expected += text_sum(tokenizer, row, text, (content, tags), scope)
        if narrow(text.stream) != stream or text.content_tokens != split:
            yield "tokens", f"memory row {row} has a wrong token stream"
        if stored_number(namespace, content, metadata) != about:
            yield "subject", f"memory row {row} is listed under a wrong subject"
    if (counter(connection, "documents"), counter(connection, "tokens")) != (documents, total):
        yield "counters", "the counts of memories or tokens are wrong"
    if dict(rows(connection, "SELECT namespace, memories FROM namespaces")) != dict(namespaces):
        yield "counters", "the counts of namespaces are wrong"
    if not words <= {word for (word,) in rows(connection, "SELECT word FROM words")}:
        yield "words", "words of some texts are not listed"
    if expected & WIDE != indexed_sum(connection):
        yield "fulltext", "the full-text index does not fit the texts"


def _terms(connection: Connection) -> Found:
    for term, held in rows(connection, "SELECT term, memories FROM common_terms"):
        if (one(connection, "SELECT doc FROM vocabulary WHERE term = ?", (term,)) or 0) != held:
            yield "counters", "the count of a common term is wrong"


def _outbox(connection: Connection) -> Found:
    """Every memory that may be embedded has, for each model, either vectors or a place in the outbox, or will have."""
    for model, done in rows(connection, "SELECT model, done FROM models"):
        reached = entered_up_to(connection, model)
        wrong, owners = one(
            connection,
            "SELECT total(held + queued <> NOT sensitive AND NOT (held + queued = 0 AND row > ?2)), total(held)"
            f" FROM (SELECT m.row, m.sensitive, EXISTS ({HELD.format(model='?1')}) AS held, EXISTS"
            " (SELECT 1 FROM outbox WHERE model = ?1 AND row = m.row) AS queued FROM memories m)",
            (model, ROW_MASK if reached is None else reached),
        )
        if wrong or done != owners:
            yield "outbox", f"the outbox of model {model} does not fit its vectors"
    if one(
        connection,
        "SELECT EXISTS (SELECT 1 FROM memories m WHERE max(embedded, 0) <>"
        f" (SELECT count(*) FROM models WHERE EXISTS ({HELD.format(model='models.model')})))",
    ):
        yield "outbox", "some memories are wrongly marked as embedded"


def _settings(connection: Connection) -> Found:
    for name, value in rows(connection, "SELECT name, value FROM settings"):
        try:
            json.loads(value)
        except (TypeError, ValueError):
            yield "setting", f"the setting {name} cannot be read"


def _tombstones(connection: Connection) -> Found:
    """Without their key no text that was forgotten is known again."""
    key = one(connection, "SELECT value FROM secrets WHERE name = 'tombstones'")
    if not isinstance(key, bytes):
        yield "tombstones", "the key of the tombstones is lost"
        return
    for namespace, hashed, checksum in connection.execute("SELECT namespace, hash, checksum FROM tombstones"):
        if tombstone_checksum(key, namespace, hashed) != checksum:
            yield "tombstones", f"a tombstone of namespace {namespace}, or the key of all, fails its checksum"


CHECKS: tuple[tuple[Check, Severity], ...] = (
    (_pages, "error"),
    (_memories, "error"),
    (_vectors, "warning"),
    (_links, "error"),
    (_texts, "warning"),
    (_terms, "warning"),
    (_outbox, "warning"),
    (_settings, "error"),
    (_tombstones, "error"),
)
