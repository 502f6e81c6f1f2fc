"""The memories themselves: reading them in every order, and applying changes to a draft that replaces the whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from recollect.domain.changes import Change
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import Memory
from recollect.domain.pages import Behind
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.ports import ScanOrder
from recollect.stores.gists import Finders, answers
from recollect.stores.memory.changes import apply, key_holder, texts_alike
from recollect.stores.memory.contents import Contents, Shelf
from recollect.stores.refusals import lost_page

# Ids ascend; times descend, and so do ids of equal times. The flag says whether the order is reversed.
ORDERS: dict[ScanOrder, tuple[Callable[[Memory], Any], bool]] = {
    "created_at": (lambda memory: (memory.created_at, memory.id), True),
    "accessed_at": (lambda memory: (memory.accessed_at, memory.id), True),
    "id": (lambda memory: memory.id, False),
}


class MemoryRecords:
    """The Records port."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def write(self, changes: Sequence[Change]) -> None:
        with self._shelf.lock:
            draft = self._shelf.contents.copy()
            for change in changes:
                apply(change, draft, self._shelf.tokens)
            self._shelf.contents = draft

    def fetch(self, ids: Sequence[str]) -> list[Memory]:
        rows = self._contents().rows
        return [_handed_out(rows[id].memory) for id in ids if id in rows]

    def scan(
        self, filter: Filter, order: ScanOrder = "created_at", limit: int = 100, after: str | Behind | None = None
    ) -> list[Memory]:
        if limit <= 0:
            return []
        contents = self._contents()
        place, newest_first = ORDERS[order]
        found = sorted(contents.in_scope(filter), key=place, reverse=newest_first)
        if after is not None:
            last = _page_end(contents, filter, order, after)
            found = [memory for memory in found if (place(memory) < last if newest_first else place(memory) > last)]
        return [_handed_out(memory) for memory in found[:limit]]

    def recent(self, filter: Filter, limit: int, embedded: bool) -> list[Hit]:
        contents = self._contents()
        with_vectors = {id for _, id in contents.vectors}
        found = [memory for memory in contents.in_scope(filter) if not embedded or memory.id in with_vectors]
        place, newest_first = ORDERS["accessed_at"]
        latest = sorted(found, key=place, reverse=newest_first)[: max(limit, 0)]
        return [Hit(memory.id, memory.accessed_at.timestamp()) for memory in latest]

    def lookup(
        self,
        namespace: str,
        *,
        key: str | None = None,
        content: str | None = None,
        project: str | None = None,
        session: str | None = None,
    ) -> Lookup:
        contents = self._contents()
        scopes = [row.memory.scope for row in contents.rows.values() if row.memory.scope.namespace == namespace]
        projects = {scope.project for scope in scopes if session is not None and scope.session == session}
        (found,) = self.lookups(namespace, [Wanted(key, content, project)])
        return replace(found, session_projects=tuple(sorted(project for project in projects if project is not None)))

    def lookups(self, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
        contents = self._contents()

        def holders(keys: Sequence[str]) -> dict[str, str]:
            return {key: id for key in keys if (id := key_holder(contents, namespace, key)) is not None}

        def texts(asked: Sequence[tuple[int, int, str | None]]) -> Iterator[tuple[int, str, str, str | None, str]]:
            for place, wanted, project in asked:
                for id, type, other, text in texts_alike(contents, namespace, project, wanted):
                    yield place, id, type, other, text

        def buried(asked: Sequence[tuple[int, str]]) -> set[int]:
            return {place for place, text in asked if contents.grave(namespace, text) in contents.graves.hashes}

        return answers(wanted, Finders(holders, texts, buried))

    def _contents(self) -> Contents:
        with self._shelf.lock:
            return self._shelf.contents


def _page_end(contents: Contents, filter: Filter, order: ScanOrder, after: str | Behind) -> Any:
    """The place of the last memory of the previous page."""
    if isinstance(after, Behind):
        return after.id if order == "id" else (after.at, after.id)
    if order == "id":
        return after
    row = contents.rows.get(after)
    if row is None or row.memory.scope.namespace != filter.namespace:
        raise lost_page(after)
    return ORDERS[order][0](row.memory)


def _handed_out(memory: Memory) -> Memory:
    """A memory whose metadata the caller may change without changing the store."""
    return replace(memory, metadata=copy.deepcopy(dict(memory.metadata)))
