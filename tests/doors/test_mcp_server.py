"""The server as a whole: what it tells clients about itself, and that it never changes its words unnoticed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_cases import TOOLS, Visit, canonical, visit
from mcp_types import PromptReference, ResourceTemplateReference

from recollect import Scope
from recollect.doors import wire
from recollect.doors.mcp import reference
from recollect.doors.mcp.server import INSTRUCTIONS, build_server
from recollect.engine import Engine, open_engine

DOCS = Path(__file__).parents[2] / "docs"

READS = {"memory_search", "memory_recall", "memory_ask", "memory_expand", "memory_list", "memory_status"}
DESTROYS = {"memory_update", "memory_forget"}
REPEATABLE = READS | {"memory_update", "memory_link", "memory_consolidate"}

# A tool's words are read and trusted by models: a change must be meant. After reading the difference in docs/mcp.md,
# take the new hashes from the failing test.
PINNED = {
    "memory_search": "e3256fe52e006597",
    "memory_recall": "b53136d469101b8a",
    "memory_ask": "4f5896b18bcb6487",
    "memory_remember": "c4bb389b5c02e6c2",
    "memory_update": "f24b14fbb7ab0999",
    "memory_forget": "508536f09796f7ac",
    "memory_expand": "ebaa2c6c7ebb708c",
    "memory_link": "e6cc99ec1de6742b",
    "memory_list": "31438dff2ad36c2c",
    "memory_consolidate": "5eda7b67a0b7678a",
    "memory_status": "0ae6e10ed6e0a550",
    "instructions": "f54b9f7092213046",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(home=tmp_path, embedder="fake", reranker="none", background=False) as opened:
        yield opened


def never() -> Engine:
    raise AssertionError("the store was opened")


def test_what_models_read_is_pinned() -> None:
    async def work(at: Visit) -> dict[str, str]:
        return {one.name: _hash([one.title, one.description, one.input_schema]) for one in
                (await at.client.list_tools()).tools}  # fmt: skip

    assert {**visit(build_server(never), work), "instructions": _hash(INSTRUCTIONS)} == PINNED


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def test_annotations_tell_what_each_tool_may_do() -> None:
    async def work(at: Visit) -> None:
        found = {one.name: one.annotations for one in (await at.client.list_tools()).tools}
        assert list(found) == TOOLS
        assert {name for name, one in found.items() if one.read_only_hint} == READS
        assert {name for name, one in found.items() if one.destructive_hint} == DESTROYS
        assert {name for name, one in found.items() if one.idempotent_hint} == REPEATABLE
        assert not any(one.open_world_hint for one in found.values())

    visit(build_server(never), work)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_learns_everything_before_the_store_is_opened(mode: str) -> None:
    async def work(at: Visit) -> None:
        assert at.client.server_info.name == "recollect"
        assert at.client.instructions == INSTRUCTIONS
        assert len((await at.client.list_tools()).tools) == 11
        assert (await at.client.list_resources()).resources == []
        assert (await at.client.list_resource_templates()).resource_templates[0].uri_template == "memory://{id}"
        assert [one.name for one in (await at.client.list_prompts()).prompts] == ["recall"]

    visit(build_server(never), work, mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_memory_is_a_resource(engine: Engine, mode: str) -> None:
    stored = engine.remember("Ünïcode survives", tags=["x"])

    async def work(at: Visit) -> None:
        found = (await at.client.read_resource(f"memory://{stored.id}")).contents[0]
        assert found.mime_type == "application/json"
        assert json.loads(found.text) == wire.memory_to_dict(engine.get(stored.id))
        for unknown in ("memory://nothing", "memory://..%2F..%2Fetc", "file:///etc/passwd"):
            with pytest.raises(MCPError) as refused:
                await at.client.read_resource(unknown)
            assert refused.value.error.code == -32602

    visit(build_server(engine), work, mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_prompt_recalls(engine: Engine, mode: str) -> None:
    engine.remember("The mascot is a heron", scope=Scope(project="shop"))

    async def work(at: Visit) -> None:
        text = (await at.client.get_prompt("recall", {"topic": "mascot"})).messages[0].content.text
        assert "The mascot is a heron" in text
        nothing = await at.client.get_prompt("recall", {"topic": "mascot", "project": "blog"})
        assert "Nothing relevant" in nothing.messages[0].content.text
        for name, arguments in [("recall", {}), ("recall", {"topic": " "}), ("unknown", {})]:
            with pytest.raises(MCPError, match="Next step") as refused:
                await at.client.get_prompt(name, arguments)
            assert refused.value.error.code == -32602

    visit(build_server(engine), work, mode=mode)


def test_arguments_are_completed_from_the_own_namespace(engine: Engine) -> None:
    stored = engine.remember("One", scope=Scope(project="shop"))
    prompt = PromptReference(type="ref/prompt", name="recall")
    resource = ResourceTemplateReference(type="ref/resource", uri="memory://{id}")

    async def work(at: Visit) -> list[list[str]]:
        asked = [(prompt, "project", "sh"), (prompt, "project", "x"), (prompt, "topic", ""), (resource, "id", "")]
        return [
            (await at.client.complete(ref, {"name": name, "value": value})).completion.values
            for ref, name, value in asked
        ]

    assert visit(build_server(engine), work) == [["shop"], [], [], [stored.id]]
    assert visit(build_server(engine, namespace="other"), work) == [[], [], [], []]


def test_calls_at_the_same_time_do_not_disturb_one_another(engine: Engine) -> None:
    async def work(at: Visit) -> None:
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(_write_and_find, at, number)

    visit(build_server(engine), work)
    assert engine.stats().memories == 40


async def _write_and_find(at: Visit, number: int) -> None:
    written = await at.call("memory_remember", content=f"Locker {number} belongs to person{number}x", type="fact")
    found = await at.call("memory_search", query=f"person{number}x", mode="bm25", limit=1)
    assert [hit["id"] for hit in found["hits"]] == [written["id"]]


def test_making_a_server_leaves_the_programs_logging_alone() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers[:] = []
    try:
        build_server(never)
        assert (root.handlers, root.level) == ([], level)
    finally:
        root.handlers[:] = handlers


def test_the_page_is_what_the_server_says() -> None:
    assert (DOCS / "mcp.md").read_text(encoding="utf-8") == reference.page(), "run `make docs`"
    assert all(f"## `{name}`" in reference.page() for name in TOOLS)
