"""Settings that take effect while the daemon runs, consolidation, figures and what happens as it happens."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Request
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.responses import Response

from recollect.doors import wire
from recollect.doors.http.answers import ConsolidationAnswer, SettingsAnswer, StatsAnswer
from recollect.doors.http.describing import route
from recollect.doors.http.door import GRACE_SECONDS, AtDoor, Door, reply
from recollect.doors.http.problems import Problem
from recollect.doors.http.shapes import ConsolidateRequest

router = APIRouter(tags=["care"])

LastEventId = Annotated[
    str | None, Header(max_length=32, pattern="^[0-9]{1,18}$", description="Go on behind this event, if it is kept.")
]
Changes = Annotated[dict[str, Any], Body(max_length=64, examples=[{"keywordWeight": 1.0}])]


@route(router, "GET", "/settings", {200: SettingsAnswer})
async def read_settings(call: AtDoor) -> Response:
    """The knobs that can be turned while recollect runs."""
    return reply(await call.run(call.engine.live_settings))


@route(router, "PATCH", "/settings", {200: SettingsAnswer})
async def change_settings(call: AtDoor, body: Changes) -> Response:
    """Turn knobs, all or none: effective from the next recall on, and kept."""
    changed = await call.run(lambda: call.engine.change_settings(body))
    call.door.events.publish("settings", names=sorted(body))
    return reply(changed)


@route(router, "POST", "/v1/consolidate", {200: ConsolidationAnswer})
async def consolidate(call: AtDoor, body: ConsolidateRequest) -> Response:
    """Merge memories that say the same. Nothing is lost: what is kept supersedes the others."""
    report = await call.run(lambda: call.engine.consolidate(**body.model_dump()))
    call.door.events.publish("consolidated", merges=len(report.merges), examined=report.examined, dry_run=body.dry_run)
    return reply(wire.plain(report))


@route(router, "GET", "/v1/stats", {200: StatsAnswer})
async def stats(call: AtDoor) -> Response:
    """What is in the store, and how much of it is embedded."""
    return reply(await call.run(lambda: wire.stats_to_dict(call.engine)))


@route(router, "GET", "/v1/events", {200: "text/event-stream"})
async def events(request: Request, call: AtDoor, last_event_id: LastEventId = None) -> Response:
    """What happens, as server-sent events: remembered, updated, forgotten, linked, recalled, recollected, settings,

    consolidated, upkeep. They carry ids and counts, never a text.
    """
    door = call.door
    if door.events.listeners >= door.limits.streams:
        raise Problem(429, "too-many-listeners", "too many are listening", "close one of the streams")
    if request.method == "HEAD":  # nobody listens: it would be kept open for nothing
        return _unread_stream()
    stream = _listen(door, None if last_event_id is None else int(last_event_id))
    return EventSourceResponse(stream, ping=15, shutdown_grace_period=GRACE_SECONDS)


def _unread_stream() -> Response:
    """What a stream begins with; like the stream itself it does not say how long it is."""
    answer = Response(media_type="text/event-stream")
    del answer.headers["Content-Length"]
    return answer


async def _listen(door: Door, after: int | None) -> AsyncGenerator[ServerSentEvent]:
    async for one in door.events.listen(after):
        yield ServerSentEvent(json.dumps(one.data, allow_nan=False), event=one.name, id=str(one.number))
