"""Upkeep that the daemon does by itself: tidying the store regularly, consolidating where the settings ask for it.

Embedding and touches are the engine's own background work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from recollect.doors.http.door import Door

log = logging.getLogger("recollect.http")

Work = Callable[[Door], Awaitable[dict[str, int]]]

TIDY_SECONDS = 300.0
EMBED_SECONDS = 5.0
SHORTEST_SECONDS = 1.0


@asynccontextmanager
async def keeping_up(door: Door) -> AsyncGenerator[None]:
    """Upkeep for as long as the app runs, while the store can be written."""
    hours = door.engine.settings.consolidate_hours
    jobs = [asyncio.create_task(_regularly(door, "tidy", TIDY_SECONDS, _tidy))]
    if hours > 0:
        jobs.append(asyncio.create_task(_regularly(door, "consolidate", hours * 3600, _consolidate)))
    try:
        yield
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def _regularly(door: Door, name: str, seconds: float, work: Work) -> None:
    """First after one interval, then again and again; a failure is logged and the next round tries anew."""
    while True:
        await asyncio.sleep(max(seconds, SHORTEST_SECONDS))
        try:
            if await door.lanes["slow"].run(door.engine.store.writable):
                door.events.publish("upkeep", job=name, **await work(door))
        except Exception:
            log.warning("upkeep failed: %s", name, exc_info=True)


async def _tidy(door: Door) -> dict[str, int]:
    report = await door.lanes["slow"].run(lambda: door.engine.upkeep(budget_seconds=EMBED_SECONDS))
    return {"embedded": report.embedded.embedded, "touched": report.touched}


async def _consolidate(door: Door) -> dict[str, int]:
    """One namespace after the other, so that none of them takes the time of all, or keeps the others from theirs."""
    size = await door.lanes["slow"].run(door.engine.store.care.size)
    merges = examined = 0
    for namespace in sorted(size.namespaces):
        try:
            report = await door.lanes["slow"].run(partial(door.engine.consolidate, namespace=namespace))
        except Exception:
            log.warning("upkeep failed: consolidate %s", namespace, exc_info=True)
            continue
        merges, examined = merges + len(report.merges), examined + report.examined
    return {"merges": merges, "examined": examined}
