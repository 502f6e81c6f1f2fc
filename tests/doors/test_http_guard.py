"""Nobody gets in without the token, under a foreign name, or from a foreign page: the matrix comes from the routes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from recollect.doors.http import rules
from recollect.doors.http.app import Mounted, build_app, require_rules
from recollect.doors.http.door import Door
from recollect.doors.http.guard import Guard
from recollect.doors.http.token import ensure_token, read_token
from tests.doors.http_cases import BASE, BEARER, TOKEN, door_of, open_memory, served

HOSTS = {
    "127.0.0.1:4777": True, "localhost:4777": True, "LOCALHOST": True, "[::1]:4777": True,
    "evil.example": False, "evil.example:4777": False, "127.0.0.1.evil.example": False, "localhost.evil.example": False,
    "10.0.0.1:4777": False, "": False, "127.0.0.1@evil.example": False, "[::2]:4777": False,
}  # fmt: skip
ORIGINS: dict[str | None, bool] = {
    None: True, "same": True, "null": False, "http://evil.example": False, "http://localhost:3000": False,
    "https://127.0.0.1": False, "http://127.0.0.1.evil.example:4777": False, "file://": False, "": False,
    "chrome-extension://127.0.0.1:4777": False,
}  # fmt: skip
TOKENS: dict[str | None, bool] = {
    f"Bearer {TOKEN}": True, f"bearer {TOKEN}": True, None: False, "": False, "Bearer": False, "Bearer ": False,
    f"Bearer {TOKEN}x": False, f"Bearer {TOKEN[:-1]}": False, f"Basic {TOKEN}": False, TOKEN: False,
    f"Token {TOKEN}": False, "Bearer tök": False,
}  # fmt: skip
EXTRA = [("GET", "/"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/mcp"), ("OPTIONS", "/v1/memories")]


async def _mcp(request: Request) -> JSONResponse:
    return JSONResponse({"path": request.url.path})


class Other:
    """Another door's app: a callable object, as Starlette apps are."""

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        await JSONResponse({"path": scope["path"]})(scope, receive, send)


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    with served(home, mounts=(Mounted("/mcp", Other()),)) as client:
        yield client


def _ask(client: TestClient, method: str, path: str, host: str, origin: str | None, token: str | None) -> int:
    headers: dict[str, str | bytes] = {"Host": host, "Content-Type": "application/json"}
    if origin is not None:
        headers["Origin"] = f"http://{host}" if origin == "same" else origin
    if token is not None:
        headers["Authorization"] = token.encode()
    bare = TestClient(client.app, base_url=BASE)
    return bare.request(method, path.replace("{id}", "some-id"), headers=headers, content=b"{}").status_code


@pytest.mark.parametrize(("method", "path"), [*rules.RULES, *EXTRA])
def test_every_route_refuses_foreign_hosts_origins_and_tokens(client: TestClient, method: str, path: str) -> None:
    good_token = f"Bearer {TOKEN}"
    refused = 0
    for (host, host_ok), (origin, origin_ok) in itertools.product(HOSTS.items(), ORIGINS.items()):
        if host_ok and origin_ok:
            continue
        assert _ask(client, method, path, host, origin, good_token) == (403 if host_ok else 421), (host, origin)
        refused += 1
    for token, token_ok in TOKENS.items():
        if not token_ok:
            assert _ask(client, method, path, "127.0.0.1:4777", None, token) == 401, token
            refused += 1
    assert refused > 90
    if path != "/v1/events":
        for host, token in itertools.product(
            [one for one, fine in HOSTS.items() if fine], [one for one, fine in TOKENS.items() if fine]
        ):
            for origin in (None, "same"):
                assert _ask(client, method, path, host, origin, token) not in (401, 403, 421), (host, token, origin)


@pytest.mark.parametrize(("method", "path"), [one for one in rules.RULES if one[0] in ("POST", "PATCH")])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_writes_need_the_json_content_type(client: TestClient, method: str, path: str, kind: str) -> None:
    """A form on a foreign page can send everything but this without asking first."""
    headers = {"Content-Type": kind} if kind else {}
    assert client.request(method, path, headers=headers, content=b"{}").status_code == 415


def test_a_wrong_token_is_told_from_none(client: TestClient) -> None:
    """After a move of the home folder both are sent with the best of intentions."""
    wrong = client.get("/healthz", headers={"Authorization": "Bearer another"}).json()
    assert (wrong["type"], wrong["detail"]) == ("urn:recollect:problem:no-token", "this is not the daemon's token")
    del client.headers["Authorization"]
    none = client.get("/healthz")
    assert none.json()["detail"] == "a token is needed"
    assert none.headers["WWW-Authenticate"] == 'Bearer realm="recollect"'


def test_two_hosts_or_two_tokens_are_refused() -> None:
    guard = Guard(Other(), TOKEN)
    for double in ((b"host", b"evil.example"), (b"authorization", f"Bearer {TOKEN}".encode())):
        raw = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {TOKEN}".encode()), double]
        headers = Request({"type": "http", "headers": raw}).headers
        problem = guard.objection("GET", "/", headers)
        assert problem is not None
        assert problem.status in (401, 421)


def test_web_sockets_are_closed(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect("/v1/events", headers=BEARER):
        pass
    assert closed.value.code == 1008


def test_a_route_without_a_rule_is_not_built(client: TestClient, home: Path) -> None:
    app: FastAPI = client.app  # type: ignore[assignment]
    require_rules(app)
    app.add_api_route("/v1/new", _mcp, methods=["GET"])
    with pytest.raises(RuntimeError, match="/v1/new"):
        require_rules(app)
    with open_memory(home, "other.db") as engine, pytest.raises(RuntimeError, match="/stowaway"):
        build_app(Door(engine), TOKEN, mounts=[Mounted("/stowaway", Other())])


def test_a_rule_without_a_route_is_found(client: TestClient) -> None:
    app: FastAPI = client.app  # type: ignore[assignment]
    app.router.routes[:] = [one for one in app.router.routes if getattr(one, "path", "") != "/settings"]
    with pytest.raises(RuntimeError, match="/settings"):
        require_rules(app)


def test_mounted_apps_see_their_path_and_run_with_the_app(home: Path) -> None:
    from contextlib import asynccontextmanager

    seen: list[str] = []

    @asynccontextmanager
    async def running():  # type: ignore[no-untyped-def]
        seen.append("in")
        yield
        seen.append("out")

    page = Mounted("/", Other())
    with served(home, mounts=(Mounted("/mcp", Other(), running), page)) as client:
        for method in ("GET", "POST", "DELETE"):
            answer = client.request(method, "/mcp", headers={"Content-Type": "application/json"})
            assert answer.json() == {"path": "/mcp"}
        assert client.get("/").json() == {"path": "/"}
        assert client.get("/page.js/elsewhere").status_code == 404
        assert client.get("/healthz").json() == {"status": "ok"}
        assert seen == ["in"]
    assert seen == ["in", "out"]


def test_no_answer_allows_other_origins(client: TestClient) -> None:
    answer = client.get("/healthz", headers={"Origin": BASE})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_the_description_tells_every_route_and_its_errors(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    for (method, path), rule in rules.RULES.items():
        told = described["paths"][path][method.lower()]["responses"]
        assert {int(one) for one in told if int(one) >= 400} == set(rule.statuses), path
    assert described["security"] == [{"token": []}]
    assert Route  # the mounted apps are no part of it
    assert "/mcp" not in described["paths"]


def test_a_bug_is_told_without_its_words(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the secret text")

    monkeypatch.setattr(door_of(client).engine, "get", broken)
    answer = client.get("/v1/memories/x")
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:recollect:problem:bug"
    assert "secret" not in answer.text


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert read_token(home) is None
    token = ensure_token(home)
    assert len(token) >= 43
    assert ensure_token(home) == token == read_token(home)
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    assert [one.name for one in home.iterdir()] == ["token"]


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    from recollect import InvalidInput

    ensure_token(tmp_path)
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InvalidInput, match="read by others"):
        ensure_token(tmp_path)
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "token").write_text("")
    with pytest.raises(InvalidInput, match="empty"):
        ensure_token(tmp_path)
