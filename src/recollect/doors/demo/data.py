"""The demo's memories: `memories.jsonl`, one memory or link a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from recollect.domain.changes import AddLink, Change, Put
from recollect.domain.memory import Link, Memory, Scope

# The demo always takes place on the same day, so that ages, decay and ranks stay as they are.
NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


def changes() -> list[Change]:
    """Everything the demo writes, memories before the links between them."""
    text = (resources.files("recollect.doors.demo") / "memories.jsonl").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
    memories: list[Change] = [Put(_memory(row["memory"])) for row in rows if "memory" in row]
    links: list[Change] = [AddLink(_link(row["link"])) for row in rows if "link" in row]
    return memories + links


def _memory(row: dict[str, Any]) -> Memory:
    created_at = datetime.fromisoformat(row["created_at"])
    return Memory(
        id=row["id"],
        content=row["content"],
        type=row["type"],
        tags=tuple(row["tags"]),
        confidence=row["confidence"],
        importance=row["importance"],
        scope=Scope(project=row["project"]),
        source="demo",
        created_at=created_at,
        updated_at=created_at,
        accessed_at=datetime.fromisoformat(row["accessed_at"]),
        access_count=row["access_count"],
        pinned=row.get("pinned", False),
    )


def _link(row: dict[str, str]) -> Link:
    return Link(row["source"], row["type"], row["target"], NOW)
