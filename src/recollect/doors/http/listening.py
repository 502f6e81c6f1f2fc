"""Where the daemon listens: a loopback port, a Unix socket, and connections that may neither idle nor crowd it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from http import HTTPStatus
from pathlib import Path

from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.domain.errors import InvalidInput, RecollectError
from recollect.doors.http.lanes import Limits
from recollect.doors.http.problems import MEDIA_TYPE, Problem, render

LONGEST_SOCKET_PATH = 100
"""In bytes. Systems allow 104 or 108."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_local(host: str, allow_remote: bool) -> None:
    """Refuse to be reachable from elsewhere, unless that was said on purpose."""
    if not is_loopback(host) and not allow_remote:
        raise InvalidInput(
            f"{host} can be reached from other machines", "bind 127.0.0.1, or add --allow-remote on purpose", "host"
        )


def bind_port(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"{host} is no address of this machine", "use 127.0.0.1", "host") from error
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError as error:
        listener.close()
        raise RecollectError(f"port {port} cannot be used: {error.strerror}", "choose another with --port") from error
    listener.setblocking(False)
    return listener


def bind_socket(path: Path) -> socket.socket | None:
    """A listening Unix socket that only its owner may open; None where the system has none or the path is too long.

    A file left by a killed daemon is replaced: the caller holds the lock that a living one would hold.
    """
    if not hasattr(socket, "AF_UNIX") or os.name != "posix" or len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        return None
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise RecollectError(f"the socket cannot be made: {error.strerror}", "choose another with --socket") from error
    finally:
        os.umask(before)
    listener.listen(socket.SOMAXCONN)
    listener.setblocking(False)
    return listener


def protocol_for(limits: Limits) -> type[H11Protocol]:
    """uvicorn's protocol, with an end to waiting: a connection that asks nothing is closed, one too many at once."""

    class BoundedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().connection_made(transport)
            self._seen: object = None
            if len(self.connections) > limits.connections:
                self._refuse(Problem(503, "busy", "too many connections are open", "try again shortly"))
            self.loop.call_later(limits.header_seconds, self._look)

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002
            """What is no HTTP gets a problem too."""
            self._refuse(Problem(400, "malformed", "this is not a well-formed HTTP request", "encode the address"))

        def _refuse(self, problem: Problem) -> None:
            self.transport.write(_raw(problem))
            self.transport.close()

        def _look(self) -> None:
            """Once per period: nothing under way and nothing new since the last look means nobody is asking."""
            if self.transport.is_closing():
                return
            idle = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]
            if idle and self.cycle is self._seen:
                self.transport.close()
                return
            self._seen = self.cycle
            self.loop.call_later(limits.header_seconds, self._look)

    return BoundedProtocol


def _raw(problem: Problem) -> bytes:
    """A whole response, for a connection on which no request can be answered in the usual way."""
    body = render(problem.document())
    headers = {"Connection": "close", "Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), **problem.headers}
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
