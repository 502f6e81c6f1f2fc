"""One HTTP request to one checked address, over connections that are kept, with the answer's size bounded."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import urllib.request
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit, urlunsplit

from recollect.domain.errors import InvalidInput, ModelUnavailable

Idle: TypeAlias = queue.LifoQueue[http.client.HTTPConnection]
"""Open connections that wait for the next request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whole."""

    status: int
    retry_after: str | None
    body: bytes


class Exchange:
    """One request and its answer. `run` never raises: the outcome is the answer or the exception."""

    def __init__(
        self,
        address: SplitResult,
        headers: dict[str, str],
        body: bytes,
        seconds: float,
        limit: int,
        idle: Idle,
    ) -> None:
        self.done = threading.Event()
        self.outcome: Answer | Exception | None = None
        self._address, self._headers, self._body = address, headers, body
        self._seconds, self._limit, self._idle = seconds, limit, idle
        self._connection: http.client.HTTPConnection | None = None
        self._is_given_up = False

    def run(self) -> None:
        try:
            self.outcome = self._converse()
        except Exception as error:  # the caller's thread decides what it means
            self.outcome = error
        finally:
            self.done.set()

    def abort(self) -> None:
        """Wake the thread out of a blocking read: nobody waits for it any more, and nobody may be left to close what it
        would keep."""
        self._is_given_up = True  # first: whoever still has the connection then closes it instead of keeping it
        connection = self._connection
        sock: socket.socket | None = connection.sock if connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _converse(self) -> Answer:
        try:
            kept = self._idle.get_nowait()
        except queue.Empty:
            return self._on(connect(self._address, self._seconds))
        try:
            return self._on(kept)
        except (http.client.RemoteDisconnected, ConnectionError):
            if self._is_given_up:
                raise
            # The server has closed the kept connection meanwhile; that is no failure of the server.
            return self._on(connect(self._address, self._seconds))

    def _on(self, connection: http.client.HTTPConnection) -> Answer:
        self._connection = connection
        keep = False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(self._seconds)
            connection.request("POST", self._target(connection), self._body, self._headers)
            # The response has a hold on the socket of its own where the server will close.
            with connection.getresponse() as response:
                answer = self._read(response)
                keep = not response.will_close and response.isclosed()
            return answer
        finally:
            self._connection = None  # kept, it may be another's at once
            if not (keep and not self._is_given_up and self._put_back(connection)):
                connection.close()

    def _put_back(self, connection: http.client.HTTPConnection) -> bool:
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            return False
        return True

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        body = response.read(self._limit + 1) if (response.length or 0) <= self._limit else None
        if body is None or len(body) > self._limit:
            raise ModelUnavailable(
                f"{self._address.netloc} answered with more than {self._limit} bytes", "check the address"
            )
        if response.length:
            raise http.client.IncompleteRead(body, response.length)
        return Answer(response.status, response.getheader("Retry-After"), body)

    def _target(self, connection: http.client.HTTPConnection) -> str:
        through_proxy = self._address.scheme == "http" and connection.host != self._address.hostname
        scheme, netloc = (self._address.scheme, self._address.netloc) if through_proxy else ("", "")
        return urlunsplit((scheme, netloc, self._address.path or "/", self._address.query, ""))


def connect(address: SplitResult, seconds: float) -> http.client.HTTPConnection:
    """A connection to the address, through the environment's proxy where one is set for it. Nothing is sent yet."""
    host, secure = address.hostname or "", address.scheme == "https"
    port = address.port or (443 if secure else 80)
    proxy = (
        None
        if is_private(host) or urllib.request.proxy_bypass(host)
        else urllib.request.getproxies().get(address.scheme)
    )
    first = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else None
    first_host, first_port = (first.hostname or "", first.port or 80) if first else (host, port)
    if not secure:
        return http.client.HTTPConnection(first_host, first_port, timeout=seconds)
    connection = http.client.HTTPSConnection(
        first_host, first_port, timeout=seconds, context=ssl.create_default_context()
    )
    if first:
        connection.set_tunnel(host, port)
    return connection


def check_address(url: str, key: str, suffix: str = "") -> SplitResult:
    """The address to ask, or InvalidInput: http(s) only, no password in it, no key in clear text over the open net."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("the address is not a URL", "use https://host/path", "url") from None
    if parts.scheme not in ("http", "https") or not host or any(not 32 < ord(char) < 127 for char in url):
        raise InvalidInput("the address is not an http or https URL", "use https://host/path", "url")
    if "@" in parts.netloc:
        raise InvalidInput("the address carries a user name or password", "give the key by its own setting", "url")
    if any(not 32 < ord(char) < 127 for char in key):
        raise InvalidInput("the key holds blanks or characters no key has", "copy it again", "key")
    if key and parts.scheme == "http" and not is_private(host):
        raise InvalidInput(f"the key would travel to {host} in clear text", "use https", "url")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(suffix) else path + suffix, fragment="")


def is_private(host: str) -> bool:
    """Whether the host is this machine or a neighbour: a loopback or private address, or a name without a dot."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback


def close_all(idle: Idle) -> None:
    """Close what is kept."""
    with contextlib.suppress(queue.Empty):
        while True:
            idle.get_nowait().close()
