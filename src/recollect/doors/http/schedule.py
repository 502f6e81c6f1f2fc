"""Upkeep that the daemon does by itself: tidying the store regularly, consolidating where the settings ask for it.

Embedding and touches are the engine's own background work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from recollect.doors.http.door import Door

log = logging.getLogger("recollect.http")

TIDY_SECONDS = 300.0
EMBED_SECONDS = 5.0
SHORTEST_SECONDS = 1.0


@asynccontextmanager
async def keeping_up(door: Door) -> AsyncGenerator[None]:
    """Upkeep for as long as the app runs, while the store can be written."""
    hours = door.engine.settings.consolidate_hours
    jobs = [asyncio.create_task(_regularly(door, "tidy", TIDY_SECONDS, lambda: _tidy(door)))]
    if hours > 0:
        jobs.append(asyncio.create_task(_regularly(door, "consolidate", hours * 3600, lambda: _consolidate(door))))
    try:
        yield
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def _regularly(door: Door, name: str, seconds: float, work: Callable[[], dict[str, Any]]) -> None:
    """First after one interval, then again and again; a failure is logged and the next round tries anew."""
    while True:
        await asyncio.sleep(max(seconds, SHORTEST_SECONDS))
        try:
            report = await door.lanes["slow"].run(lambda: work() if door.engine.store.writable() else None)
            if report is not None:
                door.events.publish("upkeep", job=name, **report)
        except Exception:
            log.warning("upkeep failed: %s", name, exc_info=True)


def _tidy(door: Door) -> dict[str, Any]:
    report = door.engine.upkeep(budget_seconds=EMBED_SECONDS)
    return {"embedded": report.embedded.embedded, "touched": report.touched}


def _consolidate(door: Door) -> dict[str, Any]:
    reports = [door.engine.consolidate(namespace=one) for one in sorted(door.engine.store.care.size().namespaces)]
    return {"merges": sum(len(one.merges) for one in reports), "examined": sum(one.examined for one in reports)}
