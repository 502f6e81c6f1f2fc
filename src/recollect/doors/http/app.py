"""The app: routes behind the guard, bounded bodies, telemetry around it all, and a description that is true."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from recollect import __version__
from recollect.domain.errors import RecollectError
from recollect.doors.http.bodies import Bodies
from recollect.doors.http.describing import answer_schemas
from recollect.doors.http.door import Door
from recollect.doors.http.guard import LOOPBACK, Guard
from recollect.doors.http.problems import Problem, invalid_request, problem_of
from recollect.doors.http.routes import asking, care, health, memories, recalling
from recollect.doors.http.rules import MOUNTS, RULES
from recollect.doors.http.schedule import keeping_up
from recollect.doors.http.telemetry import Telemetry

TITLE = "recollect"
DESCRIPTION = """\
The memory of AI agents over HTTP. Every route needs `Authorization: Bearer TOKEN`; the token is in the file `token` in
recollect's home folder. Errors are problem+json (RFC 9457)."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """Another door's app under this one's roof, behind the same guard.

    It sees the whole path. `running` is entered when the daemon starts and left when it stops.
    """

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    public: bool = False
    """Read without the token, because it holds no data: the files of the page."""


def build_app(
    door: Door,
    token: str,
    *,
    hosts: Sequence[str] = tuple(LOOPBACK),
    mounts: Sequence[Mounted] = (),
) -> FastAPI:
    """The whole app. `mounts` is where MCP (/mcp) and the page (/) come in."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(keeping_up(door))
            for mounted in mounts:
                if mounted.running is not None:
                    await stack.enter_async_context(mounted.running())
            yield

    app = FastAPI(
        title=TITLE,
        description=DESCRIPTION,
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.door = door
    for family in (memories, recalling, asking, care, health):
        app.router.routes.extend(family.router.routes)
    app.router.routes.extend(Route(mounted.path, mounted.app, methods=None) for mounted in mounts)
    _handle_errors(app)
    # The last one added is the first to see a request.
    app.add_middleware(Bodies, limits=door.limits)
    public = frozenset(mounted.path for mounted in mounts if mounted.public)
    app.add_middleware(Guard, token=token, hosts=hosts, methods=lambda path: _methods(app, path), public=public)
    app.add_middleware(Telemetry, metrics=door.metrics)
    app.openapi = lambda: _described(app)
    require_rules(app)
    return app


def require_rules(app: FastAPI) -> None:
    """Every route has its rule and every rule its route, or the app is not built."""
    ours = [one for one in app.routes if isinstance(one, APIRoute) and one.include_in_schema]
    built = {(method, one.path_format) for one in ours for method in one.methods or ()}
    others = {str(getattr(one, "path", "")) or "/" for one in app.routes if not isinstance(one, APIRoute)}
    if built != set(RULES) or not others <= set(MOUNTS):
        odd = sorted(map(str, built ^ set(RULES))) + sorted(others - set(MOUNTS))
        raise RuntimeError(f"routes and rules differ: {', '.join(odd)}")


def _handle_errors(app: FastAPI) -> None:
    async def on_engine_error(_: Request, error: Any) -> Response:
        return problem_of(error).response()

    async def on_problem(_: Request, error: Any) -> Response:
        return error.response()

    async def on_invalid(_: Request, error: Any) -> Response:
        return invalid_request(list(error.errors())).response()

    async def on_http_error(request: Request, error: Any) -> Response:
        slugs = {400: "malformed", 404: "no-route", 405: "wrong-method"}
        slug = slugs.get(error.status_code, "refused")
        problem = Problem(error.status_code, slug, _words(error.status_code), "see /openapi.json")
        problem.headers.update(error.headers or {})
        if error.status_code == 405:
            problem.headers["Allow"] = ", ".join(_methods(app, request.url.path))
        return problem.response()

    app.add_exception_handler(RecollectError, on_engine_error)
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http_error)


def _methods(app: FastAPI, path: str) -> list[str]:
    """What can be done at this path, by all of its routes; a route of just this path goes before a pattern."""
    there = [one for one in app.routes if isinstance(one, APIRoute) and one.path_regex.match(path)]
    there = [one for one in there if one.path == path] or there
    return sorted({method for one in there for method in one.methods or ()})


def _words(status: int) -> str:
    known = {400: "the body cannot be read", 404: "there is no such route", 405: "this route has other methods"}
    return known.get(status, "the request was refused")


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=TITLE, version=__version__, description=DESCRIPTION, routes=app.routes)
        parts = made.setdefault("components", {})
        parts["schemas"] = {**parts.get("schemas", {}), **answer_schemas()}
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema
