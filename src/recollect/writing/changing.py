"""Changing what is remembered: update under compare-and-set, forget without remnants, link without circles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from recollect.domain.changes import AddLink, Erase, Put
from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.memory import LINK_TYPES, Link, Memory
from recollect.domain.question import name_of
from recollect.ports import LinkIndex, Store
from recollect.writing.drafts import Draft, WritePolicy, as_moment, to_memory

MAX_IDS = 1000
MAX_SUPERSEDED = 1000
CHANGEABLE = tuple(one.name for one in fields(Draft) if one.name != "captured")


def update(
    store: Store, id: str, *, now: datetime, policy: WritePolicy, version: int | None = None, **changes: Any
) -> Memory:
    """Change fields of a memory, checked like new ones; None for a key or project removes it.

    With `version` (or if somebody else writes meanwhile) another stored version is a Conflict and nothing changes.
    """
    unknown = sorted(set(changes) - set(CHANGEABLE))
    if unknown:
        raise InvalidInput(
            f"there is no field {unknown[0]!r} to change", f"allowed: {', '.join(CHANGEABLE)}", unknown[0]
        )
    existing = _existing(store, id)
    if version is not None and not isinstance(version, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("version must be a whole number", "take it from the memory as it was read", "version")
    if version is not None and version != existing.version:
        raise Conflict(
            f"memory {id} is at version {existing.version}, not {version}", "read it again and repeat the change", id
        )
    given: dict[str, Any] = {"content": "unchanged", "scope": existing.scope, **changes}
    checked, _ = to_memory(Draft(**given), id=id, now=now, policy=policy)
    if checked.scope.namespace != existing.scope.namespace:
        raise InvalidInput("a memory never changes its namespace", "export it and import it there", "scope.namespace")
    changed = replace(existing, **{name: getattr(checked, name) for name in changes})
    if changed == existing:
        return existing
    changed = replace(changed, updated_at=as_moment(now), version=existing.version + 1)
    store.records.write([Put(changed, expected_version=existing.version, revive="content" in changes)])
    return changed


def forget(store: Store, ids: Sequence[str]) -> int:
    """Erase these memories, all or none (NotFound); their texts do not come back by import or capture."""
    if not all(isinstance(id, str) for id in ids):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("an id is a text", "forget(a, b), or forget(*ids) for a list", "ids")
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > MAX_IDS:
        raise InvalidInput(f"{len(wanted)} ids are more than {MAX_IDS}", "forget them in several calls", "ids")
    if wanted:
        store.records.write([Erase(id) for id in wanted])
    return len(wanted)


def link(store: Store, source: str, type: str, target: str, *, now: datetime) -> Link:
    """Connect two memories of one namespace. Idempotent; a chain of supersedes never closes into a circle."""
    if type not in LINK_TYPES:
        raise InvalidInput(f"{str(type)[:40]!r} is not a link", f"allowed: {', '.join(LINK_TYPES)}", "type")
    if name_of(source, "source") == name_of(target, "target"):
        raise InvalidInput("a memory cannot be linked to itself", "give two different ids", "target")
    made = Link(source, type, target, as_moment(now))
    if type == "supersedes" and store.links is not None and _supersedes(store.links, target, source):
        raise InvalidInput(f"{target} supersedes {source} already", "remember anew what holds now", "target")
    store.records.write([AddLink(made)])
    return made


def _existing(store: Store, id: str) -> Memory:
    found = store.records.fetch([name_of(id)])
    if not found:
        raise NotFound(f"there is no memory {id}", "ids come from recall, list or remember")
    return found[0]


def _supersedes(links: LinkIndex, newer: str, older: str) -> bool:
    """Whether one memory supersedes another, directly or through others."""
    seen = {newer}
    waiting = [newer]
    while waiting and len(seen) <= MAX_SUPERSEDED:
        found = links.links(waiting)
        reached = {link.target for link in found if link.type == "supersedes" and link.source in waiting}
        if older in reached:
            return True
        waiting = sorted(reached - seen)
        seen |= reached
    return False
