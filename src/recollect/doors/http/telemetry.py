"""Around every request: a number for it, a log line, metrics, and an answer even when a bug is met."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.logs import described
from recollect.doors.http.metrics import Metrics
from recollect.doors.http.problems import Problem

log = logging.getLogger("recollect.http")


class Telemetry:
    """The outermost layer: whatever is inside, the caller gets a well-formed answer and the log one line."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, request_id, status = time.perf_counter(), secrets.token_hex(8), 0

        async def labelled(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                message = {**message, "headers": headers.raw}
            await send(message)

        failure: dict[str, Any] = {}
        try:
            await self._app(scope, receive, labelled)
        except Exception as error:
            failure = described(error)
            if not status:
                problem = Problem(500, "bug", "this is a bug in recollect", "look for the request's id in the log")
                await problem.response()(scope, receive, labelled)
        finally:
            self._tell(scope, status, time.perf_counter() - started, {"request_id": request_id, **failure})

    def _tell(self, scope: Scope, status: int, seconds: float, more: dict[str, Any]) -> None:
        """The route, not the path: a path may carry what a person typed."""
        route = str(getattr(scope.get("route"), "path_format", "") or "none")
        self._metrics.answered(scope["method"], route, status, seconds)
        extra = {"method": scope["method"][:16], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
        level = logging.ERROR if "failure" in more else logging.INFO
        log.log(level, "request", extra={**extra, **more})
