"""Remembers the vectors of the last queries: an agent asks the same thing again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from recollect.ports import Vector


class QueryCache:
    """Least recently used out first. In memory only; failures are not kept."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def vector(self, text: str, compute: Callable[[], Vector]) -> Vector:
        """The vector of this query, computed if it is not here; two threads may compute the same one."""
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
                return known
        vector = compute()
        # Shared by all who ask: nobody may change it.
        vector.flags.writeable = False
        with self._lock:
            self._vectors[text] = vector
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
        return vector
