"""remember, update, forget, link, pin."""

from __future__ import annotations

from typing import Any

import pytest


def added(cli: Any, *args: str) -> str:
    ran = cli("remember", *args, "--json")
    assert (ran.code, ran.document["action"]) == (0, "added")
    return ran.document["id"]


def test_every_flag_of_remember_is_stored(cli: Any) -> None:
    id = added(
        cli, "We", "use", "PostgreSQL", "16", "--type", "decision", "--tag", "db", "--tag", "production",
        "--confidence", "0.9", "--importance", "high", "--project", "shop", "--session", "s1",
        "--created-at", "2026-05-01T12:00:00Z", "--pin", "--sensitive", "--key", "k1", "--source", "notes",
        "--meta", "path=docs/db.md", "--meta", "line=7",
    )  # fmt: skip
    memory = cli("show", id, "--json").document
    assert memory["content"] == "We use PostgreSQL 16"
    assert memory["type"] == "decision"
    assert memory["tags"] == ["db", "production"]
    assert (memory["confidence"], memory["importance"]) == (0.9, 0.9)
    assert memory["scope"] == {"project": "shop", "session": "s1"}
    assert memory["created_at"] == "2026-05-01T12:00:00Z"
    assert memory["pinned"] and memory["sensitive"]
    assert (memory["key"], memory["source"]) == ("k1", "notes")
    assert memory["metadata"] == {"path": "docs/db.md", "line": 7}


def test_the_answer_of_remember_for_people(cli: Any) -> None:
    ran = cli("remember", "tides are listed in UTC")
    id, rest = ran.out.strip().split("  ", 1)
    assert rest == "remembered"
    assert cli("show", id, "--json").document["content"] == "tides are listed in UTC"
    assert cli("remember", "something else entirely", "--quiet").out == ""


def test_a_duplicate_is_told(cli: Any) -> None:
    first = added(cli, "the kiosk reboots every night at two")
    ran = cli("remember", "the kiosk reboots every night at two", "--confidence", "0.95", "--json")
    assert ran.document["action"] in ("merged", "skipped")
    assert ran.document["duplicate_of"] == first
    assert added(cli, "the kiosk reboots every night at two", "--no-dedupe") != first


def test_lines_of_standard_input_are_memories(cli: Any) -> None:
    ran = cli(
        "remember", "-", "--type", "lesson", "--json", input="first lesson learned\n\n  second thing entirely  \n"
    )
    assert [one["action"] for one in ran.document["receipts"]] == ["added", "added"]
    listed = cli("list", "--type", "lesson", "--json").document["memories"]
    assert {one["content"] for one in listed} == {"first lesson learned", "second thing entirely"}


@pytest.mark.covers("budget.marker")
def test_markers_in_standard_input_are_memories_and_the_rest_is_not(cli: Any) -> None:
    text = "I looked around for a while.\n[MEMORY] type=gotcha tags=db,pool: The pool has only 20 connections\nDone.\n"
    ran = cli("remember", "-", "--project", "shop", "--json", input=text)
    assert ran.document["counts"] == {"added": 1}
    [memory] = cli("list", "--json").document["memories"]
    assert (memory["type"], memory["tags"], memory["confidence"]) == ("gotcha", ["db", "pool"], 0.8)
    assert memory["scope"]["project"] == "shop"


@pytest.mark.covers("budget.marker", "prior.sensitive")
def test_markers_in_standard_input_get_what_the_command_line_says_besides(cli: Any) -> None:
    """Type and confidence are the marker's; nothing else that was asked for may be dropped, least of all secrecy."""
    text = "1. [MEMORY] type=gotcha tags=db: The pool has only 20 connections\nDecision: we keep the daemon small\n"
    asked = (
        "--sensitive",
        "--pin",
        "--tag",
        "x",
        "--created-at",
        "2020-01-01",
        "--importance",
        "high",
        "--meta",
        "a=1",
    )
    receipts = cli("remember", "-", *asked, "--json", input=text).document["receipts"]
    first, second = (cli("show", one["id"], "--json").document for one in receipts)
    assert (first["type"], first["tags"], first["confidence"]) == ("gotcha", ["db", "x"], 0.8)
    assert (second["type"], second["tags"], second["confidence"]) == ("decision", ["x"], 0.6)
    for one in (first, second):
        assert one["sensitive"] and one["pinned"] and one["importance"] == 0.9 and one["metadata"] == {"a": 1}
        assert one["created_at"] == "2020-01-01T00:00:00Z"


@pytest.mark.covers("budget.marker")
def test_what_is_no_marker_is_a_line_like_any_other(cli: Any) -> None:
    ran = cli("remember", "-", "--json", input="[memory] in small letters\nthe [MEMORY] in the middle\n")
    assert ran.document["counts"] == {"added": 2}


def test_standard_input_takes_no_key(cli: Any) -> None:
    assert cli("remember", "-", "--key", "k", input="x\n").code == 2


@pytest.mark.covers("more.late-embedding")
def test_a_write_is_embedded_before_exit_unless_told_not_to(cli: Any) -> None:
    added(cli, "ferries leave from pier nine")
    assert cli("stats", "--json").document["embedding"] == {"model": "fake-64", "done": 1, "pending": 0, "failed": 0}
    added(cli, "the harbour master answers on channel twelve", "--no-wait")
    assert cli("stats", "--json").document["embedding"]["pending"] == 1
    found = cli("recall", "harbour master", "--mode", "bm25", "--json").document
    assert found["hits"][0]["content"].startswith("the harbour master")
    assert cli("upkeep", "--json").document["embedding"]["pending"] == 0


def test_a_failing_embedder_does_not_fail_the_write(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.engine import Engine

    def broken(self: Engine, **given: Any) -> None:
        raise RuntimeError("the model melted")

    monkeypatch.setattr(Engine, "upkeep", broken)
    ran = cli("remember", "written all the same", "--json")
    assert (ran.code, ran.document["action"]) == (0, "added")
    assert "the model melted" in ran.err


def test_update_changes_what_is_named_and_nothing_else(cli: Any) -> None:
    id = added(cli, "the pool has 20 connections", "--tag", "db", "--confidence", "0.5")
    changed = cli(
        "update", id, "--content", "the pool has 40 connections", "--confidence", "0.9", "--pin", "--json"
    ).document
    assert changed["content"] == "the pool has 40 connections"
    assert (changed["confidence"], changed["tags"], changed["pinned"], changed["version"]) == (0.9, ["db"], True, 2)
    assert cli("update", id, "--no-tags", "--json").document["tags"] == []
    conflict = cli("update", id, "--confidence", "0.1", "--if-version", "1", "--json")
    assert (conflict.code, conflict.document["error"]["type"]) == (1, "Conflict")
    assert cli("update", id).code == 2


def test_update_moves_a_memory_to_another_project(cli: Any) -> None:
    id = added(cli, "the pool has 20 connections", "--project", "shpo", "--session", "s1")
    moved = cli("update", id, "--project", "shop", "--json").document["scope"]
    assert (moved["project"], moved["session"]) == ("shop", "s1")
    assert cli("update", id, "--project", "", "--json").document["scope"]["project"] is None
    assert cli("update", "nosuch", "--project", "shop").code == 1


def test_update_replaces_the_vector_too(cli: Any) -> None:
    id = added(cli, "alpha bravo charlie")
    cli("update", id, "--content", "zebra yankee xray")
    hits = cli("recall", "zebra yankee xray", "--mode", "semantic", "--json").document["hits"]
    assert hits[0]["contributions"][0]["raw"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.covers("more.forget")
def test_forget(cli: Any) -> None:
    keep, gone = added(cli, "the red door stays"), added(cli, "a blue window goes away")
    ran = cli("forget", gone, "--yes", "--json")
    assert ran.document == {"forgotten": 1, "ids": [gone]}
    assert [one["id"] for one in cli("list", "--json").document["memories"]] == [keep]
    assert cli("show", gone).code == 1


def test_forget_asks_on_a_terminal(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.doors.cli.changing.is_interactive", lambda: True)
    id = added(cli, "ask before you forget me")
    refused = cli("forget", id, input="n\n")
    assert refused.code == 1
    assert "ask before you forget me" in refused.err
    assert cli("show", id).code == 0
    assert cli("forget", id, input="y\n").code == 0
    assert cli("show", id).code == 1


@pytest.mark.covers("prior.links")
def test_link_and_pin(cli: Any) -> None:
    old, new = added(cli, "we queue with rabbitmq"), added(cli, "nats carries all our messages now")
    assert cli("link", new, "supersedes", old, "--json").document["type"] == "supersedes"
    [hit] = cli("recall", "rabbitmq", "--mode", "bm25", "--json").document["hits"]
    assert (hit["id"], hit["redirected_from"]) == (new, old)
    shown = cli("show", new, "--json").document
    assert (shown["links"][0]["target"], shown["neighbours"][0]["id"]) == (old, old)
    assert "supersedes →" in cli("show", new).out
    assert cli("pin", new, "--json").document["pinned"] is True
    assert cli("pin", new, "--off", "--json").document["pinned"] is False
    assert cli("link", new, "adores", old).code == 2


@pytest.mark.parametrize(
    ("wrong", "told"), [(b"caf\xe9", "not UTF-8"), (b"nul \0 here", "NUL"), (b"x" * 1_100_000, "bytes, more than")]
)
def test_a_line_of_standard_input_that_cannot_be_kept_is_named_and_nothing_is_written(
    process: Any, cli: Any, monkeypatch: pytest.MonkeyPatch, wrong: bytes, told: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    lines = b"\n".join(b"memory number %d" % number for number in range(300)) + b"\n\n" + wrong
    done = process("remember", "-", "--quiet", input=lines)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"line 302: " in done.stderr and told.encode() in done.stderr
    assert cli("list", "--json").document["memories"] == []


def test_more_than_can_be_read_at_once_is_refused_not_cut(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.doors.cli import remembering

    monkeypatch.setattr(remembering, "MAX_INPUT_BYTES", 20)
    refused = cli("remember", "-", "--json", input="the first line\nthe second line\n")
    assert (refused.code, "recollect import" in refused.document["error"]["hint"]) == (2, True)
    assert cli("list", "--json").document["memories"] == []
    assert cli("remember", "-", input="a short line\n").code == 0
