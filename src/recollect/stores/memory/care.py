"""Care for a store that has no file: it can be counted, and there is nothing to mend."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from recollect.domain.errors import InvalidInput
from recollect.ports import Finding, Graves, StoreSize, StoreStats
from recollect.stores.graves import joined
from recollect.stores.memory.contents import Contents, Shelf


class MemoryCare:
    """The Care port."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def size(self) -> StoreSize:
        with self._shelf.lock:
            return _size(self._shelf.contents)

    def stats(self) -> StoreStats:
        with self._shelf.lock:
            contents = self._shelf.contents
        memories, size = [row.memory for row in contents.rows.values()], _size(contents)
        projects = [memory.scope.project for memory in memories]
        return StoreStats(
            kind="memory",
            location=":memory:",
            memories=size.memories,
            tombstones=len(contents.graves.hashes),
            links=len(contents.links),
            vectors=sum(len(vectors.matrix) for vectors in contents.vectors.values()),
            bytes=size.bytes,
            schema_version=0,
            engine_version=apsw.sqlite_lib_version(),
            types=dict(Counter(memory.type for memory in memories)),
            projects=dict(Counter(project for project in projects if project is not None)),
            namespaces=size.namespaces,
        )

    def check(self, repair: bool = False) -> list[Finding]:  # noqa: ARG002 - nothing derived is kept apart
        return []

    def backup(self, path: Path) -> None:
        raise InvalidInput(
            f"a store in memory cannot be copied to {path.name}: it has no file", "export it as JSON lines instead"
        )

    def tidy(self) -> dict[str, int]:
        return {}

    def settings(self) -> dict[str, Any]:
        with self._shelf.lock:
            return copy.deepcopy(self._shelf.contents.settings)

    def graves(self) -> Graves:
        with self._shelf.lock:
            return self._shelf.contents.graves

    def bury(self, graves: Graves) -> None:
        with self._shelf.lock:
            draft = self._shelf.contents.copy()
            draft.graves = joined(draft.graves, graves)
            self._shelf.contents = draft


def _size(contents: Contents) -> StoreSize:
    memories = [row.memory for row in contents.rows.values()]
    return StoreSize(
        dict(Counter(memory.scope.namespace for memory in memories)),
        sum(len(memory.content.encode()) for memory in memories),
    )
