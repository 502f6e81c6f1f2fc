"""The page at /: asks the memory from a browser and draws the reason for every rank.

It is three files without any data in them, so they are served without the token; what the page shows it asks over HTTP
with the token that the person types in. Texts reach the document as text only, and the policy lets no other code run.
"""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.doors.http.problems import Problem

FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}


class Page:
    """The page as an app of its own, under each of its paths."""

    def __init__(self) -> None:
        here = files(__name__)
        self._bodies = {path: (here.joinpath(name).read_bytes(), kind) for path, (name, kind) in FILES.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            problem = Problem(405, "wrong-method", "the page is only read", "use GET")
            problem.headers["Allow"] = "GET, HEAD"
            await problem.response()(scope, receive, send)
            return
        body, kind = self._bodies[scope["path"]]
        await Response(body, headers=HEADERS, media_type=kind)(scope, receive, send)
