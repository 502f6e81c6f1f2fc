"""The other doors under this roof: each is an ASGI app, served behind the same guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from recollect.doors.http.app import Mounted
from recollect.doors.http.door import Door
from recollect.doors.page import FILES, Page

CHANGES = frozenset({"updated", "forgotten"})


def mounts(door: Door, hosts: Sequence[str]) -> list[Mounted]:
    """What else this daemon serves: the page at /, and MCP at /mcp where the package is installed."""
    page = Page()
    return [*(Mounted(path, page, public=True) for path in FILES), *_mcp(door, hosts)]


def _mcp(door: Door, hosts: Sequence[str]) -> list[Mounted]:
    try:
        from recollect.doors.mcp.http import PATH, streamable_http_app
        from recollect.doors.mcp.server import build_server
        from recollect.doors.mcp.telling import Telling
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        return []
    telling = Telling()
    app = streamable_http_app(build_server(door.engine, telling=telling), hosts=tuple(hosts))

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        passing_on = asyncio.create_task(_pass_on(door, telling.changed))
        try:
            async with app.router.lifespan_context(app):
                yield
        finally:
            passing_on.cancel()

    return [Mounted(PATH, app, running)]


async def _pass_on(door: Door, changed: Callable[[list[str]], Awaitable[None]]) -> None:
    """What is changed over HTTP is told to the MCP clients that watch it."""
    async for event in door.events.listen():
        if event.name in CHANGES or (event.name == "remembered" and event.data["action"] == "merged"):
            await changed([event.data["id"]])
