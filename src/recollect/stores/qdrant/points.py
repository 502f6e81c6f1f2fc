"""What stands in Qdrant for a memory: one point for each of its vectors, and the filter as Qdrant reads it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from recollect.domain.memory import Memory
from recollect.domain.question import Filter
from recollect.domain.times import to_ms
from recollect.ports import Embedded

POINTS = uuid.UUID("7c1f0c1e-6d0b-4a52-9a5b-8e0d5a1f3b60")
"""The name space of our point ids."""

OWNER = "id"
PRINT = "print"
KEYWORDS = (OWNER, "project", "session", "type", "tags")
"""The payload fields that need an index on a server, beside the namespace, which is the tenant, and the time."""


def point_id(namespace: str, id: str, passage: int) -> str:
    """The same memory and passage always have the same point, so that writing twice is writing once."""
    return str(uuid.uuid5(POINTS, f"{passage}\0{namespace}\0{id}"))


def points(memory: Memory, embedded: Embedded) -> list[models.PointStruct]:
    """All points of one memory. The fingerprint tells whether a point in Qdrant is still this one."""
    assert embedded.vectors is not None
    scope = memory.scope
    facts: dict[str, Any] = {
        OWNER: memory.id,
        "namespace": scope.namespace,
        "project": scope.project,
        "session": scope.session,
        "type": memory.type,
        "tags": list(memory.tags),
        "created_at": to_ms(memory.created_at),
    }
    made = json.dumps(facts, sort_keys=True).encode()
    return [
        models.PointStruct(
            id=point_id(scope.namespace, memory.id, number),
            vector=row.tolist(),
            payload={**facts, PRINT: hashlib.sha256(made + row.tobytes()).hexdigest()[:16]},
        )
        for number, row in enumerate(embedded.vectors)
    ]


def condition(filter: Filter) -> models.Filter:
    """The filter in Qdrant's words; `only` is not among them, because few ids are looked up and not searched."""
    must: list[models.Condition] = [_is("namespace", filter.namespace)]
    must += [_is("tags", tag) for tag in filter.tags]
    if filter.project is not None:
        must.append(_is("project", filter.project))
    must += [_one_of(name, values) for name, values in (("session", filter.sessions), ("type", filter.types)) if values]
    if filter.after is not None or filter.before is not None:
        start = None if filter.after is None else to_ms(filter.after)
        end = None if filter.before is None else to_ms(filter.before)
        must.append(models.FieldCondition(key="created_at", range=models.Range(gte=start, lt=end)))
    refused = (("type", filter.without_types), ("tags", filter.without_tags), (OWNER, tuple(sorted(filter.exclude))))
    return models.Filter(must=must, must_not=[_one_of(name, values) for name, values in refused if values])


def of_tenant(tenant: str | None) -> models.Filter:
    """All points of a tenant; None: of all."""
    return models.Filter(must=_in_tenant(tenant))


def of_memories(ids: Sequence[str], tenant: str | None) -> models.Filter:
    """All points of these memories, where they are the tenant's."""
    return models.Filter(must=[*_in_tenant(tenant), _one_of(OWNER, tuple(ids))])


def _in_tenant(tenant: str | None) -> list[models.Condition]:
    return [] if tenant is None else [_is("namespace", tenant)]


def _is(name: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=name, match=models.MatchValue(value=value))


def _one_of(name: str, values: tuple[str, ...]) -> models.FieldCondition:
    return models.FieldCondition(key=name, match=models.MatchAny(any=list(values)))
