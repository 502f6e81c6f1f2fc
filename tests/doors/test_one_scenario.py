"""One story told through every door: library, command line, HTTP and MCP must answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from http_cases import events_of, open_memory, served
from mcp_cases import Visit, visit

from recollect.doors import wire
from recollect.doors.answering import answered, ask
from recollect.doors.mcp.server import build_server
from tests.doors.conftest import Cli
from tests.postgres_server import shared_server

STORY = (
    ("MySQL 5 runs in production", {"type": "decision", "tags": ["db"]}),
    ("The shop's production database is PostgreSQL 16", {"type": "decision", "tags": ["db"]}),
    ("Lunch is served at noon in the canteen", {"type": "fact", "tags": []}),
)
PROFILE = "importance-prior"
QUESTION = "which database runs in production?"


class Library:
    """The engine itself: what the other doors are measured by."""

    def __init__(self, home: Path, store: str) -> None:
        self.engine = open_memory(home, store)

    def remember(self, content: str, type: str, tags: list[str]) -> Any:
        return wire.receipt_to_dict(self.engine.remember(content, type=type, tags=tags))

    def recall(self, query: str) -> Any:
        return wire.recall_to_dict(self.engine.recall(query, profile=PROFILE, mode="bm25"))

    def update(self, id: str, confidence: float) -> Any:
        return wire.memory_to_dict(self.engine.update(id, confidence=confidence))

    def link(self, source: str, target: str) -> Any:
        return wire.link_to_dict(self.engine.link(source, "supersedes", target))

    def forget(self, id: str) -> None:
        self.engine.forget(id)

    def ask(self, question: str) -> Any:
        return wire.answer_to_dict(answered(ask(self.engine, question)))


class CommandLine:
    def __init__(self, cli: Cli, store: str) -> None:
        self.cli = cli
        self.store = store

    def _run(self, *args: str) -> Any:
        ran = self.cli(*args, "--json", "--store", self.store)
        assert ran.code == 0, ran.err
        return ran.document

    def remember(self, content: str, type: str, tags: list[str]) -> Any:
        return self._run(
            "remember", content, "--type", type, "--no-wait", *(part for tag in tags for part in ("--tag", tag))
        )

    def recall(self, query: str) -> Any:
        return self._run("recall", query, "--profile", PROFILE, "--mode", "bm25", "--explain")

    def update(self, id: str, confidence: float) -> Any:
        return self._run("update", id, "--confidence", str(confidence))

    def link(self, source: str, target: str) -> Any:
        return self._run("link", source, "supersedes", target)

    def forget(self, id: str) -> None:
        self._run("forget", id, "--yes")


class Http:
    def __init__(self, client: Any) -> None:
        self.client = client

    def _ok(self, response: Any) -> Any:
        assert response.status_code < 300, response.text
        return response.json() if response.content else None

    def remember(self, content: str, type: str, tags: list[str]) -> Any:
        return self._ok(self.client.post("/v1/memories", json={"content": content, "type": type, "tags": tags}))

    def recall(self, query: str) -> Any:
        asked = {"query": query, "profile": PROFILE, "mode": "bm25"}
        return self._ok(self.client.post("/v1/recall", json=asked))

    def update(self, id: str, confidence: float) -> Any:
        return self._ok(self.client.patch(f"/v1/memories/{id}", json={"confidence": confidence}))

    def link(self, source: str, target: str) -> Any:
        return self._ok(self.client.post("/v1/links", json={"source": source, "type": "supersedes", "target": target}))

    def forget(self, id: str) -> None:
        self._ok(self.client.delete(f"/v1/memories/{id}"))

    def ask(self, question: str) -> Any:
        events = events_of(self.client.post("/v1/ask", json={"question": question}).text)
        return next(data for name, data in events if name == "done")


def tell(door: Any) -> dict[str, Any]:
    """The story, and what the door said, with ids replaced by the place of their memory in the story."""
    ids = [door.remember(content, **fields)["id"] for content, fields in STORY]
    again = door.remember(STORY[0][0].upper(), **STORY[0][1])
    before = door.recall(QUESTION)
    changed = door.update(ids[1], 0.95)
    door.link(ids[1], ids[0])
    after = door.recall(QUESTION)
    answer = door.ask(QUESTION) if hasattr(door, "ask") else None
    door.forget(ids[2])
    gone = door.recall("lunch canteen")
    return {
        "again": (again["action"], ids.index(again["id"])),
        "before": _hits(before, ids),
        "changed": (changed["confidence"], changed["content"]),
        "after": _hits(after, ids),
        "gone": _hits(gone, ids),
        "answer": None if answer is None else (answer["found"], [ids.index(one["id"]) for one in answer["citations"]]),
    }


def _hits(answer: Any, ids: list[str]) -> list[Any]:
    """Place in the story, score and reasons of every hit."""
    return [
        (
            ids.index(hit["id"]),
            pytest.approx(hit["score"], abs=1e-9),
            hit["redirected_from"] is not None,
            [(part["list"], part["rank"], pytest.approx(part["raw"])) for part in hit["contributions"]],
            [step["prior"] for step in hit["adjustments"]],
        )
        for hit in answer["hits"]
    ]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The store of each door, by its name."""
    if request.param == "sqlite":
        yield lambda door: str(tmp_path / door / "store.db")
        return
    yield lambda door: shared_server().kept(door)
    shared_server().end_of_test()


@contextmanager
def told_by_library(home: Path, store: str) -> Iterator[dict[str, Any]]:
    library = Library(home, store)
    try:
        yield tell(library)
    finally:
        library.engine.close()


def test_the_command_line_answers_like_the_library(cli: Cli, tmp_path: Path, stores: Callable[[str], str]) -> None:
    with told_by_library(tmp_path / "library", stores("library")) as expected:
        found = tell(CommandLine(cli, stores("cli")))
        assert {**found, "answer": None} == {**expected, "answer": None}


def test_http_answers_like_the_library(tmp_path: Path, stores: Callable[[str], str]) -> None:
    with (
        told_by_library(tmp_path / "library", stores("library")) as expected,
        served(tmp_path / "http", store=stores("http")) as client,
    ):
        assert tell(Http(client)) == expected


def test_mcp_answers_like_the_library(tmp_path: Path, stores: Callable[[str], str]) -> None:
    with (
        told_by_library(tmp_path / "library", stores("library")) as expected,
        open_memory(tmp_path / "mcp", stores("mcp")) as engine,
    ):

        async def work(at: Visit) -> dict[str, Any]:
            search = {"profile": PROFILE, "mode": "bm25", "explain": True}
            ids = [(await at.call("memory_remember", content=content, **fields))["id"] for content, fields in STORY]
            again = await at.call("memory_remember", content=STORY[0][0].upper(), **STORY[0][1])
            before = await at.call("memory_search", query=QUESTION, **search)
            changed = await at.call("memory_update", id=ids[1], confidence=0.95)
            await at.call("memory_link", source=ids[1], type="supersedes", target=ids[0])
            after = await at.call("memory_search", query=QUESTION, **search)
            answer = await at.call("memory_ask", question=QUESTION)
            await at.call("memory_forget", ids=[ids[2]])
            gone = await at.call("memory_search", query="lunch canteen", **search)
            return {
                "again": (again["action"], ids.index(again["id"])),
                "before": _hits(before, ids),
                "changed": (changed["confidence"], changed["content"]),
                "after": _hits(after, ids),
                "gone": _hits(gone, ids),
                "answer": (answer["found"], [ids.index(one["id"]) for one in answer["citations"]]),
            }

        assert visit(build_server(engine), work) == expected
