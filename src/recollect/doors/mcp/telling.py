"""What a client may ask to be told: changes of the memories it watches, and how its calls went.

Clients of the handshake protocols subscribe and set a level once; those of 2026-07-28 listen on a stream of their own,
which the SDK serves from the same bus, and ask for log lines request by request.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast, get_args
from urllib.parse import quote

from mcp.server.connection import allowed_log_levels
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

Request = ServerRequestContext[Any, Any]

LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
MOST_CLIENTS = 1000
MOST_WATCHED = 1000
SESSION_HEADER = "mcp-session-id"
LOGGER = "recollect"


@dataclass
class Client:
    """One client of a handshake protocol: the way back to it, and what it asked for."""

    session: ServerSession
    watched: set[str] = field(default_factory=set[str])
    level: LoggingLevel | None = None


def address(id: str) -> str:
    """What the resource of a memory is called; an id may hold what an address cannot."""
    return f"memory://{quote(id, safe='')}"


class Telling:
    """Who wants to be told what. Everything here happens on the event loop."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._clients: OrderedDict[str, Client] = OrderedDict()

    async def subscribe(self, ctx: Request, params: SubscribeRequestParams) -> EmptyResult:
        """Any address is taken, as 2026-07-28 has it: one that is no memory's is never heard of."""
        watched = self._client(ctx).watched
        if len(watched) >= MOST_WATCHED and str(params.uri) not in watched:
            raise MCPError(INVALID_PARAMS, f"More than {MOST_WATCHED} subscriptions. Next step: unsubscribe from some.")
        watched.add(str(params.uri))
        return EmptyResult()

    async def unsubscribe(self, ctx: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        self._client(ctx).watched.discard(str(params.uri))
        return EmptyResult()

    async def set_level(self, ctx: Request, params: SetLevelRequestParams) -> EmptyResult:
        self._client(ctx).level = params.level
        return EmptyResult()

    async def changed(self, ids: Iterable[str]) -> None:
        """Tell whoever watches one of these memories; a client that has gone is told in vain."""
        for uri in map(address, ids):
            await self.bus.publish(ResourceUpdated(uri=uri))
            for client in [one for one in self._clients.values() if uri in one.watched]:
                await client.session.send_resource_updated(uri)

    async def around(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        """Middleware: after a tool was called, tell what it changed and, to who wants to know, how it went."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        started = time.perf_counter()
        result = await call_next(ctx)
        said, failed = _outcome(result)
        tool = str((ctx.params or {}).get("name", ""))
        if not failed:
            await self.changed(changed_by(tool, said))
        facts = {"tool": tool, "ms": round((time.perf_counter() - started) * 1000, 1), "failed": failed}
        for note in cast(list[str], said.get("notes") or []):
            await self._log(ctx, "warning", {**facts, "note": note})
        await self._log(ctx, "notice" if failed else "debug", facts)
        return result

    async def _log(self, ctx: Request, level: LoggingLevel, facts: dict[str, Any]) -> None:
        """Never a memory's text or a query: only which tool, how long, and what worked less well than usual."""
        if level in self._allowed(ctx):
            message = LoggingMessageNotificationParams(level=level, logger=LOGGER, data=facts)
            await ctx.session.send_notification(LoggingMessageNotification(params=message), ctx.request_id)

    def _allowed(self, ctx: Request) -> Iterable[LoggingLevel]:
        """Nothing until the client has asked: for the session, or in this very request."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return allowed_log_levels(ctx.protocol_version, cast(Any, ctx.meta))
        client = self._clients.get(_key(ctx))
        return LEVELS[LEVELS.index(client.level) :] if client and client.level else ()

    def _client(self, ctx: Request) -> Client:
        """The client behind this request; the one that was silent longest is forgotten when there are too many."""
        client = self._clients.setdefault(_key(ctx), Client(ctx.session))
        client.session = ctx.session
        self._clients.move_to_end(_key(ctx))
        while len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        return client


def add_telling(server: MCPServer[dict[str, Any]], telling: Telling) -> None:
    """Serve subscriptions and levels; the SDK then advertises both to clients of the handshake protocols."""
    # The SDK's own way in, which it has not made public for these three.
    lower = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    lower.add_request_handler("resources/subscribe", SubscribeRequestParams, telling.subscribe)
    lower.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, telling.unsubscribe)
    lower.add_request_handler("logging/setLevel", SetLevelRequestParams, telling.set_level)


def changed_by(tool: str, said: dict[str, Any]) -> list[str]:
    """The memories that a tool's result says it changed, each once."""
    if tool == "memory_update" or (tool == "memory_remember" and said.get("action") == "merged"):
        return [str(said["id"])]
    if tool == "memory_forget":
        return list(dict.fromkeys(map(str, said["ids"])))
    if tool == "memory_consolidate" and not said.get("dry_run"):
        merges = cast(list[dict[str, str]], said["merges"])
        return list(dict.fromkeys(one[side] for one in merges for side in ("kept", "merged")))
    return []


def _outcome(result: HandlerResult) -> tuple[dict[str, Any], bool]:
    """The structured content, and whether the call failed; the SDK may have made a document of the result already."""
    document = result.model_dump(by_alias=True) if isinstance(result, BaseModel) else result or {}
    return dict(document.get("structuredContent") or {}), bool(document.get("isError"))


def _key(ctx: Request) -> str:
    """The client's session over HTTP; on standard input and output there is only one."""
    headers = getattr(ctx.request, "headers", None)
    return str(headers.get(SESSION_HEADER, "")) if headers is not None else ""
