"""What the MCP suites share: a client's visit to a server, calls whose results are checked against their schemas."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import jsonschema
from mcp import Client
from mcp_types import CallToolResult, TextContent

TOOLS = [
    "memory_search",
    "memory_recall",
    "memory_ask",
    "memory_remember",
    "memory_update",
    "memory_forget",
    "memory_expand",
    "memory_link",
    "memory_list",
    "memory_consolidate",
    "memory_status",
]
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"


class Visit:
    """One client at a server, whichever its kind: both have call_tool and list_tools."""

    def __init__(self, client: Any, schemas: dict[str, dict[str, Any]]) -> None:
        self.client = client
        self._schemas = schemas

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content, which must be what the output schema promises, down to the last field's name."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        jsonschema.validate(result.structured_content, self._schemas[tool])
        jsonschema.validate(result.structured_content, closed(self._schemas[tool]))
        assert text_of(result)
        return result.structured_content

    async def text(self, tool: str, **arguments: Any) -> str:
        return text_of(await self.result(tool, **arguments))

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The error text: what is wrong, and a next step."""
        result = await self.result(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        assert "Next step: " in text_of(result)
        return text_of(result)

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)


def text_of(result: CallToolResult) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def closed(schema: Any) -> Any:
    """The schema with no room for fields that it does not name: what we return today is all declared."""
    if isinstance(schema, dict):
        return {name: False if schema.get("properties") and name == "additionalProperties" else closed(one)
                for name, one in schema.items()}  # fmt: skip
    return [closed(one) for one in schema] if isinstance(schema, list) else schema


async def schemas_of(client: Any) -> dict[str, dict[str, Any]]:
    return {one.name: one.output_schema for one in (await client.list_tools()).tools}


def visit(server: Any, work: Callable[[Visit], Awaitable[Any]], **options: Any) -> Any:
    """Let a client of our choice do some work at a server: an object, a URL, a command."""

    failures: list[BaseException] = []

    async def run() -> Any:
        async with Client(server, **options) as client:
            try:
                return await work(Visit(client, await schemas_of(client)))
            except Exception as failure:  # raised below as itself, not inside groups of groups
                failures.append(failure)

    answer = anyio.run(run)
    for failure in failures:
        raise failure
    return answer


async def every_tool(at: Visit) -> dict[str, dict[str, Any]]:
    """One small story that needs all eleven tools; returns what each said."""
    old = await at.call("memory_remember", content="We run MySQL 5 in production", type="decision", tags=["db"])
    new = await at.call("memory_remember", content="The shop's production database is PostgreSQL 16", type="decision")
    said = {"memory_remember": new}
    said["memory_link"] = await at.call("memory_link", source=new["id"], type="supersedes", target=old["id"])
    said["memory_update"] = await at.call("memory_update", id=new["id"], tags=["db", "shop"], confidence=0.95)
    said["memory_search"] = await at.call("memory_search", query="production database", explain=True)
    said["memory_recall"] = await at.call("memory_recall", context="migrate the production database")
    said["memory_ask"] = await at.call("memory_ask", question="Which database is in production?")
    said["memory_expand"] = await at.call("memory_expand", id=new["id"])
    said["memory_list"] = await at.call("memory_list", type="decision", limit=1)
    said["memory_consolidate"] = await at.call("memory_consolidate", dry_run=True)
    said["memory_status"] = await at.call("memory_status")
    said["memory_forget"] = await at.call("memory_forget", ids=[old["id"]])
    assert said["memory_search"]["hits"][0]["id"] == new["id"]
    assert new["id"] in said["memory_recall"]["ids"]
    assert said["memory_ask"]["found"]
    assert new["id"] in [one["id"] for one in said["memory_ask"]["citations"]]
    assert said["memory_expand"]["links"][0]["target"] == old["id"]
    assert said["memory_list"]["memories"][0]["id"] == new["id"]
    assert said["memory_status"]["memories"] == 2
    assert said["memory_forget"] == {"forgotten": 1, "ids": [old["id"]]}
    assert set(said) == set(TOOLS)
    return said


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
