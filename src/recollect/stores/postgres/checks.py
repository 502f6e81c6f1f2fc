"""Finding damage and drift: what checksums see, and what no longer fits together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal

import psycopg

from recollect.domain.gist import gist
from recollect.ports import Finding
from recollect.stores.checksums import link_checksum, vector_checksum
from recollect.stores.places import place
from recollect.stores.postgres import metadata
from recollect.stores.postgres.changes import COLUMNS
from recollect.stores.postgres.connection import Connection, rows
from recollect.stores.postgres.lexemes import Tokens, counted_name, fits_index
from recollect.stores.postgres.tables import COUNTED, TALLIED, TENANT
from recollect.stores.rows import decode, is_sound
from recollect.stores.subjects import subject_number

REPORTED = 20
"""So many examples of one kind are named; the rest is counted."""
PAGE = 1_000
OWN_WALLS = {"texts": TENANT, "words": COUNTED}
"""From these tables row-level security does not keep their owner: whoever reads or empties them whole says it too."""

Found = Iterator[tuple[str, str]]
Severity = Literal["warning", "error"]
Check = Callable[[Connection, Tokens], Found]


def find_all(connection: Connection, tokens: Tokens) -> list[Finding]:
    """Every finding, errors first."""
    findings: list[Finding] = []
    for check, severity in CHECKS:
        seen: Counter[str] = Counter()
        try:
            for kind, detail in check(connection, tokens):
                seen[kind] += 1
                if seen[kind] <= REPORTED:
                    findings.append(Finding(kind, detail, severity))
        except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
            findings.append(Finding("unreadable", f"{check.__name__.strip('_')}: {type(error).__name__}", "error"))
            break  # the transaction is over
        findings.extend(
            Finding(kind, f"{count - REPORTED} more of this kind", severity)
            for kind, count in seen.items()
            if count > REPORTED
        )
    return sorted(findings, key=lambda finding: finding.severity != "error")


def pages(connection: Connection, columns: str, table: str, key: str) -> Iterator[tuple[Any, ...]]:
    """All rows of a table (alias m) that the store may see, a bounded number at a time; the key comes first in each."""
    last: tuple[Any, ...] | None = None
    wall = OWN_WALLS.get(table, "true")
    size = key.count(",") + 1
    marks = ", ".join(["%s"] * size)
    while True:
        behind = "" if last is None else f" AND ({key}) > ({marks})"
        found = rows(
            connection,
            f"SELECT {key}, {columns} FROM {table} m WHERE ({wall}){behind} ORDER BY {key} LIMIT {PAGE}",
            last or (),
        )
        yield from found
        if len(found) < PAGE:
            return
        last = found[-1][:size]


def _memories(connection: Connection, tokens: Tokens) -> Found:
    """Checksums and hashes of the memories, their token streams, and every sum that writes keep."""
    sums: Counter[tuple[str, str, str]] = Counter()
    streams = pages(connection, "m.content_tokens, m.tokens, m.about", "texts", "m.namespace, m.number")
    held: tuple[Any, ...] | None = None
    for namespace, number, hashed, *row in pages(
        connection, f"m.text_hash, {COLUMNS}", "memories", "m.namespace, m.number"
    ):
        if not is_sound(tuple(row)):
            yield "memory", f"memory {row[0]} fails its checksum"
            continue
        memory = decode(tuple(row))
        if gist(memory.content) != hashed:
            yield "text-hash", f"memory {memory.id} has a wrong text hash"
        text = tokens.text(memory.content, memory.tags)
        if held is None or held[:2] < (namespace, number):  # both come in the same order
            held = next((one for one in streams if one[:2] >= (namespace, number)), held)
        wanted = (namespace, number, text.content_tokens, text.stream, subject_number(memory))
        if held is None or (*held[:3], bytes(held[3]), held[4]) != wanted:
            yield "tokens", f"memory {memory.id} has a wrong token stream or subject"
        sums["memories", namespace, ""] += 1
        sums["able", namespace, ""] += not memory.sensitive
        sums["tokens", namespace, ""] += text.size
        sums.update([("term", namespace, counted_name(term)) for term in text.terms])
        sums.update([("word", namespace, word) for word in text.words if fits_index(word)])
    if sums != _kept_sums(connection):
        yield "counters", "the counts of memories, terms or words are wrong"


def _kept_sums(connection: Connection) -> Counter[tuple[str, str, str]]:
    kept: Counter[tuple[str, str, str]] = Counter()
    for namespace, memories, able, size in rows(connection, "SELECT namespace, memories, able, tokens FROM counts"):
        kept.update({("memories", namespace, ""): memories, ("able", namespace, ""): able})
        kept["tokens", namespace, ""] = size
    for table, column in (("terms", "term"), ("words", "word")):
        for namespace, name, memories in pages(connection, "m.memories", table, f"m.namespace, m.{column}"):
            kept[column, namespace, name] = memories
    return kept


def _metadata(connection: Connection, _tokens: Tokens) -> Found:
    for (id,) in rows(connection, f"SELECT id FROM memories WHERE {metadata.DRIFTED} ORDER BY namespace, number"):
        yield "metadata", f"memory {id} has other metadata as jsonb than as text"


def _tallies(connection: Connection, _tokens: Tokens) -> Found:
    kept = rows(
        connection,
        "SELECT namespace, kind, name, sum(held)::bigint FROM tallies GROUP BY namespace, kind, name"
        " HAVING sum(held) <> 0",
    )
    if sorted(kept) != sorted(rows(connection, TALLIED)):
        yield "counters", "the tallies of types, projects, vectors or links are wrong"


def _vectors(connection: Connection, _tokens: Tokens) -> Found:
    dimensions = dict(rows(connection, "SELECT model, dimension FROM models"))
    for _, number, model, passage, start, stop, checksum, data in pages(
        connection, "m.start, m.stop, m.checksum, m.data", "vectors", "m.namespace, m.number, m.model, m.passage"
    ):
        if vector_checksum(place(model, number, passage), start, stop, bytes(data)) != checksum:
            yield "vector", f"a vector of memory number {number} fails its checksum"
        elif len(data) != 4 * (dimensions.get(model) or 0):
            yield "vector", f"a vector of memory number {number} has a wrong length"


def _links(connection: Connection, _tokens: Tokens) -> Found:
    for _, source, type, target, created_at, checksum in pages(
        connection, "m.created_at, m.checksum", "links", "m.namespace, m.source, m.type, m.target"
    ):
        if link_checksum(source, type, target, created_at) != checksum:
            yield "link", f"the link {source} {type} {target} fails its checksum"


OUTBOX = """
SELECT model, count(*) FROM (SELECT model FROM models WHERE entered_number IS NULL) models CROSS JOIN memories m
LEFT JOIN LATERAL (
    SELECT 1 AS held FROM vectors v WHERE v.namespace = m.namespace AND v.number = m.number AND v.model = models.model
    LIMIT 1
) v ON true
LEFT JOIN outbox o USING (namespace, number, model)
WHERE (m.sensitive <> 0 AND (v.held IS NOT NULL OR o.attempts IS NOT NULL))
OR (m.sensitive = 0 AND (v.held IS NULL) = (o.attempts IS NULL))
GROUP BY model ORDER BY model
"""


def _outbox(connection: Connection, _tokens: Tokens) -> Found:
    """Every memory that may be embedded has, for each model, either vectors or a place in the outbox."""
    for model, count in rows(connection, OUTBOX):
        yield "outbox", f"the outbox of model {model} does not fit the vectors of {count} memories"


def _walls(connection: Connection, _tokens: Tokens) -> Found:
    """Row-level security binds neither superusers nor who may pass it by: our own conditions alone part the tenants."""
    free = "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
    if rows(connection, free):
        yield "superuser", "row-level security does not bind this role: connect as another (docs/postgres.md, Tenants)"


CHECKS: tuple[tuple[Check, Severity], ...] = (
    (_memories, "error"),
    (_vectors, "warning"),
    (_metadata, "warning"),
    (_links, "error"),
    (_outbox, "warning"),
    (_tallies, "warning"),
    (_walls, "warning"),
)
