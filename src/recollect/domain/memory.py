"""What is remembered: Memory, its Scope, Links between memories, and the Receipt of a write."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from recollect.domain.times import EPOCH, to_ms

DEFAULT_NAMESPACE = "default"

# Any such word is a type, in lower case; these are the usual ones.
TYPE = re.compile(r"[^\W_][\w.-]{0,63}")
KNOWN_TYPES = ("lesson", "decision", "gotcha", "pattern", "preference", "fact", "episode")

# Verbatim turns of a conversation: two equal ones are two events, never one fact said twice.
EPISODE = "episode"

# The vector of a turn is made with so many turns before it: when one of them comes, changes or goes, it is made again.
TURNS_BEFORE = 2

MAX_TAGS = 64
MAX_TAG_BYTES = 128

LINK_TYPES = ("supersedes", "resolved-by", "part-of", "see-also")

# `source` names what `target` is about, as a model read them. Nobody else makes this link, so it can be made anew or
# dropped as a whole; it neither redirects nor hides anything.
MENTIONS = "mentions"


def content_hash(content: str) -> str:
    """Names one exact text, so that vectors made from an older one are recognised: SHA-256 of its UTF-8, in hex."""
    return hashlib.sha256(content.encode()).hexdigest()


def same_text(content: str) -> str:
    """The form in which two texts count as the same: NFC, case folded, runs of white space as one space."""
    if not content.isascii():
        return " ".join(unicodedata.normalize("NFC", content).casefold().split())
    folded = content.lower()
    single = folded.isprintable() and "  " not in folded and folded.strip() == folded
    return folded if single else " ".join(folded.split())  # to look costs less than to split


def tombstone_hash(content: str, namespace: str, secret: bytes) -> bytes:
    """What is left of an erased text: a keyed hash that tells the text's return and nothing else."""
    name = namespace.encode()
    data = len(name).to_bytes(4, "little") + name + same_text(content).encode()
    return hashlib.blake2b(data, digest_size=20, key=secret).digest()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a memory belongs, and where a question looks. The namespace is the wall between tenants."""

    namespace: str = DEFAULT_NAMESPACE
    """Up to 128 of a-z 0-9 . _ / - with a letter or digit first."""
    project: str | None = None
    """In a question: None means all projects."""
    session: str | None = None
    """The conversation it comes from. In a question: None means all sessions."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing remembered. Times are UTC with milliseconds; confidence and importance lie in [0, 1]."""

    id: str
    """Opaque; sorts by the time it was made."""
    content: str
    type: str = "fact"
    tags: tuple[str, ...] = ()
    confidence: float = 0.8
    """How sure its writer was."""
    importance: float = 0.5
    scope: Scope = Scope()
    source: str = ""
    """Who wrote it, in words."""
    key: str | None = None
    """What its writer knows it by; once in a namespace."""
    created_at: datetime = EPOCH
    updated_at: datetime = EPOCH
    accessed_at: datetime = EPOCH
    """When it was surfaced last."""
    access_count: int = 0
    """How often it was used: recalled with `explicit`, or expanded."""
    pinned: bool = False
    """It neither decays nor is merged away."""
    sensitive: bool = False
    """No model sees it: it has no vectors and stands in no block for a prompt."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: int = 1
    """One more with every change."""


def as_turn(type: str, scope: Scope, created_at_ms: int) -> tuple[Scope, int] | None:
    """The place of a memory in its conversation: one that leaves it was made into vectors with those it was among."""
    return (scope, created_at_ms) if type == EPISODE and scope.session is not None else None


def turn_of(memory: Memory) -> tuple[Scope, int] | None:
    """The place of this memory in its conversation; None if it has none."""
    return as_turn(memory.type, memory.scope, to_ms(memory.created_at))


@dataclass(frozen=True, slots=True)
class Link:
    """A typed arrow between two memories: `source` supersedes / is resolved-by / … `target`."""

    source: str
    type: str
    target: str
    created_at: datetime = EPOCH


Action = Literal["added", "merged", "skipped", "redacted"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a write: what happened, to which memory, and why."""

    id: str
    """The new memory, or the one that stands."""
    action: Action
    """added · merged: what stands was strengthened · skipped: nothing changed · redacted: added, a secret hidden."""
    duplicate_of: str | None = None
    reason: str = ""
