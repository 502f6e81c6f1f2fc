"""MCP on standard input and output: one client, one process, gone when the client is gone.

Standard output carries JSON-RPC and nothing else: the SDK sends stray prints to standard error, and logs go there too.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from recollect.domain.memory import DEFAULT_NAMESPACE
from recollect.doors.mcp.door import Lazily
from recollect.doors.mcp.server import build_server
from recollect.doors.staying import settle_down

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from recollect.engine import Engine

LOOK_EVERY_MS = 500
GRACE_SECONDS = 1.2
"""What is under way when the client goes may take so long; every acknowledged write is durable already."""


def serve(opening: Callable[[], Engine], *, namespace: str = DEFAULT_NAMESPACE) -> None:
    """Answer until the client closes its end. The store is opened by the first tool that needs it."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

    def opened() -> Engine:
        engine = opening()
        settle_down()
        return engine

    engine = Lazily(opened)
    server = build_server(engine, namespace=namespace)
    _leave_with_the_client()
    try:
        anyio.run(_answer, server)
    finally:
        engine.close()


async def _answer(server: MCPServer[Any]) -> None:
    """As the SDK's `run_stdio_async`, with lines mended on the way in."""
    lower = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    async with stdio_server() as (lines, answers), anyio.create_task_group() as tasks:
        send, mended = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def mend() -> None:
            async with send, lines:
                async for line in lines:
                    await send.send(_mended(line))

        tasks.start_soon(mend)
        await lower.run(mended, answers, lower.create_initialization_options())
        tasks.cancel_scope.cancel()


def _mended(line: SessionMessage | Exception) -> SessionMessage | Exception:
    """A message that the SDK cannot read for a half of a surrogate pair, with U+FFFD in its place.

    JavaScript cuts texts in the middle of an emoji and spells the half as an escape, which no UTF-8 can carry. The SDK
    passes such a request over, and the client would wait for its answer for good.
    """
    if not isinstance(line, ValidationError):
        return line
    try:
        text = json.dumps(json.loads(line.errors(include_url=False)[0]["input"]), ensure_ascii=False)
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return line if whole == text else SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except (TypeError, ValueError, RecursionError):
        return line


def _leave_with_the_client() -> None:
    """A thread that ends the process soon after the client is gone, whatever the process is busy with by then.

    The client is gone when its end of the pipe is closed, or when the parent process has died: somebody else may hold
    the pipe open.
    """
    if not hasattr(select, "poll"):
        return  # the end of standard input must do
    # The SDK takes descriptor 0 away while it serves.
    pipe, parent = os.dup(0), os.getppid()
    poller = select.poll()
    poller.register(pipe, 0)

    def watch() -> None:
        while not _hung_up(poller) and os.getppid() == parent:
            pass
        time.sleep(GRACE_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, name="recollect-client-watch", daemon=True).start()


def _hung_up(poller: select.poll) -> bool:
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poller.poll(LOOK_EVERY_MS))
