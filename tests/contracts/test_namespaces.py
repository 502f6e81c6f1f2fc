"""A store knows its namespaces: export walks them all."""

from __future__ import annotations

import io

import recollect.importers as importers
from recollect.domain.changes import Put
from recollect.domain.memory import Memory, Scope
from recollect.ports import Store


def test_stats_count_memories_by_namespace_and_export_leaves_none_out(store: Store) -> None:
    store.records.write(
        [
            Put(Memory(f"m{place}", f"text {place}", scope=Scope(namespace=name)))
            for place, name in enumerate(["default", "team", "team"])
        ]
    )
    assert dict(store.care.stats().namespaces) == {"default": 1, "team": 2}
    out = io.StringIO()
    report = importers.export(store, out)
    assert report.left_out == 0 and report.memories == 3
    assert all(f'"m{place}"' in out.getvalue() for place in range(3))
