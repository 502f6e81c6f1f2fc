"""The guard before every route: who is asked (Host), who asks (Origin), and with what right (the token).

A page that a browser shows can reach a loopback port; it cannot choose the Host it sends, hide its Origin or know the
token. All three are checked on every path, known or not, before anything else is looked at. Only the files of the page,
which hold no data, are read without the token: a browser has none when it asks for them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.http.problems import Problem

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
METHODS_WITH_BODY = frozenset({"POST", "PATCH"})


class Guard:
    """Answers with 421, 403, 401 or 415, or lets the request through."""

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        hosts: Iterable[str] = LOOPBACK,
        methods: Callable[[str], Collection[str]] = lambda _: (),
        public: Collection[str] = (),
    ) -> None:
        """`methods` tells what a path can do, so that a wrong method is told as such; nothing means not known.

        `public` paths are read without the token.
        """
        self._app = app
        self._methods = methods
        self._token = _digest(token)
        self._hosts = frozenset(hosts)
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            problem = self.objection(scope["method"], scope["path"], Headers(scope=scope))
            await (self._app if problem is None else problem.response())(scope, receive, send)

    def objection(self, method: str, path: str, headers: Headers) -> Problem | None:
        """Why this request is turned away, if it is."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self._hosts:
            return Problem(421, "wrong-host", "this server is not known by that name", "use 127.0.0.1 or localhost")
        if any(_authority(origin) != hosts[0].lower() for origin in headers.getlist("origin")):
            return Problem(403, "foreign-origin", "pages of other origins get nothing here", "send no Origin header")
        is_open = method in ("GET", "HEAD") and path in self._public
        if not is_open and not self._knows(headers.getlist("authorization")):
            return _unauthorized("authorization" in headers)
        known = self._methods(path)
        expected = method in METHODS_WITH_BODY and (method in known or not known)
        if expected and not _is_json(headers.get("content-type", "")):
            return Problem(415, "not-json", "the body must be JSON", "send Content-Type: application/json")
        return None

    def _knows(self, given: list[str]) -> bool:
        """Compared as hashes and in constant time, so that neither length nor prefix can be found out by trying."""
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        return scheme.lower() == "bearer" and hmac.compare_digest(_digest(token.strip()), self._token)


def _unauthorized(given: bool) -> Problem:
    hint = "send Authorization: Bearer with the token from the file `token` in recollect's home folder"
    problem = Problem(401, "no-token", "this is not the daemon's token" if given else "a token is needed", hint)
    problem.headers["WWW-Authenticate"] = 'Bearer realm="recollect"'
    return problem


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _name(host: str) -> str:
    """The host without its port."""
    host = host.lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def _authority(origin: str) -> str:
    """host:port of an origin; an origin that is none ("null") gives nothing that equals a host."""
    scheme, separator, authority = origin.lower().partition("://")
    return authority if separator and scheme in ("http", "https") else ""


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
