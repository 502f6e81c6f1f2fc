"""What every tool shares: the engine, opened when it is first needed, and the namespace that nobody can leave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from recollect.domain.errors import NotFound
from recollect.domain.memory import DEFAULT_NAMESPACE, Memory, Scope

if TYPE_CHECKING:  # a client that only shakes hands does not wait for the engine's modules
    from recollect.engine import Engine


class Lazily:
    """An engine that is opened by the first call that needs it, once. A failed opening is tried again by the next."""

    def __init__(self, opening: Callable[[], Engine]) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def __call__(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._opening()
            return self._engine

    def close(self) -> None:
        """Release the store, if it was ever opened."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()


class Door:
    """One namespace of one memory. The namespace is the server's choice, never the model's."""

    def __init__(self, engine: Engine | Callable[[], Engine], namespace: str = DEFAULT_NAMESPACE) -> None:
        self._engine = engine
        self.namespace = namespace

    @property
    def engine(self) -> Engine:
        return self._engine() if callable(self._engine) else self._engine

    def scope(self, project: str | None, session: str | None) -> Scope:
        return Scope(self.namespace, project, session)

    @property
    def alone(self) -> bool:
        """Whether the store holds no other namespace: counts of the whole store would tell of it."""
        return set(self.engine.store.care.size().namespaces) <= {self.namespace}

    def own(self, *ids: str) -> list[Memory]:
        """These memories. One that is missing and one behind the wall of another namespace look the same."""
        found = {memory.id: memory for memory in self.engine.store.records.fetch(list(dict.fromkeys(ids)))}
        for id in ids:
            if id not in found or found[id].scope.namespace != self.namespace:
                raise NotFound(f"there is no memory {id}", "take ids from memory_search or memory_list")
        return [found[id] for id in ids]
