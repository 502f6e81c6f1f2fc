"""MCP over streamable HTTP: an ASGI app for the daemon, both protocol generations on one path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY_BYTES = 8 * 2**20
MAX_SESSIONS = 1000


def streamable_http_app(server: MCPServer[dict[str, Any]], *, hosts: Sequence[str] = LOOPBACK) -> Starlette:
    """An app with one route, for clients of the handshake protocols (sessions) and of 2026-07-28 (stateless).

    Requests for other hosts get 421, pages of other origins 403: a name that resolves to this machine is not enough.
    To carry it inside another app, add its `routes` to that app's and enter `app.router.lifespan_context(app)` for as
    long as that app runs. It checks no token: the app around it does.
    """
    names = [form for host in hosts for form in (host, f"{host}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in names],
    )
    return server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
    )
