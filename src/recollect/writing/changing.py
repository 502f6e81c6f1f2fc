"""Changing what is remembered: update under compare-and-set, forget without remnants, link without circles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from recollect.domain.changes import AddLink, Erase, Put
from recollect.domain.errors import Conflict, Corrupt, InvalidInput, NotFound
from recollect.domain.memory import LINK_TYPES, Link, Memory, Scope, same_text
from recollect.domain.question import name_of
from recollect.ports import LinkIndex, Records, Store
from recollect.stages import similarity
from recollect.writing.drafts import Draft, WritePolicy, as_moment, to_memory

MAX_IDS = 1000
MAX_SUPERSEDED = 1000
MOST_TWINS = 10_000
"""So many are looked for in front of or behind a memory that is forgotten."""
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
    given: dict[str, Any] = {"content": "unchanged", "scope": Scope(existing.scope.namespace), **changes}
    checked, _ = to_memory(Draft(**given), id=id, now=now, policy=policy)
    if checked.scope.namespace != existing.scope.namespace:
        raise InvalidInput("a memory never changes its namespace", "export it and import it there", "scope.namespace")
    changed = replace(existing, **{name: getattr(checked, name) for name in changes})
    if changed == existing:
        return existing
    changed = replace(changed, updated_at=as_moment(now), version=existing.version + 1)
    store.records.write([Put(changed, expected_version=existing.version, revive="content" in changes)])
    return changed


def forget(store: Store, ids: Sequence[str], version: int | None = None) -> list[str]:
    """Erase these memories and what was merged into them, all or none (NotFound); tells the ids of what is gone.

    Their texts do not come back by import or capture. A version that says something else was not asked for: it stays,
    behind whatever else supersedes it. `version` is that of the one memory as it was read (Conflict if it has changed).
    """
    if not all(isinstance(id, str) for id in ids):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("an id is a text", "forget(a, b), or forget(*ids) for a list", "ids")
    wanted = list(dict.fromkeys(ids))
    if version is not None and len(wanted) != 1:
        raise InvalidInput("a version belongs to one memory", "forget the others in calls of their own", "version")
    if len(wanted) > MAX_IDS:
        raise InvalidInput(f"{len(wanted)} ids are more than {MAX_IDS}", "forget them in several calls", "ids")
    if not wanted:
        return []
    bridges: list[AddLink] = []
    if store.links is not None:
        try:
            wanted = _with_twins(store.records, store.links, wanted)
            bridges = _bridges(store.links, wanted)
        except Corrupt:  # what is damaged can be forgotten too
            pass
    versions = {} if version is None else {ids[0]: version}
    store.records.write([*bridges, *(Erase(id, expected_version=versions.get(id)) for id in wanted)])
    return wanted


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


def _with_twins(records: Records, links: LinkIndex, ids: Sequence[str]) -> list[str]:
    """These memories and those they supersede that say the same, which would be found again without them."""
    gone = dict.fromkeys(ids)
    ring = list(ids)
    while ring:
        pairs = [(one.source, one.target) for one in links.links(ring, ("supersedes",), MOST_TWINS)]
        pairs = [(newer, older) for newer, older in pairs if newer in gone and older not in gone]
        held = {one.id: one.content for one in records.fetch(list({id for pair in pairs for id in pair}))}
        known = [pair for pair in pairs if held.keys() >= set(pair)]
        ring = list(dict.fromkeys(older for newer, older in known if _say_the_same(held[newer], held[older])))
        gone.update(dict.fromkeys(ring))
    return list(gone)


def _say_the_same(one: str, other: str) -> bool:
    """As generously as texts are ever merged."""
    return same_text(one) == same_text(other) or similarity.compare(one, other, loose=True).same


def _bridges(links: LinkIndex, gone: Sequence[str]) -> list[AddLink]:
    """What stands over a memory that goes takes over what that one superseded: no older version may come back."""
    found = links.links(gone, ("supersedes",), MOST_TWINS)
    away = set(gone)
    for id in away & {one.source for one in found} & {one.target for one in found}:
        above = [one for one in found if one.target == id]
        below = [one.target for one in found if one.source == id]
        found += [replace(one, target=older) for one in above for older in below if one.source != older]
    return [AddLink(one) for one in dict.fromkeys(found) if not away & {one.source, one.target}]


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
        found = links.links(waiting, ("supersedes",), MAX_SUPERSEDED)
        reached = {link.target for link in found if link.source in waiting}
        if older in reached:
            return True
        waiting = sorted(reached - seen)
        seen |= reached
    return False
