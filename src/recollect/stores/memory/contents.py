"""What the memory store holds, behind one lock: rows, links, tombstones, settings and vectors."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from recollect.domain.memory import EPISODE, TURNS_BEFORE, Link, Memory, Scope, tombstone_hash
from recollect.domain.question import Filter
from recollect.ports import Graves, Matrix
from recollect.stores.memory.tokens import Tokens

LinkKey: TypeAlias = tuple[str, str, str]
VectorKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A memory with what is derived from it: `same_text`, gist, index tokens by text column, and unstemmed words."""

    memory: Memory
    same_text: str
    gist: int
    columns: tuple[list[str], ...]
    words: frozenset[str]
    apart: bool


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of one memory by one model."""

    matrix: Matrix
    passages: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Contents:
    """All that is stored. Rows stay in the order of their first insertion; vectors are known by (model, id)."""

    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    links: dict[LinkKey, Link] = field(default_factory=dict[LinkKey, Link])
    graves: Graves = field(default_factory=lambda: Graves(secrets.token_bytes(32), frozenset()))
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    vectors: dict[VectorKey, Vectors] = field(default_factory=dict[VectorKey, Vectors])
    failures: dict[VectorKey, int] = field(default_factory=dict[VectorKey, int])

    def copy(self) -> Contents:
        """A draft to change: the entries themselves are never changed in place, so a shallow copy is enough."""
        return Contents(
            dict(self.rows),
            dict(self.links),
            self.graves,
            dict(self.settings),
            dict(self.vectors),
            dict(self.failures),
        )

    def grave(self, namespace: str, content: str) -> tuple[str, bytes]:
        """What a tombstone for this text would say."""
        return namespace, tombstone_hash(content, namespace, self.graves.key)

    def drop_vectors(self, id: str) -> None:
        """Forget what every model made of this memory, failures included."""
        self.vectors = {key: kept for key, kept in self.vectors.items() if key[1] != id}
        self.failures = {key: kept for key, kept in self.failures.items() if key[1] != id}

    def turns(self, scope: Scope) -> list[Memory]:
        """The turns of a conversation in order."""
        found = [row.memory for row in self.rows.values() if row.memory.type == EPISODE and row.memory.scope == scope]
        return sorted(found, key=lambda turn: turn.created_at) if scope.session is not None else []

    def renew_followers(self, memory: Memory) -> None:
        """The turns that were embedded together with this turn wait again; who waits anyway goes on waiting."""
        order = [turn.id for turn in self.turns(memory.scope)]
        place = order.index(memory.id) if memory.id in order else len(order)
        embedded = {id for _, id in self.vectors}
        for id in order[place + 1 : place + 1 + TURNS_BEFORE]:
            if id in embedded:
                self.drop_vectors(id)

    def in_scope(self, filter: Filter) -> list[Memory]:
        """The memories that the filter lets through, in the order of their first insertion."""
        return [row.memory for row in self.rows.values() if filter.allows(row.memory)]


class Shelf:
    """The one lock, the contents it guards and the tokenizers, which must not be used from two threads at once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.contents = Contents()
        self.tokens = Tokens()
