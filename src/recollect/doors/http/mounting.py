"""The other doors under this roof: each is an ASGI app, served behind the same guard."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.doors.http.app import Mounted
from recollect.engine import Engine


def mounts(engine: Engine, hosts: Sequence[str]) -> list[Mounted]:
    """What else this daemon serves: MCP at /mcp where the package is installed, and the page at /."""
    try:
        from recollect.doors.mcp.http import PATH, streamable_http_app
        from recollect.doors.mcp.server import build_server
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        return []
    app = streamable_http_app(build_server(engine), hosts=tuple(hosts))
    return [Mounted(PATH, app, lambda: app.router.lifespan_context(app))]
