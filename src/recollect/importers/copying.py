"""copy: make one store hold exactly what another holds, whatever their engines are.

Going over both page by page and writing only what differs makes the copy resumable: whatever an interrupted run has
written is found equal by the next. A mark in the target allows that, and keeps a store with a life of its own from
being overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put, SetSetting
from recollect.domain.errors import Conflict, Corrupt, RecollectError
from recollect.domain.memory import Link, Memory
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store
from recollect.upkeep.consolidation import MARK as CONSOLIDATED
from recollect.upkeep.leaving import all_leaving

PAGE = 500
MARK = "copied_from"
"""The live setting that marks a target while it is being filled; behind it the tenant that a target is bound to."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What the target holds now, and how much of it this run had to write."""

    memories: int
    links: int
    vectors: int
    tombstones: int
    written: int


def copy_store(source: Store, target: Store, *, progress: Progress | None = None) -> CopyReport:
    """Fill the target, then compare everything. Conflict: the target is in use. Corrupt: the two are not equal.

    `progress` is told the step, what is done of it and the total. A target that is bound to a tenant keeps the live
    settings, which are those of all tenants.
    """
    say = progress or _silent
    mark = MARK if target.tenant is None else f"{MARK} {target.tenant}"
    _claim(target, mark, hashlib.sha256(source.care.graves().key).hexdigest()[:16])
    try:
        target.care.bury(source.care.graves())  # if that is refused, before hours of work
        written = _copy_memories(source, target, say)
    except RecollectError:
        if _is_empty(target):
            target.records.write([SetSetting(mark, None)])
        raise
    written += _copy_links(source, target, say)
    written += _copy_vectors(source, target, say)
    target.care.bury(source.care.graves())
    _copy_settings(source, target)
    _verify(source, target, say)
    target.records.write([SetSetting(mark, None)])
    stats = target.care.stats()
    return CopyReport(stats.memories, stats.links, stats.vectors, stats.tombstones, written)


def _silent(_step: str, _done: int, _total: int) -> None:
    return None


def _claim(target: Store, mark: str, origin: str) -> None:
    marked = target.care.settings().get(mark)
    if marked != origin and (marked is not None or not _is_empty(target)):
        raise Conflict("the target is not empty", "copy into a new store; an interrupted copy goes on by itself")
    target.records.write([SetSetting(mark, origin)])


def _is_empty(target: Store) -> bool:
    stats = target.care.stats()
    return not stats.memories and not stats.tombstones


def _pages(store: Store, step: str, say: Progress) -> Iterator[list[Memory]]:
    size = store.care.size()
    done = 0
    for namespace in sorted(size.namespaces):
        after: str | None = None
        while page := store.records.scan(Filter(namespace), "id", PAGE, after):
            yield page
            done, after = done + len(page), page[-1].id
            say(step, done, max(done, size.memories))


def _copy_memories(source: Store, target: Store, say: Progress) -> int:
    """Put what is missing, replace what differs, take away what the source no longer has."""
    written = 0
    for page in _pages(source, "memories", say):
        held = {memory.id: memory for memory in target.records.fetch([memory.id for memory in page])}
        wanted = [memory for memory in page if held.get(memory.id) != memory]
        if wanted:  # a plain replacement would count its version up
            _replace(target, {memory.id for memory in wanted} & held.keys(), wanted)
        written += len(wanted)
    if target.care.size().memories != source.care.size().memories:
        for page in _pages(target, "memories gone", say):
            held_there = {memory.id for memory in source.records.fetch([memory.id for memory in page])}
            gone = [Erase(memory.id, tombstone=False) for memory in page if memory.id not in held_there]
            if gone:
                target.records.write(gone)
    return written


def _replace(target: Store, gone: set[str], wanted: Sequence[Memory]) -> None:
    """Erase some memories and put others, in one transaction. Where an interrupted run has given a key to a memory that
    has lost it since, that one goes too: if the source still has it, it comes back with its own page."""
    while True:
        erasures = [Erase(id, tombstone=False) for id in sorted(gone)]
        try:
            target.records.write([*erasures, *(Put(memory, revive=True, apart=True) for memory in wanted)])
            return
        except Conflict as error:
            if error.existing_id is None or error.existing_id in gone:
                raise
            gone = {*gone, error.existing_id}


def _links(store: Store, page: Sequence[Memory]) -> set[Link]:
    """The links that start on this page."""
    ids = {memory.id for memory in page}
    return set() if store.links is None else set(all_leaving(store.links, sorted(ids)))


def _copy_links(source: Store, target: Store, say: Progress) -> int:
    written = 0
    for page in _pages(source, "links", say):
        wanted, held = _links(source, page), _links(target, page)
        changes: list[Change] = [DropLink(link) for link in held - wanted]
        changes += [AddLink(link) for link in sorted(wanted - held, key=_order)]
        written += len(wanted - held)
        if changes:
            target.records.write(changes)
    return written


def _order(link: Link) -> tuple[object, ...]:
    return link.created_at, link.source, link.type, link.target


def _vectors(store: Store, model: str, page: Sequence[Memory]) -> dict[str, Embedded]:
    found = [] if store.vectors is None else store.vectors.stored(model, [memory.id for memory in page])
    return {one.id: one for one in found}


def _models(store: Store) -> list[str]:
    return [] if store.vectors is None else store.vectors.models()


def _copy_vectors(source: Store, target: Store, say: Progress) -> int:
    written = 0
    for model in _models(target):  # an interrupted run may have brought what the source has dropped since
        if target.vectors is not None and _holds_strays(source, target, model, say):
            target.vectors.forget(model)
    for model in _models(source) if target.vectors is not None else []:
        for page in _pages(source, "vectors", say):
            wanted, held = _vectors(source, model, page), _vectors(target, model, page)
            fresh = [one for id, one in wanted.items() if id not in held or not _equal(one, held[id])]
            written += len(fresh)
            if fresh and target.vectors is not None:
                target.vectors.put(model, fresh)
    return written


def _holds_strays(source: Store, target: Store, model: str, say: Progress) -> bool:
    """Whether the target has vectors of this model that the source no longer has, or has in another length."""
    if model not in _models(source):
        return True
    for page in _pages(source, "vectors", say):
        wanted, held = _vectors(source, model, page), _vectors(target, model, page)
        if any(id not in wanted or _matrix(wanted[id]).shape[1] != _matrix(held[id]).shape[1] for id in held):
            return True
    return False


def _equal(one: Embedded, other: Embedded) -> bool:
    return one.passages == other.passages and np.array_equal(_matrix(one), _matrix(other))


def _matrix(one: Embedded) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert one.vectors is not None
    return one.vectors


def _settings(store: Store) -> dict[str, Any]:
    return {name: value for name, value in store.care.settings().items() if not name.startswith((MARK, CONSOLIDATED))}


def _copy_settings(source: Store, target: Store) -> None:
    if target.tenant is not None:
        return
    wanted = _settings(source)
    gone = [SetSetting(name, None) for name in _settings(target) if name not in wanted]
    target.records.write([*gone, *(SetSetting(name, value) for name, value in wanted.items())])


def _verify(source: Store, target: Store, say: Progress) -> None:
    """Everything once more, read from both sides."""
    for page in _pages(source, "check", say):
        same = target.records.fetch([memory.id for memory in page]) == page
        same = same and _links(source, page) == _links(target, page)
        for model in _models(source) if same and target.vectors is not None else []:
            wanted, held = _vectors(source, model, page), _vectors(target, model, page)
            same = same and wanted.keys() == held.keys() and all(_equal(wanted[id], held[id]) for id in wanted)
        if not same:
            raise _different()
    ours, theirs = target.care.stats(), source.care.stats()
    same = (ours.memories, ours.links) == (theirs.memories, theirs.links)
    same = same and (target.tenant is not None or _settings(source) == _settings(target))
    buried, graves = target.care.graves(), source.care.graves()
    if not same or buried.hashes != graves.hashes or (graves.hashes and buried.key != graves.key):
        raise _different()


def _different() -> Corrupt:
    return Corrupt(
        "the copy is not equal to the source",
        "if the source was written to meanwhile, run the same command again; if it stays so, copy into a new store",
    )
