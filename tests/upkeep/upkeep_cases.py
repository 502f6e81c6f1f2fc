"""Memories and embedders for the upkeep tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from recollect.domain.changes import Put
from recollect.domain.errors import ModelUnavailable
from recollect.domain.memory import Memory
from recollect.encoders.fake import FakeEmbedder
from recollect.ports import Matrix, Store

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def keep(store: Store, *contents: str, **fields: Any) -> list[str]:
    """Store texts as they are, as m001, m002, … after what is there already."""
    held = store.care.stats().memories
    made: list[Memory] = []
    for number, content in enumerate(contents, start=held + 1):
        times = dict.fromkeys(("created_at", "updated_at", "accessed_at"), NOW)
        made.append(Memory(f"m{number:03}", content, **{**times, **fields}))
    store.records.write([Put(memory) for memory in made])
    return [memory.id for memory in made]


def get(store: Store, id: str) -> Memory:
    return store.records.fetch([id])[0]


class Alike(FakeEmbedder):
    """Every text means the same: only the guard keeps memories apart."""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows[:, 0] = 1.0
        return rows


class Choking(FakeEmbedder):
    """Refuses every batch that holds a text with `poison` in it; `down` refuses everything."""

    def __init__(self, poison: str = "", down: bool = False, error: type[Exception] = ModelUnavailable) -> None:
        super().__init__()
        self.poison = poison
        self.down = down
        self.error = error
        self.calls = 0

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        if self.down or (self.poison and any(self.poison in text for text in texts)):
            raise self.error("no")
        return super().embed_documents(texts)


class Nonsense(FakeEmbedder):
    """Answers wrongly in the given way."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = super().embed_documents(texts)
        if self.way == "nan":
            rows[0, 0] = np.nan
        elif self.way == "infinite":
            rows[0, 0] = np.inf
        elif self.way == "short":
            return rows[:-1]
        elif self.way == "narrow":
            return rows[:, :-1]
        return rows
