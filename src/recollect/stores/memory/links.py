"""Links by looking at every link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from recollect.domain.memory import Link
from recollect.ports import MOST_LINKS
from recollect.stores.memory.contents import Shelf


class MemoryLinks:
    """The LinkIndex port."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def links(self, ids: Sequence[str], types: Sequence[str] = (), limit: int = MOST_LINKS) -> list[Link]:
        asked = set(ids)
        told: dict[Link, None] = {}
        seen: Counter[tuple[str, str, str]] = Counter()
        wanted = [link for link in self._all() if not types or link.type in types]
        for link in sorted(wanted, key=_by_time, reverse=True):
            for end, id in (("source", link.source), ("target", link.target)):
                seen[end, id, link.type] += 1
                if id in asked and seen[end, id, link.type] <= limit:
                    told[link] = None
        return sorted(told, key=_by_time)

    def leaving(self, id: str, after: Link | None, limit: int) -> list[Link]:
        behind = ("", "") if after is None else (after.type, after.target)
        own = [link for link in self._all() if link.source == id and (link.type, link.target) > behind]
        return sorted(own, key=lambda link: (link.type, link.target))[: max(limit, 0)]

    def _all(self) -> list[Link]:
        with self._shelf.lock:
            return list(self._shelf.contents.links.values())

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


def _by_time(link: Link) -> tuple[datetime, str, str, str]:
    return link.created_at, link.source, link.type, link.target
