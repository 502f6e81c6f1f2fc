"""recall, show and list: the documented document, the drawing, filters, odd queries."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text

from recollect.doors.wire import memory_to_dict, plain, time_to_text

HIT_KEYS = [
    "rank", "id", "score", "content", "type", "tags", "confidence", "importance", "created_at", "scope", "source",
    "metadata", "contributions", "adjustments",
]  # fmt: skip


@pytest.fixture
def filled(cli: Any) -> Any:
    """Three memories with different fields."""
    for args in (
        ["We use PostgreSQL 16 in production", "--type", "decision", "--tag", "db", "--project", "shop",
         "--session", "s1", "--confidence", "0.9", "--importance", "0.8", "--created-at", "2026-05-01T12:00:00Z"],
        ["Backups of the database run at four in the night", "--tag", "db", "--tag", "ops",
         "--created-at", "2026-05-02T12:00:00.250Z"],
        ["I prefer tabs over spaces", "--type", "preference", "--created-at", "2026-03-01T12:00:00Z"],
    ):  # fmt: skip
        assert cli("remember", *args).code == 0
    return cli


def test_the_document_of_recall_is_the_documented_one(filled: Any) -> None:
    document = filled(
        "recall", "postgresql production", "--json", "--profile", "importance-prior", "--now", "2026-05-03"
    ).document
    assert list(document)[:7] == ["query", "profile", "mode", "abstained", "hits", "dropped", "trace"]
    assert (document["query"], document["profile"], document["mode"]) == (
        "postgresql production",
        "importance-prior",
        "hybrid",
    )
    hit = document["hits"][0]
    assert list(hit)[: len(HIT_KEYS)] == HIT_KEYS
    assert (hit["rank"], hit["type"], hit["tags"]) == (1, "decision", ["db"])
    assert hit["created_at"] == "2026-05-01T12:00:00Z"
    assert hit["scope"] == {"project": "shop", "session": "s1"}
    assert (hit["source"], hit["metadata"]) == ("cli", {})
    assert all(set(one) == {"list", "rank", "raw", "weight", "value"} for one in hit["contributions"])
    [prior] = hit["adjustments"]
    assert (prior["prior"], prior["after"]) == ("importance", hit["score"])
    assert set(document["trace"]) >= {
        "mode_asked",
        "mode_used",
        "fell_back_to_bm25",
        "attempts",
        "legs",
        "rerank",
        "ms",
    }
    assert set(document["trace"]["legs"]["lexical"]) == {"hits", "ms", "skipped"}
    assert set(document["trace"]["rerank"]) >= {"used", "skipped"}


@pytest.mark.covers("fusion.rrf")
def test_scores_come_at_full_precision(filled: Any) -> None:
    hit = filled("recall", "postgresql production", "--json", "--profile", "importance-prior").document["hits"][0]
    fused = sum(one["weight"] / (60 + one["rank"]) for one in hit["contributions"])
    assert hit["score"] == pytest.approx(fused * (0.7 + 0.3 * 0.8), abs=1e-12)


def test_filters_narrow(filled: Any) -> None:
    def contents(*args: str) -> set[str]:
        return {
            one["content"][:7] for one in filled("recall", "production database tabs", *args, "--json").document["hits"]
        }

    assert contents("--type", "preference") == {"I prefe"}
    assert contents("--tag", "db", "--tag", "ops") == {"Backups"}
    assert contents("--project", "shop") == {"We use "}
    assert contents("--after", "2026-05-02") == {"Backups"}
    assert contents("--before", "2026-04-01") == {"I prefe"}
    assert contents("--namespace", "other") == set()
    assert len(contents("--limit", "1")) == 1
    everything = filled("recall", "production database tabs", "--json").document["hits"]
    assert everything[0]["content"][:7] not in contents("--exclude", everything[0]["id"])


def test_options_sorting_aliases_and_modes_reach_the_engine(filled: Any) -> None:
    args = ("recall", "database", "--json", "--mode", "bm25", "--profile", "retry-ladder", "--set", "fusion.k=1")
    plain_hit = filled(*args).document["hits"][0]
    assert plain_hit["contributions"][0]["value"] == 0.5
    newest = filled("recall", "database production tabs", "--sort-by", "recency", "--json").document["hits"]
    assert [one["created_at"] for one in newest] == sorted((one["created_at"] for one in newest), reverse=True)
    assert filled("recall", "rdbms", "--mode", "bm25", "--profile", "importance-prior", "--json").document["hits"] == []
    [aliased] = filled(
        "recall", "rdbms", "--mode", "bm25", "--profile", "importance-prior", "--alias", "rdbms=postgresql", "--json"
    ).document["hits"]
    assert "PostgreSQL" in aliased["content"]
    assert filled("recall", "x", "--mode", "semantic", "--json").document["mode"] == "semantic"


@pytest.mark.covers("budget.render")
def test_render_prints_the_block_and_nothing_else(filled: Any) -> None:
    args = ("recall", "postgresql", "--profile", "token-budget-lexical", "--now", "2026-05-04T12:00:00Z")
    # A floor of 0: three memories are too few for BM25 to mean anything.
    args += ("--set", "select.floor.minimum=0", "--limit", "1")
    ran = filled(*args, "--render")
    line = "- [decision] We use PostgreSQL 16 in production (confidence: 0.9, age: 3d)"
    assert ran.out == f"## Relevant Memories\n{line}\n"
    assert filled(*args, "--render", "--json").document["rendered"] == ran.out.rstrip("\n")


@pytest.mark.covers("two-stage.touch")
def test_recall_only_sees_and_show_uses(filled: Any) -> None:
    id = filled("recall", "postgresql", "--json").document["hits"][0]["id"]
    before = next(one for one in filled("list", "--json").document["memories"] if one["id"] == id)
    assert before["access_count"] == 0
    assert before["accessed_at"] > before["created_at"]
    filled("show", id)
    filled("recall", "postgresql", "--used", "--limit", "1")
    after = next(one for one in filled("list", "--json").document["memories"] if one["id"] == id)
    assert after["access_count"] == 2


@pytest.mark.parametrize("columns", [80, 72, 200])
def test_what_a_list_gave_stays_on_one_line_of_the_terminal(filled: Any, columns: int) -> None:
    out = Text.from_ansi(filled("recall", "postgresql", "--explain", terminal=True, columns=columns).out).plain
    gave = [line.rstrip() for line in out.splitlines() if " rank 1 · raw " in line]
    assert gave and all(re.search(r"weight [0-9.]+$", line) and len(line) <= columns for line in gave)
    assert ("█" * 24 in out) == (columns == 200)


@pytest.mark.covers("more.explain")
def test_explain_draws_bars_steps_near_misses_and_times(filled: Any) -> None:
    ran = filled(
        "recall", "postgresql database production", "--explain", "--profile", "importance-prior", "--limit", "1"
    )
    assert "We use PostgreSQL 16 in production" in ran.out
    lexical = next(line for line in ran.out.splitlines() if line.strip().startswith("lexical "))
    assert "█" in lexical and "rank 1" in lexical
    assert " → " in next(line for line in ran.out.splitlines() if line.strip().startswith("priors "))
    assert "near misses" in ran.out and "rank 2 > 1" in ran.out
    assert "legs    lexical " in ran.out and " ms" in ran.out
    assert "\x1b[" not in ran.out
    assert "\x1b[" in filled("recall", "postgresql", "--explain", terminal=True).out


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    from io import StringIO

    from rich.console import Console

    from recollect.doors.cli.explaining import BAR_COLUMNS, bar

    class Utf8(StringIO):
        encoding = "utf-8"

    drawn = Console(file=Utf8())
    assert bar(1.0, drawn) == "█" * BAR_COLUMNS
    assert bar(0.5, drawn).strip() == "█" * (BAR_COLUMNS // 2)
    assert len(bar(0.013, drawn)) == BAR_COLUMNS
    assert bar(0.0, drawn).strip() == "▏"


def test_a_memory_cannot_steer_the_terminal(cli: Any) -> None:
    cli("remember", "red \x1b[31m alarm \x07 and [bold]markup[/bold] text")
    for args in (["list"], ["recall", "alarm"], ["recall", "alarm", "--explain"], ["recall", "alarm", "--render"]):
        out = cli(*args).out
        assert "\x1b" not in out and "\x07" not in out
        assert "[bold]markup[/bold]" in out


def test_a_memory_cannot_hide_what_it_says(cli: Any) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    cli("remember", f"fire alarm{hidden} drill")
    for args in (["list"], ["recall", "alarm"], ["recall", "alarm", "--explain"], ["recall", "alarm", "--render"]):
        assert "fire alarm\ufffd drill" in cli(*args).out


def test_list_pages_newest_first(filled: Any) -> None:
    first = filled("list", "--limit", "2", "--json").document
    assert [one["content"][:7] for one in first["memories"]] == ["Backups", "We use "]
    second = filled("list", "--limit", "2", "--cursor", first["next_cursor"], "--json").document
    assert [one["content"][:7] for one in second["memories"]] == ["I prefe"]
    assert second["next_cursor"] is None
    filled("forget", first["memories"][-1]["id"], "--yes")
    again = filled("list", "--limit", "2", "--cursor", first["next_cursor"], "--json").document
    assert again == second, "it goes on where it was, whatever became of the memory there"
    rows = filled("list", "--type", "preference").out.splitlines()
    assert [row.split("\t")[2:] for row in rows] == [
        ["type", "project", "content"],
        ["preference", "", "I prefer tabs over spaces"],
    ]
    assert "I prefer tabs over spaces" in filled("list", terminal=True).out


def test_show_tells_all_fields(filled: Any) -> None:
    id = filled("list", "--type", "decision", "--json").document["memories"][0]["id"]
    out = filled("show", id).out
    assert out.startswith("We use PostgreSQL 16 in production\n")
    assert "project=shop, session=s1" in out


ODD = [
    '"',
    "(",
    ")",
    "AND",
    "NOT",
    "a AND",
    '"" OR',
    "*",
    "x*y*",
    "type:",
    "^col",
    "{a b}: c",
    "💥",
    "-",
    "--",
    "' OR 1=1",
    ":",
    "🏴‍☠️ NEAR(a, b)",
    "\\",
    "%",
    "\t",
    "",
]


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("query", [*ODD, "long " * 20_000])
def test_odd_queries_get_an_answer_or_a_typed_error(filled: Any, query: str) -> None:
    ran = filled("recall", "--json", "--", query)
    assert ran.code in (0, 2)
    assert "hits" in ran.document or ran.document["error"]["type"] == "InvalidInput"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
def test_any_text_is_a_query(filled: Any, query: str) -> None:
    ran = filled("recall", "--json", "--", query)
    assert ran.code in (0, 2)
    assert "hits" in ran.document or ran.document["error"]["type"] == "InvalidInput"


def test_times_on_the_wire() -> None:
    assert time_to_text(datetime(2026, 5, 1, 12, tzinfo=UTC)) == "2026-05-01T12:00:00Z"
    assert time_to_text(datetime(2026, 5, 1, 12, 0, 0, 7_000, tzinfo=UTC)) == "2026-05-01T12:00:00.007Z"
    assert time_to_text(datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))) == "2026-05-01T12:00:00Z"
    assert time_to_text(datetime(476, 9, 4, tzinfo=UTC)) == "0476-09-04T00:00:00Z", "ISO 8601 has four digits"


def test_the_namespace_is_named_where_it_is_not_the_default() -> None:
    from recollect.domain.memory import Memory, Scope

    assert memory_to_dict(Memory("1", "x"))["scope"] == {"project": None, "session": None}
    assert memory_to_dict(Memory("1", "x", scope=Scope("a/b")))["scope"] == {
        "namespace": "a/b",
        "project": None,
        "session": None,
    }
    assert plain({"a": (1, {"b": datetime(2026, 1, 1, tzinfo=UTC)})}) == {"a": [1, {"b": "2026-01-01T00:00:00Z"}]}


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_narrow_terminal_still_shows_what_the_memories_say(width: int) -> None:
    from io import StringIO

    from rich.console import Console

    from recollect.doors.cli.session import Session

    run = Session({})
    run.out = Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    id, text = "01jv3m8x0c9k4q2r5t7w9yabcd", "the harbour opens at six"
    run.table(("id", "created", "type", "content"), [(id, "2026-05-01", "fact", text)], flexible="content")
    shown = " ".join(run.out.file.getvalue().split())  # type: ignore[attr-defined]
    assert id in shown and "harbour opens" in shown
    assert all(len(line) <= width for line in run.out.file.getvalue().splitlines())  # type: ignore[attr-defined]


def test_show_names_a_scope_only_where_there_is_one(cli: Any) -> None:
    alone = cli("remember", "the harbour opens at six", "--json").document["id"]
    placed = cli("remember", "lamps are lit at nine", "--project", "port", "--json").document["id"]
    assert "\nscope" not in cli("show", alone).out
    assert "project=port" in cli("show", placed).out


def test_a_last_page_that_is_full_promises_no_other(cli: Any) -> None:
    for text in ("the harbour opens at six", "logs are kept for ninety days"):
        cli("remember", text, "--no-wait")
    assert cli("list", "--limit", "2", "--json").document["next_cursor"] is None
    assert cli("list", "--limit", "2").err == ""
    assert cli("list", "--limit", "1", "--json").document["next_cursor"]


def test_the_block_for_a_prompt_leaves_out_what_is_sensitive_and_says_so(cli: Any) -> None:
    cli("remember", "the vault code of the office is 4711", "--sensitive")
    cli("remember", "the office opens at nine")
    assert "4711" in cli("recall", "vault code office").out
    block = cli("recall", "vault code office", "--render")
    assert "4711" not in block.out and "nine" in block.out
    assert "not in the block: 1 sensitive memory" in block.err
    assert "nine" in cli("recall", "vault code office", "--render", "--limit", "1").out
