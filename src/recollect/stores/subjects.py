"""What a memory is about as a number, which an index can look up."""

from __future__ import annotations

import hashlib
import json

from recollect.domain.memory import Memory
from recollect.domain.subjects import Words, subject, subject_of


def subject_number(memory: Memory) -> int | None:
    """The number of what a memory is about; None where it does not say."""
    return number_of(memory.scope.namespace, subject(memory))


def stored_number(namespace: str, content: str, metadata: str) -> int | None:
    """The same from the columns of its row."""
    title = json.loads(metadata).get("title")
    return number_of(namespace, subject_of(content, title if isinstance(title, str) else ""))


def number_of(namespace: str, words: Words) -> int | None:
    """63 bits of a name within a namespace: two names share a number hardly ever, and no two tenants share any."""
    if not words:
        return None
    named = f"{namespace} {' '.join(words)}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little") >> 1
