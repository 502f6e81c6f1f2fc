"""What every route shares: the engine and its lanes, the events, the metrics, and how a document is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.responses import Response

from recollect.doors.answering import Complete, language_model
from recollect.doors.http.events import Events
from recollect.doors.http.lanes import Lane, Limits
from recollect.doors.http.metrics import Metrics
from recollect.doors.http.problems import render
from recollect.doors.http.rules import LaneName, rule_of
from recollect.engine import Engine

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""What is under way when the daemon is asked to stop may take so long."""


class Door:
    """One engine behind HTTP."""

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self.events = Events()
        self.metrics = Metrics()
        self.complete: Complete | None = language_model(engine.settings)
        self.stopping = False
        bounds = self.limits
        self.lanes: Mapping[LaneName, Lane] = {
            "quick": Lane("quick", bounds.quick_threads, bounds.quick_waiting, bounds.quick_seconds),
            "slow": Lane("slow", bounds.slow_threads, bounds.slow_waiting, bounds.slow_seconds),
        }

    def stop(self) -> None:
        """Requests under way are finished, listeners are sent home, readiness says no."""
        self.stopping = True
        self.events.close()

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.close()


class Call:
    """One request at the door: runs the route's blocking work in the lane that the route's rule names."""

    def __init__(self, request: Request) -> None:
        self.door: Door = request.app.state.door
        self.engine = self.door.engine
        rule = rule_of(request.method, request.scope["route"].path_format)
        self._lane = None if rule.lane is None else self.door.lanes[rule.lane]

    async def run(self, work: Callable[[], T]) -> T:
        assert self._lane is not None, "the route's rule names no lane"
        return await self._lane.run(work)

    async def each(self, produce: Callable[[], Iterator[T]]) -> AsyncGenerator[T]:
        """What a blocking generator yields, one by one as it comes; its error is raised here."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[T | None] = asyncio.Queue()

        def work() -> None:
            for one in produce():
                loop.call_soon_threadsafe(arrived.put_nowait, one)

        task = asyncio.create_task(self.run(work))
        task.add_done_callback(lambda _: arrived.put_nowait(None))
        try:
            while (one := await arrived.get()) is not None:
                yield one
            task.result()
        finally:
            task.cancel()


async def _call(request: Request) -> Call:
    return Call(request)


AtDoor = Annotated[Call, Depends(_call)]


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON document that our own code made: it needs no second validation."""
    return Response(render(document), status, dict(headers or {}), "application/json")
