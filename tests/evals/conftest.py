"""A small data set in BEIR layout, settings with the fake embedder, and a command line of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recollect import settings as configuration
from recollect.evals import sources
from recollect.evals.bench import Bench
from recollect.evals.sources import Source
from recollect.settings import Settings

Rows = Sequence[Mapping[str, Any]]

CORPUS: Rows = (
    {"_id": "a1", "title": "Harbour", "text": "The ferry leaves the harbour at noon."},
    {"_id": "a2", "text": "Anna keeps bees behind the old barn."},
    {"_id": "a3", "text": "The bakery sells rye bread on Fridays."},
    {"_id": "a4", "text": "Rain closed the mountain road for a week."},
    {"_id": "a5", "text": "The library lends telescopes to members."},
    {"_id": "a6", "text": "Bees need water near the hive in summer."},
)
QUERIES: Rows = (
    {"_id": "q1", "text": "when does the ferry leave the harbour", "metadata": {"category": "single"}},
    {"_id": "q2", "text": "where are the bees of Anna", "metadata": {"category": "single"}},
    {"_id": "q3", "text": "rye bread on Fridays", "metadata": {"category": "food"}},
    {"_id": "q4", "text": "who juggles chainsaws", "metadata": {"abstention": True}},
    {"_id": "q5", "text": "who does not lend telescopes", "metadata": {"category": "adversarial"}},
    {"_id": "q6", "text": "nobody judged this", "metadata": {}},
)
QRELS = (("q1", "a1", 1), ("q2", "a2", 2), ("q2", "a6", 1), ("q3", "a3", 1), ("q5", "a5", 1), ("q6", "a1", 0))


def write_set(
    folder: Path, corpus: Rows = CORPUS, queries: Rows = QUERIES,
    qrels: Sequence[tuple[str, str, int]] = QRELS, haystacks: Rows = (),
) -> Path:  # fmt: skip
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries), ("haystacks", haystacks)):
        if rows:
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{document}\t{grade}" for query, document, grade in qrels)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return configuration.load({}, home=tmp_path / "home", embedder="fake", reranker="none")


@pytest.fixture
def source(settings: Settings, tmp_path: Path) -> Source:
    return Source(settings, tmp_path / "cache")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_set(tmp_path / "tiny")


Opened = Callable[..., Bench]


@pytest.fixture
def opened(source: Source) -> Iterator[Opened]:
    """Opens data sets as benches and closes them all at the end."""
    with ExitStack() as stack:
        yield lambda folder, **more: stack.enter_context(sources.public(folder, replace(source, **more)))


@pytest.fixture
def bench(opened: Opened, tiny: Path) -> Bench:
    return opened(tiny)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command that must succeed (or end with `code`); gives standard output."""
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        monkeypatch.delenv(name)
    for name, value in (("HOME", str(tmp_path / "home")), ("EMBEDDER", "fake"), ("RERANKER", "none")):
        monkeypatch.setenv(f"RECOLLECT_{name}", value)
    monkeypatch.setenv("NO_COLOR", "1")
    from recollect.doors.cli.app import app

    def run(*args: object, code: int = 0) -> str:
        done = CliRunner().invoke(app, [str(one) for one in args])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.stderr
        return done.stdout

    return run
