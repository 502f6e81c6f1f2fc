"""What clients are told without asking again: changes of memories they watch, and log lines of the level they set."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import LoggingMessageNotificationParams, ResourceUpdatedNotification

from recollect.doors.mcp import telling
from recollect.doors.mcp.server import build_server
from recollect.engine import Engine, open_engine
from tests.doors.http_cases import daemon

PATIENCE_SECONDS = 60
"""Only so that a hanging test ends; nothing here is measured."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(home=tmp_path, embedder="fake", reranker="none", background=False) as opened:
        yield opened


@pytest.fixture(autouse=True)
def old_ways_are_allowed() -> Iterator[None]:
    """The client warns of what 2026-07-28 no longer has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Heard:
    """What a client was told, as it comes."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self.lines: list[tuple[str, Any]] = []

    async def message(self, message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.uris.append(str(message.params.uri))

    async def log(self, params: LoggingMessageNotificationParams) -> None:
        self.lines.append((params.level, params.data))


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not true():
            await anyio.sleep(0.01)


def visited(server: Any, work: Callable[[Client, Heard], Awaitable[None]], mode: str, **more: Any) -> None:
    async def run() -> None:
        heard = Heard()
        async with Client(
            server, mode=mode, message_handler=heard.message, logging_callback=heard.log, **more
        ) as client:
            await work(client, heard)

    anyio.run(run)


async def remembered(client: Any, text: str) -> str:
    said = await client.call_tool("memory_remember", {"content": text})
    return str(said.structured_content["id"])


def test_a_watched_memory_tells_of_its_changes_until_it_is_watched_no_more(engine: Engine) -> None:
    async def work(client: Client, heard: Heard) -> None:
        watched, other = await remembered(client, "The boat is red"), await remembered(client, "A house has two doors")
        await client.subscribe_resource(f"memory://{watched}")
        await client.call_tool("memory_update", {"id": other, "tags": ["x"]})
        await client.call_tool("memory_update", {"id": watched, "tags": ["x"]})
        await client.call_tool("memory_search", {"query": "boat"})
        await client.call_tool("memory_update", {"id": watched, "confidence": 7})
        await until(lambda: heard.uris == [f"memory://{watched}"])
        await client.unsubscribe_resource(f"memory://{watched}")
        await client.call_tool("memory_update", {"id": watched, "tags": ["y"]})
        await client.subscribe_resource(f"memory://{watched}")
        await client.call_tool("memory_forget", {"ids": [watched]})
        await until(lambda: len(heard.uris) == 2)
        assert set(heard.uris) == {f"memory://{watched}"}

    visited(build_server(engine), work, "legacy")


def test_clients_of_the_newest_protocol_listen_to_the_same_changes(engine: Engine) -> None:
    async def work(client: Client, _: Heard) -> None:
        watched, other = await remembered(client, "The boat is red"), await remembered(client, "A house has two doors")
        with anyio.fail_after(PATIENCE_SECONDS):
            async with client.listen(resource_subscriptions=[f"memory://{watched}"]) as events:
                await client.call_tool("memory_update", {"id": other, "tags": ["x"]})
                await client.call_tool("memory_update", {"id": watched, "tags": ["x"]})
                event: Any = await anext(aiter(events))
                assert event.uri == f"memory://{watched}"

    visited(build_server(engine), work, "auto")


@pytest.mark.parametrize(
    ("tool", "said", "ids"),
    [
        ("memory_update", {"id": "a"}, ["a"]),
        ("memory_remember", {"id": "a", "action": "added"}, []),
        ("memory_remember", {"id": "a", "action": "merged"}, ["a"]),
        ("memory_forget", {"ids": ["a", "b", "a"]}, ["a", "b"]),
        ("memory_consolidate", {"merges": [{"kept": "a", "merged": "b"}], "dry_run": True}, []),
        (
            "memory_consolidate",
            {"merges": [{"kept": "a", "merged": "b"}, {"kept": "a", "merged": "c"}], "dry_run": False},
            ["a", "b", "c"],
        ),
        ("memory_search", {"hits": [{"id": "a"}]}, []),
    ],
)
def test_a_result_tells_what_was_changed(tool: str, said: dict[str, Any], ids: list[str]) -> None:
    assert telling.changed_by(tool, said) == ids


def test_the_level_is_honoured(engine: Engine) -> None:
    async def work(client: Client, heard: Heard) -> None:
        await client.call_tool("memory_status")
        await client.set_logging_level("debug")
        await client.call_tool("memory_status")
        await until(lambda: len(heard.lines) == 1)
        level, facts = heard.lines[0]
        assert (level, facts["tool"], facts["failed"]) == ("debug", "memory_status", False)
        await client.set_logging_level("notice")
        await client.call_tool("memory_status")
        await client.call_tool("memory_expand", {"id": "a canary"})
        await until(lambda: len(heard.lines) == 2)
        assert (heard.lines[1][0], heard.lines[1][1]["failed"]) == ("notice", True)
        await client.set_logging_level("error")
        await client.call_tool("memory_expand", {"id": "a canary"})
        assert len(heard.lines) == 2
        assert "canary" not in str(heard.lines)

    visited(build_server(engine), work, "legacy")


def test_what_worked_less_well_is_a_warning(tmp_path: Path) -> None:
    async def work(client: Client, heard: Heard) -> None:
        await client.set_logging_level("warning")
        await remembered(client, "The boat is red")
        found = await client.call_tool("memory_search", {"query": "boat"})
        assert found.structured_content is not None
        await until(lambda: len(heard.lines) == len(found.structured_content["notes"]) > 0)  # type: ignore[index]
        assert {level for level, _ in heard.lines} == {"warning"}

    with open_engine(home=tmp_path, embedder="http://127.0.0.1:9/v1", reranker="none", background=False) as words_only:
        visited(build_server(words_only), work, "legacy")


def test_too_many_subscriptions_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST_WATCHED", 2)

    async def work(client: Client, _: Heard) -> None:
        for name in ("a", "b", "b"):
            await client.subscribe_resource(f"memory://{name}")
        with pytest.raises(MCPError, match="unsubscribe"):
            await client.subscribe_resource("memory://c")

    visited(build_server(engine), work, "legacy")


def test_in_a_daemon_changes_by_http_are_told_too_and_each_client_has_its_own(home: Path) -> None:
    with daemon(home) as running:
        id = running.ask("POST", "/v1/memories", {"content": "The boat is red"})[1]["id"]
        bearer = {"Authorization": f"Bearer {running.token}"}

        async def run() -> None:
            import httpx2

            heard, unheard = Heard(), Heard()
            async with (
                httpx2.AsyncClient(headers=bearer) as http,
                streamable_http_client(f"{running.url}/mcp", http_client=http) as (read, write),
                ClientSession(read, write, message_handler=heard.message) as watching,
                streamable_http_client(f"{running.url}/mcp", http_client=http) as (other_read, other_write),
                ClientSession(other_read, other_write, message_handler=unheard.message) as other,
            ):
                await watching.initialize()
                await other.initialize()
                await watching.subscribe_resource(f"memory://{id}")
                change = {"tags": ["x"]}
                await anyio.to_thread.run_sync(lambda: running.ask("PATCH", f"/v1/memories/{id}", change))
                await until(lambda: heard.uris == [f"memory://{id}"])
                assert unheard.uris == []

        anyio.run(run)
