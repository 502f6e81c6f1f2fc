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

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        found: dict[str, list[tuple[int, str]]] = {}
        for asked in ids:
            with self._shelf.lock:
                row = self._shelf.contents.rows.get(asked)
                order = [turn.id for turn in self._shelf.contents.turns(row.memory.scope)] if row is not None else []
            if asked not in order:
                continue
            place = order.index(asked)
            around = range(max(0, place - before), min(len(order), place + after + 1))
            turns_around = [(other - place, order[other]) for other in around if other != place]
            if turns_around:
                found[asked] = turns_around
        return found
