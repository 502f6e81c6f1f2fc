"""One memory and many: remember, list, read, change, forget, link."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from recollect import writing
from recollect.domain.errors import Conflict, InvalidInput
from recollect.domain.memory import Memory, Receipt
from recollect.domain.pages import next_page
from recollect.doors import wire
from recollect.doors.http.answers import (
    ExpandedAnswer,
    LinkAnswer,
    MemoriesAnswer,
    MemoryAnswer,
    ReceiptAnswer,
    ReceiptsAnswer,
)
from recollect.doors.http.describing import route
from recollect.doors.http.door import AtDoor, Call, reply
from recollect.doors.http.problems import Problem
from recollect.doors.http.shapes import (
    BatchRequest,
    CaptureRequest,
    ExpandQuery,
    LinkRequest,
    ListQuery,
    MemoryPatch,
    RememberRequest,
)

router = APIRouter(tags=["memories"])

T = TypeVar("T")
MemoryId = Annotated[str, Path(min_length=1, max_length=256, description="Percent-encoded, `/` too.")]
IdempotencyKey = Annotated[
    str | None, Header(max_length=240, description="A repeated write with the same key changes nothing.")
]
IfMatch = Annotated[str | None, Header(max_length=1024, description="The ETag that was read: change nothing else.")]


@route(router, "POST", "/v1/memories", {201: ReceiptAnswer, 200: ReceiptAnswer})
async def remember(call: AtDoor, body: RememberRequest, idempotency_key: IdempotencyKey = None) -> Response:
    """Store one memory. 201 when it is new, 200 when something known says the same or the key was used before.

    It is durable when this returns; its embedding follows in the background.
    """
    if body.key is not None and idempotency_key is not None and body.key != idempotency_key:
        raise InvalidInput("key and Idempotency-Key differ", "send one of them", "key")
    receipt = await call.run(lambda: call.engine.remember(**body.values(idempotency_key)))
    _announce(call, [receipt])
    return reply(wire.receipt_to_dict(receipt), 201 if receipt.action in ("added", "redacted") else 200)


@route(router, "POST", "/v1/memories/batch", {200: ReceiptsAnswer})
async def remember_batch(call: AtDoor, body: BatchRequest, idempotency_key: IdempotencyKey = None) -> Response:
    """Store up to 1,000 memories; the receipts come in their order. One that is not valid keeps all of them out.

    An Idempotency-Key gives each memory without a key of its own the key `KEY#POSITION`.
    """
    drafts = [
        writing.Draft(**one.values(None if idempotency_key is None else f"{idempotency_key}#{place}"))
        for place, one in enumerate(body.memories)
    ]
    engine = call.engine

    def work() -> list[Receipt]:
        for place, draft in enumerate(drafts):
            _check(draft, place, engine.policy)
        return engine.remember_many(drafts, dedupe=body.dedupe)

    receipts = await call.run(work)
    _announce(call, receipts)
    return reply({"receipts": [wire.receipt_to_dict(one) for one in receipts]})


@route(router, "POST", "/v1/capture", {200: ReceiptsAnswer})
async def capture(call: AtDoor, body: CaptureRequest) -> Response:
    """Remember what an agent's output marks (`[MEMORY]` lines, "Decision: …"), or what a user's prompt asks for
    ("remember that …")."""
    scope = body.scope.scope()
    receipts = await call.run(
        lambda: call.engine.capture(body.text, scope=scope, source=body.source, said_by=body.said_by)
    )
    _announce(call, receipts)
    return reply({"receipts": [wire.receipt_to_dict(one) for one in receipts]})


@route(router, "GET", "/v1/memories", {200: MemoriesAnswer})
async def list_memories(call: AtDoor, query: Annotated[ListQuery, Query()]) -> Response:
    """Memories, newest first, page by page: pass next_cursor as cursor until it is null."""
    found = await call.run(lambda: call.engine.list(limit=query.limit + 1, **query.asked()))
    page = found[: query.limit]
    cursor = next_page(page[-1]) if len(found) > query.limit else None
    return reply({"memories": [wire.memory_to_dict(one) for one in page], "next_cursor": cursor})


@route(router, "GET", "/v1/memories/{id}", {200: ExpandedAnswer})
async def read_memory(call: AtDoor, id: MemoryId, query: Annotated[ExpandQuery, Query()]) -> Response:
    """One memory with its ETag. Reading does not count as using, unless expand=true asks for what surrounds it."""
    if query.expand:
        found = await call.run(lambda: call.engine.expand(id))
        return reply(wire.expanded_to_dict(found), headers=_etag(found.memory))
    memory = await call.run(lambda: call.engine.get(id))
    return reply(wire.memory_to_dict(memory), headers=_etag(memory))


@route(router, "PATCH", "/v1/memories/{id}", {200: MemoryAnswer})
async def change_memory(call: AtDoor, id: MemoryId, body: MemoryPatch, if_match: IfMatch = None) -> Response:
    """Change fields of a memory. With If-Match only if nobody changed it since it was read (412 otherwise)."""
    memory = await call.run(
        lambda: _as_read(call, id, if_match, lambda version: call.engine.update(id, version=version, **body.changes()))
    )
    call.door.metrics.wrote("updated")
    call.door.events.publish("updated", id=memory.id, version=memory.version)
    return reply(wire.memory_to_dict(memory), headers=_etag(memory))


@route(router, "DELETE", "/v1/memories/{id}", {204: None})
async def forget_memory(call: AtDoor, id: MemoryId, if_match: IfMatch = None) -> Response:
    """Delete without remnants, with what was merged into it. The texts do not come back by import or capture.

    With If-Match only if nobody changed it since it was read (412 otherwise).
    """
    await call.run(lambda: _as_read(call, id, if_match, lambda version: call.engine.forget(id, version=version)))
    call.door.metrics.wrote("forgotten")
    call.door.events.publish("forgotten", id=id)
    return Response(status_code=204)


@route(router, "POST", "/v1/links", {201: LinkAnswer})
async def link_memories(call: AtDoor, body: LinkRequest) -> Response:
    """Connect two memories: source supersedes (is resolved-by, part-of, see-also) target. Idempotent."""
    made = await call.run(lambda: call.engine.link(body.source, body.type, body.target))
    call.door.metrics.wrote("linked")
    call.door.events.publish("linked", source=made.source, type=made.type, target=made.target)
    return reply(wire.link_to_dict(made), 201)


def _announce(call: Call, receipts: list[Receipt]) -> None:
    for receipt in receipts:
        call.door.metrics.wrote(receipt.action)
        call.door.events.publish("remembered", id=receipt.id, action=receipt.action)


def _check(draft: writing.Draft, place: int, policy: writing.WritePolicy) -> None:
    """Before anything is written: a batch larger than a transaction would otherwise be stored in part."""
    try:
        writing.to_memory(draft, id="checked", now=datetime.now(UTC), policy=policy)
    except InvalidInput as error:
        where = f"memories[{place}]"
        raise InvalidInput(f"{where}: {error.message}", error.hint, f"{where}.{error.field}") from error


def _as_read(call: Call, id: str, if_match: str | None, change: Callable[[int | None], T]) -> T:
    """Change a memory, if it still is one of those that an If-Match names."""
    if if_match is None or if_match.strip() == "*":
        return change(None)
    version = call.engine.get(id).version
    if version not in _versions(if_match):
        raise _outdated()
    try:
        return change(version)
    except Conflict as conflict:
        if conflict.existing_id == id:
            raise _outdated() from None
        raise


def _etag(memory: Memory) -> dict[str, str]:
    return {"ETag": f'"{memory.version}"'}


def _versions(if_match: str) -> set[int]:
    """The versions that an If-Match names; weak and foreign tags name none."""
    tags = (one.strip() for one in if_match.split(","))
    return {int(one[1:-1]) for one in tags if re.fullmatch(r'"[0-9]{1,18}"', one)}


def _outdated() -> Problem:
    return Problem(412, "outdated", "the memory was changed meanwhile", "read it again and repeat the change")
