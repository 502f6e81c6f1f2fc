"""The short way of `recollect recall` reads a command line as the ordinary way reads it, or leaves it alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from recollect.domain.memory import Memory, Scope
from recollect.domain.question import MAX_LIMIT, MODES, SORTS
from recollect.domain.recall import Recall, RecallHit, Trace
from recollect.doors.cli import explaining, recalling, routing, shortcut
from recollect.doors.cli.listing import plain_lines
from recollect.doors.cli.session import Session

NOW = datetime(2026, 6, 1, tzinfo=UTC)
UNDERSTOOD = [
    "deploy",
    "when do we deploy ?",
    "deploy* type:gotcha NOT test",
    "x -n 5 --json",
    "x --limit=7 -q --quiet",
    "-P two-stage x --mode bm25 y",
    "x -t fact --type decision --tag a --tag b --exclude m1 --exclude m2",
    "x -p shop --session s1 --namespace other",
    "x --project= --profile=",
    "x --after 2026-01-01 --before=2026-02-01 --now 2026-03-01T00:00:00Z",
    "x --budget-tokens 400 --sort-by recency --no-rerank --rerank",
    "x --rerank --no-rerank --used --explain --render",
    "x -e --store /somewhere/store.db --limit 3 --limit 4",
    f"x --limit {MAX_LIMIT}",
    *(f"x --mode {mode}" for mode in MODES),
    *(f"x --sort-by {order}" for order in SORTS),
]
LEFT_ALONE = [
    "",
    "--help",
    "x -h",
    "x --direct",
    "x --set fusion.k=10",
    "x --alias a=b",
    "x --limit",
    "x --limit 0",
    f"x --limit {MAX_LIMIT + 1}",
    "x --limit ²",
    "x --limit -5",
    "x -n5",
    "x -eq",
    "x --lim 5",
    "x --json=true",
    "x --mode nosuch",
    "x --sort-by nosuch",
    "x --budget-tokens 0",
    "x -- --json",
    "x -",
    "x --version",
]


class Asked(list[Any]):
    """What would have been asked of a daemon."""

    def __call__(self, run: Session, query: str, asked: dict[str, Any], *, explain: bool, render: bool) -> bool:
        self.append((run.store, run.json, run.quiet, query, {**asked, "tags": tuple(asked["tags"])}, explain, render))
        self[-1][4]["exclude"] = tuple(asked["exclude"])
        return True


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_both_ways_ask_the_same(line: str, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(routing, "routed", asked)
    monkeypatch.setattr(recalling, "routed", asked)
    assert shortcut.recalled(line.split())
    assert cli("recall", *line.split()).code == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize("line", LEFT_ALONE)
def test_what_is_not_understood_is_left_to_the_ordinary_way(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(routing, "routed", asked)
    assert not shortcut.recalled(line.split())
    assert asked == []


def test_whatever_fails_is_left_to_the_ordinary_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> bool:
        raise OSError("the connection broke")

    monkeypatch.setattr(routing, "routed", fails)
    assert not shortcut.recalled(["x"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), max_size=3), st.text(max_size=20))
def test_lines_for_a_pipe_are_those_that_would_be_drawn(texts: Sequence[str], project: str) -> None:
    memory = Memory(
        id="m1", content="", tags=("a", "b"), scope=Scope(project=project), created_at=NOW - timedelta(days=3)
    )
    hits = tuple(
        RecallHit(rank=place + 1, memory=replace(memory, content=text), score=0.5) for place, text in enumerate(texts)
    )
    answer = Recall(query="q", profile="p", mode="hybrid", hits=hits, dropped=(), trace=Trace(mode_asked="auto"))
    file = io.StringIO()
    console = Console(file=file, highlight=False, emoji=False, markup=False, width=10_000, no_color=True)
    for line in explaining.listed(answer, console, NOW):
        console.print(line, soft_wrap=True)
    assert "".join(f"{line}\n" for line in plain_lines(answer, NOW)) == file.getvalue()
