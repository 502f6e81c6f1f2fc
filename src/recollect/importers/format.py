"""Our own exchange format, version 1: one JSON object a line, keys sorted, UTF-8, lines ended by \\n.

The first line is the header. Memories follow by namespace and id, then links. The same store gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Link, Memory, Scope
from recollect.importers.lines import as_object
from recollect.writing import Draft, WritePolicy, as_moment, to_memory
from recollect.writing.drafts import checked_text

FORMAT = "recollect"
VERSION = 1
HEADER = {"format": FORMAT, "version": VERSION}
ID_BYTES = 256
MAX_COUNT = 2**53

PLAIN_FIELDS = (
    "id", "content", "type", "confidence", "importance", "source", "key", "access_count", "pinned", "sensitive",
    "version",
)  # fmt: skip
TIMES = ("created_at", "updated_at", "accessed_at")


def to_line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def memory_record(memory: Memory) -> dict[str, Any]:
    """Every field of a memory, so that nothing is lost."""
    record: dict[str, Any] = {name: getattr(memory, name) for name in PLAIN_FIELDS}
    record.update({name: _written(getattr(memory, name)) for name in TIMES})
    scope = memory.scope
    record["scope"] = {"namespace": scope.namespace, "project": scope.project, "session": scope.session}
    record.update(kind="memory", tags=list(memory.tags), metadata=dict(memory.metadata))
    return record


def link_record(link: Link) -> dict[str, Any]:
    return {
        "kind": "link",
        "source": link.source,
        "type": link.type,
        "target": link.target,
        "created_at": _written(link.created_at),
    }


def read_header(value: Any) -> None:
    """InvalidInput unless this is the first line of an export that this version understands."""
    header = as_object(value)
    if header.get("format") != FORMAT:
        raise InvalidInput("this is no recollect export", "name the format of the file", "format")
    if header.get("version") != VERSION:
        raise InvalidInput(f"the export has format version {header.get('version')}", "update recollect", "version")


def read_memory(record: Mapping[str, Any]) -> Memory:
    """The memory of a line, checked like a new one; InvalidInput names the field.

    Secrets are left as they are: what the exporting store kept, it kept on purpose.
    """
    scope = as_object(record.get("scope"))
    draft = Draft(
        content=record.get("content"),  # type: ignore[arg-type]
        type=record.get("type", "fact"),
        tags=record.get("tags", ()),
        confidence=record.get("confidence", 0.8),
        importance=record.get("importance", 0.5),
        scope=Scope(scope.get("namespace", "default"), scope.get("project"), scope.get("session")),
        source=record.get("source", ""),
        key=record.get("key"),
        pinned=record.get("pinned", False),
        sensitive=record.get("sensitive", False),
        metadata=record.get("metadata", {}),
    )
    created_at = as_moment(record.get("created_at", ""), "created_at")
    id = checked_text(record.get("id"), "id", ID_BYTES, blank=False)
    memory, _ = to_memory(draft, id=id, now=created_at, policy=WritePolicy(secrets="allow"))
    return replace(
        memory,
        updated_at=as_moment(record.get("updated_at", created_at), "updated_at"),
        accessed_at=as_moment(record.get("accessed_at", created_at), "accessed_at"),
        access_count=_whole(record.get("access_count", 0), "access_count", 0),
        version=_whole(record.get("version", 1), "version", 1),
    )


def read_link(record: Mapping[str, Any]) -> Link:
    parts = [checked_text(record.get(name), name, ID_BYTES, blank=False) for name in ("source", "type", "target")]
    return Link(parts[0], parts[1], parts[2], as_moment(record.get("created_at", ""), "created_at"))


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _whole(value: Any, field: str, least: int) -> int:
    """A count that a store can go on from: 64 bits must not end at the next use."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_COUNT:
        raise InvalidInput(f"{field} must be a whole number from {least} to {MAX_COUNT}", "", field)
    return value
