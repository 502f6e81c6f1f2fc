"""mem0: what Memory.get_all() or a client export gives: {"results": [{id, memory, …}]}, the list, or lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from recollect.domain.memory import Scope
from recollect.importers.lines import as_list, as_object, as_text, as_time, json_entries
from recollect.importers.report import Problem
from recollect.writing import Draft

KEPT = ("user_id", "agent_id", "app_id", "actor_id", "role", "hash", "updated_at")


def sniff(_name: str, head: str) -> bool:
    return head.lstrip()[:1] in ("{", "[") and '"memory"' in head and ('"results"' in head or '"user_id"' in head)


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for place, entry in _entries(stream):
        if isinstance(entry, Problem):
            yield entry
            continue
        item = as_object(entry)
        content = as_text(item.get("memory")) or as_text(item.get("data"))
        if not content.strip():
            yield Problem(place, "an entry without a memory")
            continue
        metadata: dict[str, Any] = {"mem0": {key: item[key] for key in KEPT if item.get(key) is not None}}
        metadata.update(as_object(item.get("metadata")))
        id = as_text(item.get("id"))
        yield Draft(
            content,
            tags=[tag for tag in as_list(item.get("categories")) if isinstance(tag, str)][:64],
            scope=Scope(session=as_text(item.get("run_id")) or None),
            key=f"mem0:{id}" if id else None,
            created_at=as_time(item.get("created_at")),
            metadata=metadata,
        )


def _entries(stream: TextIO) -> Iterator[tuple[int, Any]]:
    for place, entry in json_entries(stream):
        results = as_object(entry).get("results")
        yield from enumerate(as_list(results), start=1) if isinstance(results, list) else [(place, entry)]
