"""Ids that an import may bring: whatever a store holds, every door can address."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from mcp import Client

from recollect.doors.cli import routing
from recollect.doors.mcp.server import build_server
from recollect.doors.mcp.telling import address
from recollect.importers import import_jsonl
from recollect.importers.format import ID_BYTES, to_line
from recollect.settings import load
from tests.doors.conftest import Cli
from tests.doors.http_cases import Daemon, daemon, open_memory

IDS = [
    "notes/2024/db.md", "/etc/passwd", "a//b/", "what?now#here", "50%2Foff", "two words", " edges ", "..", ".",
    "a/../b", "batch", "--json", "-x", "Ünï/ço∂é", "a&b=c;d+e", 'q"uote', "back\\slash", "x" * ID_BYTES,
]  # fmt: skip
BASE = {"RECOLLECT_EMBEDDER": "fake", "RECOLLECT_RERANKER": "none", "NO_COLOR": "1"}


def export() -> str:
    facts = {"kind": "memory", "created_at": "2026-05-01T12:00:00.000Z"}
    lines = [{**facts, "id": id, "content": f"odd text {place}"} for place, id in enumerate(["anchor", *IDS], start=-1)]
    return "".join(map(to_line, [{"format": "recollect", "version": 1}, *lines]))


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Path, Daemon]]:
    folder = Path(tempfile.mkdtemp(prefix="rc-"))
    try:
        home = folder / "h"
        home.mkdir()
        with open_memory(home, "memories.db") as engine:
            assert import_jsonl(engine.store, io.StringIO(export())).added == len(IDS) + 1
        with daemon(home, **BASE) as one:
            yield home, one
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("id", IDS)
def test_http_reads_changes_links_and_leaves_out_every_id(running: tuple[Path, Daemon], id: str) -> None:
    ask, path = running[1].ask, f"/v1/memories/{quote(id, safe='')}"
    assert (lambda answer: (answer[0], answer[1]["id"]))(ask("GET", path)) == (200, id)
    assert ask("GET", f"{path}?expand=true")[1]["id"] == id
    assert ask("PATCH", path, {"pinned": True})[1]["id"] == id
    assert ask("POST", "/v1/links", {"source": id, "type": "see-also", "target": "anchor"})[0] == 201
    status, answer = ask("POST", "/v1/recall", {"query": "odd text", "limit": 50, "exclude": [id], "mode": "bm25"})
    found = {hit["id"] for hit in answer["hits"]}
    assert status == 200 and found and id not in found


def test_http_goes_through_a_list_from_id_to_id(running: tuple[Path, Daemon]) -> None:
    seen, cursor = [], ""
    while cursor is not None:
        status, page = running[1].ask("GET", f"/v1/memories?limit=1{cursor}")
        assert status == 200
        seen += [memory["id"] for memory in page["memories"]]
        cursor = None if page["next_cursor"] is None else f"&cursor={quote(page['next_cursor'], safe='')}"
    assert sorted(seen) == sorted([*IDS, "anchor"])


def test_http_counts_routes_not_ids(running: tuple[Path, Daemon]) -> None:
    running[1].ask("GET", "/v1/memories/of%2Fnobody")
    metrics = running[1].ask("GET", "/metrics")[1]
    assert 'route="/v1/memories/{id}"' in metrics and "nobody" not in metrics


def test_an_id_is_taken_to_its_last_character(running: tuple[Path, Daemon]) -> None:
    assert running[1].ask("GET", "/v1/memories/anchor%0A")[0] == 404
    assert running[1].ask("GET", "/v1/memories/")[0] == 404


def test_the_command_line_asks_the_daemon_for_every_id(running: tuple[Path, Daemon]) -> None:
    chosen = load({}, home=running[0], embedder="fake", reranker="none")
    assert routing.Daemon(chosen).texts(IDS) == {id: f"odd text {place}" for place, id in enumerate(IDS)}


def test_the_command_line_takes_every_id(cli: Cli) -> None:
    assert cli("import", "-", input=export()).code == 0
    for id in IDS:
        assert cli("show", "--json", "--", id).document["id"] == id
        assert cli("link", "--", id, "see-also", "anchor").code == 0
        assert cli("pin", "--", id).code == 0
    assert cli("forget", "--yes", "--", *IDS).code == 0


def test_mcp_reads_every_id_as_a_resource_and_tells_its_address(tmp_path: Path) -> None:
    with open_memory(tmp_path) as engine:
        import_jsonl(engine.store, io.StringIO(export()))

        async def work() -> None:
            async with Client(build_server(engine)) as client:
                for place, id in enumerate(IDS):
                    found = (await client.read_resource(address(id))).contents[0]
                    assert f"odd text {place}" in found.text  # type: ignore[union-attr]
                    assert not (await client.call_tool("memory_expand", {"id": id})).is_error

        anyio.run(work)


def test_http_forgets_every_id(running: tuple[Path, Daemon]) -> None:
    """The last of the module: nothing is left for others."""
    for id in IDS:
        escaped = quote(id, safe="").replace(".", "%2E")
        assert running[1].ask("DELETE", f"/v1/memories/{escaped}")[0] == 204, id
    assert [one["id"] for one in running[1].ask("GET", "/v1/memories")[1]["memories"]] == ["anchor"]
