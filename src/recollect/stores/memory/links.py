"""Links by looking at every link."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain.memory import Link
from recollect.stores.memory.contents import Shelf


class MemoryLinks:
    """The LinkIndex port."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def links(self, ids: Sequence[str]) -> list[Link]:
        asked = set(ids)
        with self._shelf.lock:
            everything = list(self._shelf.contents.links.values())
        touching = [link for link in everything if link.source in asked or link.target in asked]
        return sorted(touching, key=lambda link: (link.created_at, link.source, link.type, link.target))
