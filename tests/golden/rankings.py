"""Sixty memories of one project, twelve questions, every profile: exact ids, scores and contributions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect import pipeline, profiles
from recollect.domain.changes import AddLink, Put
from recollect.domain.memory import Link, Memory, Scope
from recollect.domain.question import Filter
from recollect.encoders.fake import FakeEmbedder
from recollect.legs.running import Tools
from recollect.ports import Embedded, Store
from recollect.stages.parse import parse
from recollect.stores.memory import open_memory
from recollect.stores.sqlite import open_sqlite

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)

QUESTIONS = (
    "which database do we use?",
    "connection pool exhausted",
    "conection pol exausted",
    "what is my favourite way to review code?",
    "when did the payment incident happen?",
    "celery broker for background jobs",
    "redis AND sessions",
    '"booking" NOT redis',
    "kiosk cookies reboot",
    "what happened last month with deploys?",
    "type:gotcha timezone",
    "zzzz qqqq",
)


def fill(store: Store) -> None:
    """The corpus with the vectors of the deterministic embedder."""
    rows = [json.loads(line) for line in (HERE / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    store.records.write([Put(_memory(row["memory"])) for row in rows if "memory" in row])
    links = [row["link"] for row in rows if "link" in row]
    store.records.write([AddLink(Link(one["source"], one["type"], one["target"], NOW)) for one in links])
    embedder = FakeEmbedder()
    assert store.vectors is not None
    waiting = store.vectors.missing(embedder.id, 1000)
    entries = [Embedded(one.id, one.content_hash, embedder.embed_documents([one.content])) for one in waiting]
    store.vectors.put(embedder.id, entries)


def _open_postgres(folder: Path) -> Store:
    from recollect.stores.postgres.opening import open_postgres
    from tests.postgres_server import shared_server

    shared_server().end_of_test()
    return open_postgres(shared_server().kept(str(folder)))


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: open_memory(),
    "sqlite": lambda folder: open_sqlite(folder / "golden.db"),
    "postgres": _open_postgres,
}


def rankings(profile: str, kind: str) -> dict[str, Any]:
    """For every question the hits with their scores and reasons, and how many were dropped at which stage."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as executor:
        store = STORES[kind](Path(folder))
        try:
            fill(store)
            tools = Tools(store, executor, FakeEmbedder())
            return {text: _answer(text, profile, tools) for text in QUESTIONS}
        finally:
            store.close()


def _answer(text: str, profile: str, tools: Tools) -> dict[str, Any]:
    recipe = profiles.load(profile)
    question = parse(
        text, now=NOW, filter=Filter(), limit=recipe.limit, mode="auto", sort_by="relevance", **recipe.query.options
    )
    answer = pipeline.recall(question, recipe, tools)
    stages = [one.stage for one in answer.dropped]
    return {
        "hits": [
            {
                "id": hit.id,
                "score": hit.score,
                "lists": {part.list: [part.rank, part.raw, part.value] for part in hit.contributions},
                "priors": {step.prior: step.after for step in hit.adjustments},
            }
            for hit in answer
        ],
        "dropped": {stage: stages.count(stage) for stage in sorted(set(stages))},
        "rungs": [one.rung for one in answer.trace.attempts],
    }


def _memory(row: dict[str, Any]) -> Memory:
    made = datetime.fromisoformat(row["created_at"])
    fields = {name: row[name] for name in ("id", "content", "type", "confidence", "importance", "access_count")}
    return Memory(
        **fields,
        tags=tuple(row["tags"]),
        scope=Scope(project=row["project"]),
        created_at=made,
        updated_at=made,
        accessed_at=datetime.fromisoformat(row["accessed_at"]),
        pinned=row.get("pinned", False),
    )
