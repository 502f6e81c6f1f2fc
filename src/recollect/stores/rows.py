"""A memory as a row and back, with a checksum over everything that cannot be rebuilt."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from recollect.domain.errors import Corrupt, InvalidInput
from recollect.domain.memory import Memory, Scope
from recollect.domain.times import from_ms, to_ms

SOURCE = (
    "id, namespace, project, session, type, created_at, updated_at, version, pinned, sensitive, confidence,"
    " importance, source, key, tags, metadata, content, accessed_at, access_count, checksum"
)
"""The columns that a Memory is made of, in the order of `encode`."""

FIXED = 17
"""So many of them come before the columns that a touch changes."""

COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump_json(value: Any, field: str, encoder: json.JSONEncoder = COMPACT) -> str:
    """Compact JSON; whatever JSON cannot carry is InvalidInput."""
    try:
        return encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{field} is not JSON", "use only texts, numbers, booleans, lists and objects", field) from (
            error
        )


def encode(
    memory: Memory,
    version: int,
    accessed_at: int | None,
    access_count: int,
    encoder: json.JSONEncoder = COMPACT,
) -> tuple[Any, ...]:
    """The values of SOURCE; without `accessed_at` the memory's own. encoder: writes the metadata."""
    scope = memory.scope
    created_at = to_ms(memory.created_at)
    if accessed_at is None:
        accessed_at = created_at if memory.accessed_at is memory.created_at else to_ms(memory.accessed_at)
    fixed = (
        memory.id,
        scope.namespace,
        scope.project,
        scope.session,
        memory.type,
        created_at,
        created_at if memory.updated_at is memory.created_at else to_ms(memory.updated_at),
        version,
        int(memory.pinned),
        int(memory.sensitive),
        float(memory.confidence) + 0.0,  # SQLite keeps no sign of a zero, and the checksum is over what it keeps
        float(memory.importance) + 0.0,
        memory.source,
        memory.key,
        _tags_json(memory.tags) if memory.tags else "[]",
        dump_json(dict(memory.metadata), "metadata", encoder) if memory.metadata else "{}",
        memory.content,
    )
    return (*fixed, accessed_at, access_count, checksum(fixed) ^ touch_checksum(accessed_at, access_count))


@lru_cache(maxsize=4096)
def _tags_json(tags: tuple[str, ...]) -> str:
    return dump_json(list(tags), "tags")


def checksum(fixed: tuple[Any, ...]) -> int:
    """CRC-32 over the columns that only a Put changes."""
    return zlib.crc32(repr(fixed).encode())


def touch_checksum(accessed_at: int, access_count: int) -> int:
    """The part that a Touch replaces without reading the rest: checksums of parts are joined by exclusive or."""
    return zlib.crc32(b"(%d, %d)" % (accessed_at, access_count))


def is_sound(row: tuple[Any, ...]) -> bool:
    """Whether the row of SOURCE still has the checksum it was written with; in one line, as a recall asks it often."""
    held = zlib.crc32(repr(row[:FIXED]).encode()) ^ zlib.crc32(b"(%d, %d)" % row[FIXED:19]) == row[19]
    return held or _lost_a_sign(row)


def _lost_a_sign(row: tuple[Any, ...]) -> bool:
    """Whether it was written with a zero below zero: older versions took the checksum over a sign that SQLite drops."""
    signed = [(number, -0.0) if number == 0 else (number,) for number in row[10:12]]
    wanted = row[19] ^ touch_checksum(row[FIXED], row[18])
    return any(checksum((*row[:10], *numbers, *row[12:FIXED])) == wanted for numbers in product(*signed))


def decode(row: tuple[Any, ...]) -> Memory:
    """The memory of a row of SOURCE; damage is reported, never returned as an answer."""
    try:
        sound = is_sound(row)
    except (TypeError, AttributeError):
        sound = False
    if not sound:
        raise Corrupt(f"memory {row[0]} fails its checksum", "run doctor, then restore the memory from a backup")
    metadata: Mapping[str, Any] = json.loads(row[15]) if row[15] != "{}" else {}
    created_at = from_ms(row[5])
    # By place: a recall decodes hundreds, and names cost as much as all the rest.
    return Memory(
        row[0],
        row[16],
        row[4],
        _tags(row[14]),
        row[10],
        row[11],
        _scope(row[1], row[2], row[3]),
        row[12],
        row[13],
        created_at,
        created_at if row[6] == row[5] else from_ms(row[6]),
        created_at if row[17] == row[5] else from_ms(row[17]),
        row[18],
        bool(row[8]),
        bool(row[9]),
        metadata,
        row[7],
    )


@lru_cache(maxsize=4096)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _scope(namespace: str, project: str | None, session: str | None) -> Scope:
    return Scope(namespace, project, session)
