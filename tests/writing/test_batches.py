"""Many drafts at once end as they would one by one: the same memories, strengthened alike, with the same receipts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from writing_pairs import DIFFERENT, SAME

from recollect.domain.memory import Memory, Receipt, Scope
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores.sqlite import open_sqlite
from recollect.writing import Draft, WritePolicy, remember, remember_many

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
TEXTS = sorted({text for pair in (*SAME, *DIFFERENT) for text in pair[:2]})


def drafts(seed: int, size: int) -> list[Draft]:
    """Few texts and scopes, so that many of them meet their twins, in the batch and in the store."""
    chance = random.Random(seed)
    texts = chance.sample(TEXTS, 30)
    return [
        Draft(
            chance.choice(texts) if chance.random() < 0.8 else f"{chance.choice(texts)} {chance.choice('XYZ')}",
            type=chance.choice(["fact", "fact", "decision", "episode"]),
            tags=chance.sample(["a", "b", "c"], chance.randint(0, 2)),
            confidence=chance.choice([0.5, 0.8, 0.9]),
            scope=Scope(project=chance.choice([None, "p"]), session=chance.choice([None, None, None, "s"])),
            key=chance.choice([None, None, None, f"k{chance.randint(0, 9)}"]),
            sensitive=chance.random() < 0.1,
        )
        for _ in range(size)
    ]


def numbered() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"m{next(numbers):03}"


def outcome(store: Store, receipts: list[Receipt]) -> tuple[list[tuple[str, str, str | None]], list[Memory]]:
    kept = store.records.scan(Filter(namespace="default"), "id", 1000)
    # A batch writes a memory once, however often it was confirmed, so versions differ.
    return [(one.id, one.action, one.duplicate_of) for one in receipts], [
        Memory(**{name: getattr(one, name) for name in one.__slots__ if name != "version"}) for one in kept
    ]


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_ends_as_its_drafts_would_one_by_one(tmp_path: Path, seed: int) -> None:
    some, policy = drafts(seed, 100), WritePolicy()
    together = open_sqlite(tmp_path / "together.db")
    apart = open_sqlite(tmp_path / "apart.db")
    many = remember_many(together, some, new_id=numbered(), now=NOW, policy=policy, batch=20)
    new_id = numbered()
    single = [remember(apart, draft, id=new_id(), now=NOW, policy=policy) for draft in some]
    assert outcome(together, many) == outcome(apart, single)
    assert {receipt.action for receipt in many} >= {"added", "merged"}
    together.close()
    apart.close()
