"""MCP over streamable HTTP: a real server on loopback, both protocol generations, strangers turned away."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from fastapi import FastAPI
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_cases import HANDSHAKE, MODERN, Visit, every_tool, schemas_of, visit
from mcp_types import CreateMessageResult, TextContent

from recollect.doors.mcp.http import PATH, streamable_http_app
from recollect.doors.mcp.server import build_server
from recollect.engine import Engine, open_engine


@contextmanager
def running(app: Any) -> Iterator[int]:
    """The app behind uvicorn on a free loopback port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(home=tmp_path, embedder="fake", reranker="none", background=False) as opened:
        yield opened


@pytest.fixture
def port(engine: Engine) -> Iterator[int]:
    with running(streamable_http_app(build_server(engine))) as listening:
        yield listening


@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", HANDSHAKE)])
def test_the_official_client_uses_every_tool(port: int, mode: str, version: str) -> None:
    async def work(at: Visit) -> None:
        assert at.client.protocol_version == version
        said = await every_tool(at)
        id = said["memory_remember"]["id"]
        assert (await at.client.read_resource(f"memory://{id}")).contents[0].uri == f"memory://{id}"

    visit(f"http://127.0.0.1:{port}{PATH}", work, mode=mode)


def test_a_bare_session_shakes_hands_and_uses_every_tool(port: int) -> None:
    async def run() -> None:
        async with (
            streamable_http_client(f"http://localhost:{port}{PATH}") as (read, write),
            ClientSession(read, write) as session,
        ):
            assert (await session.initialize()).protocol_version == HANDSHAKE
            await every_tool(Visit(session, await schemas_of(session)))

    anyio.run(run)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_clients_model_is_asked_over_http_too(engine: Engine, port: int, mode: str) -> None:
    engine.remember("The library closes at six")

    async def model(context: Any, params: Any) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="At six [1]."), model="m")

    async def work(at: Visit) -> str:
        return (await at.call("memory_ask", question="When does the library close?"))["text"]

    assert visit(f"http://127.0.0.1:{port}{PATH}", work, mode=mode, sampling_callback=model) == "At six [1]."


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_progress_arrives_over_http(engine: Engine, port: int, mode: str) -> None:
    for text in ("The pond is deep", "the pond is  DEEP"):
        engine.remember(text, dedupe=False)
    heard: list[float] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async def work(at: Visit) -> None:
        await at.client.call_tool("memory_consolidate", {}, progress_callback=listen)

    visit(f"http://127.0.0.1:{port}{PATH}", work, mode=mode)
    assert heard == [0, 1]


def test_many_clients_at_once(port: int, engine: Engine) -> None:
    async def one(number: int) -> None:
        mode = "auto" if number % 2 else "legacy"
        async with Client(f"http://127.0.0.1:{port}{PATH}", mode=mode) as client:
            at = Visit(client, await schemas_of(client))
            for place in range(4):
                await at.call("memory_remember", content=f"Guest{number} ordered dish{place}x{number}")

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(one, number)

    anyio.run(run)
    assert engine.stats().memories == 24


def test_the_app_can_be_carried_by_another(engine: Engine) -> None:
    """As the daemon does it: the route is added, the lifespan entered."""
    door = streamable_http_app(build_server(engine))
    outer = FastAPI(lifespan=lambda _: door.router.lifespan_context(door))
    outer.get("/healthz")(lambda: {"status": "ok"})
    outer.router.routes.extend(door.routes)
    with running(outer) as listening:
        visit(f"http://127.0.0.1:{listening}{PATH}", every_tool)
        visit(f"http://127.0.0.1:{listening}{PATH}", _status, mode="legacy")


async def _status(at: Visit) -> None:
    await at.call("memory_status")


def post(port: int, headers: dict[str, str], body: bytes = b"", version: str = HANDSHAKE) -> int:
    """The status of a raw request that, but for its headers, is a good one."""
    client = {"name": "raw", "version": "1"}
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    if version == MODERN:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": client,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
    usual = {
        "Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Mcp-Method": "tools/list",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version,
    }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", PATH, body or message, {**usual, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("version", [HANDSHAKE, MODERN])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "evil.example.com"}, 421),
        ({"Host": "127.0.0.1.evil.example.com"}, 421),
        ({"Host": "127.0.0.1.evil.example.com:80"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Origin": "http://localhost.evil.example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_strangers_are_turned_away(port: int, headers: dict[str, str], status: int, version: str) -> None:
    assert post(port, headers, version=version) == status


def test_a_body_that_is_too_large_is_refused(port: int) -> None:
    assert post(port, {}, b'{"padding": "' + b"x" * (9 * 2**20) + b'"}') == 413
