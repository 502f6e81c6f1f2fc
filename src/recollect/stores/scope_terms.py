"""Where a memory belongs and what it is, as terms of a full-text index: a search of one scope costs what it holds."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache

from recollect.domain.memory import Memory, Scope
from recollect.stores.tokens import MARK


def scope_text(memory: Memory) -> str:
    """The scope column of one memory."""
    return terms_of(memory.scope, memory.type, memory.tags)


def terms_of(scope: Scope, type: str, tags: tuple[str, ...]) -> str:
    """The same from the parts that it follows from."""
    return _kind(scope.namespace, type, tags) + _place(scope.namespace, scope.project, scope.session)


@lru_cache(maxsize=10_000)
def _kind(namespace: str, type: str, tags: tuple[str, ...]) -> str:
    tokens = [scope_token("namespace", namespace, ""), scope_token("type", namespace, type)]
    return " ".join([*tokens, *(scope_token("tag", namespace, tag) for tag in dict.fromkeys(tags))])


@lru_cache(maxsize=10_000)
def _place(namespace: str, project: str | None, session: str | None) -> str:
    named = (("project", project), ("session", session))
    return "".join([" " + scope_token(kind, namespace, value) for kind, value in named if value is not None])


@lru_cache(maxsize=10_000)
def scope_token(kind: str, namespace: str, value: str) -> str:
    """The scope column's token for one fact about a memory. It names the namespace too, so it implies it.

    40 bits are enough: what a namesake lets through, the check on the memories' own columns keeps out. The digit at the
    end keeps the stemmer away.
    """
    data = json.dumps([kind, namespace, value]).encode()
    hashed = base64.b32encode(hashlib.blake2b(data, digest_size=5).digest()).decode().lower()
    return f"{MARK}{hashed}0"
