"""Bodies are read whole before a route sees them: bounded in size, in time and in the memory of all together."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.lanes import Limits
from recollect.doors.http.problems import Problem


class Bodies:
    """Answers with 413, 408 or 503, or hands the whole body on in one piece.

    A client that drips its bytes holds no thread and no place in a queue; it only waits for its own time to run out.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        chunks: list[bytes] = []
        try:
            await self._read(headers, receive, chunks)
            await self._app(scope, _replayed(b"".join(chunks), receive), send)
        except Refused as refused:
            # The rest of the body is still on its way: this connection cannot be used again.
            refused.headers["Connection"] = "close"
            await self._refuse(refused, scope, receive, send)
        except ClientDisconnect:
            return
        finally:
            self._held -= sum(map(len, chunks))

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and hear the client out for a while: most read nothing before all is sent, and would only be told
        that the connection broke."""

        async def unfinished(message: Message) -> None:
            await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

        await refused.response()(scope, receive, unfinished)
        size, more = 0, refused.status != 408
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.refused_seconds):
                while more and size < self._limits.refused_bytes:
                    message = await receive()
                    size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read(self, headers: Headers, receive: Receive, chunks: list[bytes]) -> None:
        limits, size = self._limits, 0
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limits.body_bytes:
            raise _too_large(limits)
        try:
            async with asyncio.timeout(limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > limits.body_bytes:
                        raise _too_large(limits)
                    if self._held + len(chunk) > limits.all_bodies_bytes:
                        raise Refused(503, "busy", "too many bodies are being read", "try again shortly")
                    self._held += len(chunk)
                    chunks.append(chunk)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Refused(408, "slow-body", "the body did not arrive in time", "send it faster") from None


class Refused(Problem):
    """The body was not taken."""


def _too_large(limits: Limits) -> Refused:
    mebibytes = limits.body_bytes / 2**20
    return Refused(413, "too-large", f"a body may have at most {mebibytes:g} MiB", "send it in several requests")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message; after it whatever the connection says (that the client has gone)."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
