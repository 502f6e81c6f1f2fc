"""What a store can be asked to change. One list of changes is one transaction: all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from recollect.domain.memory import Link, Memory


@dataclass(frozen=True, slots=True)
class Put:
    """Insert a memory or replace it whole; full text and the embedding outbox follow in the same transaction.

    expected_version: None inserts (Conflict if the id is there), a number replaces that version only.
    once: refuse with Conflict(existing_id) when the scope's namespace and project already hold the same text.
    A key that the namespace already holds is always a Conflict(existing_id). Texts behind a tombstone are refused
    with Conflict (existing_id None) unless `revive` is set.
    """

    memory: Memory
    expected_version: int | None = None
    once: bool = False
    revive: bool = False


@dataclass(frozen=True, slots=True)
class Erase:
    """Remove a memory with no remnants; a tombstone keeps the same text from coming back by import or capture."""

    id: str
    tombstone: bool = True


@dataclass(frozen=True, slots=True)
class Touch:
    """Memories were surfaced (count 0) or explicitly opened (count 1). Unknown ids are ignored."""

    ids: tuple[str, ...]
    accessed_at: datetime
    count: int = 0


@dataclass(frozen=True, slots=True)
class AddLink:
    """Idempotent. Both ends must exist (NotFound)."""

    link: Link


@dataclass(frozen=True, slots=True)
class DropLink:
    """Idempotent."""

    link: Link


@dataclass(frozen=True, slots=True)
class SetSetting:
    """Persist one live setting; None removes it."""

    name: str
    value: Any


Change: TypeAlias = Put | Erase | Touch | AddLink | DropLink | SetSetting
