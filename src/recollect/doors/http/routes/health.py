"""Is it alive, is it ready, how does it fare, what does it offer."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from recollect.doors.http.answers import StatusAnswer
from recollect.doors.http.describing import route
from recollect.doors.http.door import AtDoor, reply
from recollect.doors.http.metrics import MEDIA_TYPE
from recollect.doors.http.problems import Problem

router = APIRouter(tags=["health"])


@route(router, "GET", "/healthz", {200: StatusAnswer})
async def healthz() -> Response:
    """The process is alive."""
    return reply({"status": "ok"})


@route(router, "GET", "/readyz", {200: StatusAnswer})
async def readyz(call: AtDoor) -> Response:
    """The store answers and the daemon is not stopping."""
    if call.door.stopping:
        raise Problem(503, "stopping", "the daemon is stopping", "try again when it is back")
    await call.run(call.engine.store.care.settings)
    return reply({"status": "ready"})


@route(router, "GET", "/metrics", {200: "text/plain"})
async def metrics(call: AtDoor) -> Response:
    """Figures for Prometheus."""
    busy = {str(name): lane.busy for name, lane in call.door.lanes.items()}
    engine = call.engine
    page = await call.run(lambda: call.door.metrics.page(engine.store.care.size(), engine.embedding_progress(), busy))
    return Response(page, media_type=MEDIA_TYPE)


@route(router, "GET", "/openapi.json", {200: "application/json"})
async def openapi(request: Request) -> Response:
    """This description."""
    return reply(request.app.openapi())
