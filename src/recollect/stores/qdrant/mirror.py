"""Keeping Qdrant like the store: at once where it can be, and by going round where something was missed.

A change that Qdrant could not take is kept in mind and tried again; a process that dies first leaves the rest to the
rounds, which compare everything on both sides, a bounded piece at a time.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from recollect.domain.errors import RecollectError, StoreUnavailable
from recollect.domain.memory import Memory
from recollect.domain.question import Filter
from recollect.ports import MARKS, Care, Finding, Records, VectorIndex
from recollect.stores.qdrant.points import PRINT, points
from recollect.stores.qdrant.server import Server

log = logging.getLogger(__name__)

PAGE = 500
MOST_REMEMBERED = 100_000

Drift = Counter[str]
KINDS = {
    "missing": "vectors are not in Qdrant",
    "stale": "vectors in Qdrant are of an older state",
    "left over": "vectors in Qdrant belong to nothing in the store",
}


class Mirror:
    """One store and its mirror."""

    def __init__(self, records: Records, vectors: VectorIndex, care: Care, server: Server) -> None:
        self._records = records
        self._vectors = vectors
        self._care = care
        self._server = server
        self._lock = threading.Lock()
        self._owed: set[str] = set()
        self._round: Iterator[Drift] | None = None
        self._going = threading.Lock()
        """Held by whoever goes the round."""

    def follow(self, ids: Sequence[str]) -> None:
        """These memories changed or went. What Qdrant cannot take now, or the store not give, is owed to it."""
        if not ids:
            return
        try:
            self._bring(ids)
        except RecollectError as error:
            log.warning("Qdrant is behind: %s", error)
            with self._lock:
                self._owed.update(list(ids)[: MOST_REMEMBERED - len(self._owed)])

    def forget(self, model: str) -> None:
        """A model's vectors went. What Qdrant cannot drop now is swept up by a round."""
        try:
            self._server.forget(model)
        except StoreUnavailable as error:
            log.warning("Qdrant is behind: %s", error)

    def step(self) -> dict[str, int]:
        """Pay what is owed, then go one piece of the round, unless somebody else is on it."""
        with self._lock:
            owed, self._owed = list(self._owed), set()
        self.follow(owed)
        healed = 0
        if self._going.acquire(blocking=False):
            try:
                healed = self._go_on()
            finally:
                self._going.release()
        return {"mirrored": len(owed) + healed}

    def _go_on(self) -> int:
        """One piece of the round, or the first of the next one; how much was healed."""
        self._round = self._round or self._walk(repair=True)
        try:
            piece = next(self._round, None)
        except RecollectError as error:
            log.warning("Qdrant is behind: %s", error)
            piece = None
        if piece is None:
            self._round = None
        return piece.total() if piece else 0

    def check(self, repair: bool) -> list[Finding]:
        """Compare everything on both sides."""
        drift: Drift = Counter()
        try:
            for piece in self._walk(repair):
                drift += piece
        except StoreUnavailable as error:
            return [Finding("qdrant-unreachable", f"{error}. {error.hint}")]
        except RecollectError as error:
            return [Finding("qdrant-unchecked", f"{error}. {error.hint}")]
        return [
            Finding(f"qdrant-{kind.replace(' ', '-')}", f"{count} {KINDS[kind]}", repaired=repair)
            for kind, count in sorted(drift.items())
        ]

    def _walk(self, repair: bool) -> Iterator[Drift]:
        for model in self._models():
            for memories in self._pages():
                yield self._compare(model, memories, repair)
        names = {self._server.collection(model): model for model in self._models()}
        for collection in self._server.collections():
            after: str | None = None
            while True:
                held, after = self._server.page(collection, after, PAGE)
                yield self._sweep(collection, names.get(collection), held, repair)
                if after is None:
                    break

    def _pages(self) -> Iterator[list[Memory]]:
        for namespace in self._care.size().namespaces:
            after: str | None = None
            while page := self._records.scan(Filter(namespace), "id", PAGE, after):
                yield page
                after = page[-1].id

    def _bring(self, ids: Sequence[str]) -> None:
        """Make Qdrant hold what the store holds of these memories, and nothing else of them."""
        for start in range(0, len(ids), PAGE):
            piece = list(ids[start : start + PAGE])
            self._server.drop_memories(piece)
            memories = self._records.fetch(piece)
            for model in self._models():
                self._compare(model, memories, repair=True)
            shown = {memory.id for memory in self._records.fetch(piece) if not memory.sensitive}
            gone = [memory.id for memory in memories if memory.id not in shown]
            if gone:  # erased or hidden meanwhile, and Qdrant may have been told before the points came
                self._server.drop_memories(gone)

    def _models(self) -> list[str]:
        """Those whose vectors are searched."""
        return [model for model in self._vectors.models() if not model.startswith(MARKS)]

    def _compare(self, model: str, memories: Sequence[Memory], repair: bool) -> Drift:
        by_id = {memory.id: memory for memory in memories}
        kept = self._vectors.stored(model, list(by_id))
        made = [point for embedded in kept for point in points(by_id[embedded.id], embedded)]
        held = self._server.prints(model, [str(point.id) for point in made]) if made else {}
        wrong = [point for point in made if held.get(str(point.id)) != (point.payload or {})[PRINT]]
        if repair:
            self._server.put(model, wrong)
        return Counter("stale" if str(point.id) in held else "missing" for point in wrong)

    def _sweep(self, collection: str, model: str | None, held: Sequence[tuple[str, str]], repair: bool) -> Drift:
        owners = sorted({owner for _, owner in held})
        kept = [] if model is None else self._vectors.stored(model, owners)
        by_id = {memory.id: memory for memory in self._records.fetch(owners)}
        right = {str(point.id) for one in kept if one.id in by_id for point in points(by_id[one.id], one)}
        over = [point for point, _ in held if point not in right]
        if over and repair:
            self._server.drop(collection, over)
        return Counter({"left over": len(over)}) if over else Counter()
