"""Entries that are edited over there: one that comes again with another text is changed here, in place."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.stages import similarity
from recollect.writing import Draft, WritePolicy, update
from recollect.writing.duplicates import standing

DIGEST = "digest"
"""Where the metadata tell what was read, so that what was corrected here since stands until it is edited there."""


def named(*parts: Any) -> str:
    """A short name for what is known by these parts."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def digested(draft: Draft, memory: Memory) -> Draft:
    """The draft with the digest of what it says, once its secrets are hidden; how its file was called is no part."""
    given = "" if draft.created_at is None else memory.created_at.isoformat()
    told = {name: value for name, value in memory.metadata.items() if name != "path"}
    digest = named(memory.content, memory.type, memory.tags, json.dumps(told, sort_keys=True), given)
    return replace(draft, metadata={**draft.metadata, DIGEST: digest})


def renew(
    store: Store, draft: Draft, content: str, origin: str, now: datetime, policy: WritePolicy
) -> Memory | Literal["skipped"] | None:
    """An entry that was imported before: the memory as it was changed, or that it was skipped; None: it is new.

    origin: how the source of a memory begins that was imported from there. Others that hold the key were there before,
    or something stands before them: they are not changed, and lose the key.
    """
    found = store.records.lookup(draft.scope.namespace, key=draft.key, content=content, project=draft.scope.project)
    held = store.records.fetch([found.key_id]) if found.key_id is not None else []
    if not held:
        return None
    holder = held[0]
    before, after = holder.metadata.get(DIGEST), draft.metadata[DIGEST]
    unchanged = before == after if before is not None else similarity.same_fact(holder.content, content)
    if unchanged or found.buried:
        return "skipped"
    if not holder.source.startswith(origin) or standing(store, holder).id != holder.id:
        update(store, holder.id, now=now, policy=policy, key=None)
        return None
    changes = {name: getattr(draft, name) for name in ("content", "type", "tags", "metadata")}
    if draft.created_at is not None:
        changes["created_at"] = draft.created_at
    return update(store, holder.id, now=now, policy=policy, **changes)
