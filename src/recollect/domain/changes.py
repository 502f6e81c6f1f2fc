"""What a store can be asked to change. One list of changes is one transaction: all of it or nothing.

Changes are applied in order, each one seeing what those before it did. Two texts are the same when
`domain.memory.same_text` says so. Stores keep times in UTC and cut them down to whole milliseconds; a time without a
zone is read as UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from recollect.domain.memory import Link, Memory


@dataclass(frozen=True, slots=True)
class Put:
    """Insert a memory or replace it whole; full text and the embedding outbox follow in the same transaction.

    expected_version: None inserts (Conflict(existing_id) if the id is there) and stores the version that the memory
    carries. A number replaces that version only and stores it as number + 1, whatever version the memory carries;
    another stored version is a Conflict(existing_id), no such memory is NotFound, and so is one of another namespace:
    a memory never changes its namespace.
    A key that another memory of the namespace holds is always a Conflict(existing_id).
    once: refuse with Conflict(existing_id) when another memory of the same namespace and project (no project is a
    project of its own) holds the same text; the lowest id is named when several do.
    apart: whoever embeds an inserted memory does not merge it into an older one; a replacement leaves that as it is.
    A text behind a tombstone of the namespace is refused with Conflict (existing_id None), unless the replaced memory
    has that text already; `revive` takes the tombstone away instead. The checks are made in the order given here.

    A replacement keeps its place in the embedding outbox. It never turns accessed_at or access_count back, because
    touches do not count as versions. It loses its vectors when the content changes or it becomes sensitive.
    Metadata must be JSON (InvalidInput); it comes back as JSON does, tuples as lists.
    """

    memory: Memory
    expected_version: int | None = None
    once: bool = False
    revive: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Erase:
    """Remove a memory with no remnants; a tombstone keeps the same text from coming back by import or capture.

    Its links and vectors go with it. The tombstone binds the memory's namespace. An unknown id is NotFound, and a
    memory that is not at the expected version a Conflict.
    """

    id: str
    tombstone: bool = True
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Touch:
    """Memories were surfaced (count 0) or explicitly opened (count 1). Unknown ids are ignored.

    accessed_at never goes backwards, count is added once for each memory, version and updated_at stay.
    """

    ids: tuple[str, ...]
    accessed_at: datetime
    count: int = 0


@dataclass(frozen=True, slots=True)
class AddLink:
    """Idempotent: a link is known by source, type and target, and keeps its first created_at.

    Both ends must exist and share a namespace (NotFound).
    """

    link: Link


@dataclass(frozen=True, slots=True)
class DropLink:
    """Idempotent; created_at plays no part."""

    link: Link


@dataclass(frozen=True, slots=True)
class SetSetting:
    """Persist one live setting, a JSON value (InvalidInput); None removes it."""

    name: str
    value: Any


Change: TypeAlias = Put | Erase | Touch | AddLink | DropLink | SetSetting
