"""The command line as a whole: flags anywhere, one JSON document, exit codes, help, start-up, pipes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.main import get_command

import recollect
from recollect.doors.cli import reference
from recollect.doors.cli.app import app

PROMISED = {
    "demo", "remember", "recall", "show", "list", "update", "forget", "link", "pin", "consolidate", "upkeep", "doctor",
    "backup", "restore", "reindex", "stats", "import", "export", "profiles list", "profiles show", "profiles check",
    "profiles diff", "settings list", "settings get", "settings set", "models list", "models fetch", "models use",
    "models test",
}  # fmt: skip


def commands(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    group = group if group is not None else get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_promised_command_is_there() -> None:
    assert {name for name, _ in commands()} >= PROMISED


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_the_help_of_every_command_has_an_example(cli: Any, name: str) -> None:
    ran = cli(*name.split(), "--help")
    assert ran.code == 0
    assert f"recollect {name.split()[0]}" in ran.out.split("Example", 1)[1]


@pytest.mark.parametrize("name", ["", "profiles", *sorted(PROMISED)])
def test_flags_stand_in_the_help_without_a_value(cli: Any, name: str) -> None:
    told = cli(*name.split(), "--help").out
    assert "--json" in told and "bool" not in told.lower()


def test_help_is_shown_as_it_was_written() -> None:
    """What looks like markup would vanish, and lines broken in the source would break a second time."""
    for name, command in commands():
        written = [command.help, command.epilog, *(one.help for one in command.params)]
        assert [text for text in written if text and Text.from_markup(text).plain != text] == [], name
        assert "\n" not in command.help.replace("\n\n", ""), name


@pytest.mark.parametrize("place", ["before", "after"])
def test_global_flags_stand_before_or_after_the_command(cli: Any, tmp_path: Path, place: str) -> None:
    flags = ["--json", "--quiet", "--store", str(tmp_path / "elsewhere.db")]
    command = ["remember", "flags may stand anywhere"]
    ran = cli(*(flags + command if place == "before" else command + flags))
    assert ran.code == 0
    assert ran.document["action"] == "added"
    assert ran.err == ""
    assert (tmp_path / "elsewhere.db").exists()


def test_global_flags_reach_commands_of_a_group(cli: Any) -> None:
    assert "profiles" in cli("profiles", "list", "--json").document
    assert "profiles" in cli("profiles", "--json", "list").document


def test_version(cli: Any) -> None:
    assert cli("--version").out == f"recollect {recollect.__version__}\n"
    assert cli("--json", "--version").document == {"version": recollect.__version__}


@pytest.mark.parametrize(
    "args",
    [
        ["nosuch"],
        ["recall"],
        ["recall", "x", "--limit", "0"],
        ["recall", "x", "--mode", "telepathy"],
        ["recall", "x", "--nosuch"],
        ["recall", "x", "--profile", "nosuch"],
        ["recall", "x", "--set", "fusion.k"],
        ["recall", "x", "--set", "fusion.nosuch=1"],
        ["recall", "x", "--now", "soon"],
        ["remember", " "],
        ["remember", "x", "--confidence", "2"],
        ["settings", "set", "keywordWeight", "9"],
        ["settings", "set", "nosuch", "1"],
    ],
)
def test_wrong_usage_exits_2_with_one_line_and_the_next_step(cli: Any, args: list[str]) -> None:
    ran = cli(*args, "--quiet")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("recollect: ")
    assert ran.err.count("\n") == 1
    as_json = cli(*args, "--quiet", "--json")
    assert as_json.code == 2
    assert set(as_json.document["error"]) >= {"type", "message", "hint"}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("recall x --mode telepathy", "'--mode': 'telepathy' is not one of"),
        ("models use nosuch", "recollect: 'nosuch' is neither a model's name"),
        ("models use minilm-l6 --as reranker", "minilm-l6 cannot be used as reranker"),
    ],
)
def test_wrong_usage_is_told_in_plain_words(cli: Any, args: str, told: str) -> None:
    assert told in cli(*args.split()).err


@pytest.mark.parametrize(
    "args", [["show", "nosuch"], ["forget", "nosuch", "--yes"], ["restore", "nosuch.db"], ["pin", "nosuch"]]
)
def test_a_failed_request_exits_1(cli: Any, args: list[str]) -> None:
    ran = cli(*args, "--quiet")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert " — " in ran.err
    assert cli(*args, "--json").document["error"]["type"] == "NotFound"


@pytest.mark.parametrize("store", ["/", ".", "mysql://me:secret@db/x", "postgresq://me:secret@db/x"])
def test_what_cannot_be_a_store_is_refused_and_nothing_is_made(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("--store", store, "list", "--json", "--quiet")
    assert (ran.code, ran.document["error"]["type"], "secret" in ran.err) == (2, "InvalidInput", False)
    assert " — " in ran.err and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [("recall", "-kubernetes deploys"), ("remember", "-5 degrees"), ("settings", "set", "consolidate_hours", "-1")],
)
def test_text_that_begins_with_a_minus_is_told_how_to_be_given(cli: Any, given: tuple[str, ...]) -> None:
    ran = cli(*given, "--json")
    assert (ran.code, ran.document["error"]["type"]) == (2, "Usage")
    assert "`--`" in ran.document["error"]["hint"]
    assert cli("remember", "--", "-5 degrees is cold").code == 0
    assert cli("recall", "--", "-5 degrees").code == 0


@pytest.mark.parametrize("args", [[], ["profiles"], ["settings"]])
def test_without_a_command_the_help_is_all_there_is(cli: Any, args: list[str]) -> None:
    ran = cli(*args)
    assert (ran.code, ran.err) == (2, "")
    assert "Usage:" in ran.out


def test_a_driver_that_logs_does_not_write_beside_the_one_line(home: Path) -> None:
    """A pool of connections warns at every attempt; the error that follows says it once."""
    code = (
        "import logging, recollect.doors.cli.app as door\n"
        "try: door.app(['list', '--quiet'])\n"
        "except SystemExit: logging.getLogger('psycopg.pool').warning('error connecting')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ("list --cursor -- --json", "NotFound"),
        ("list --cursor -- --limit x --json", "Usage"),
        ("list --json=1", "Usage"),
    ],
)
def test_a_flag_for_json_is_minded_wherever_it_stands(cli: Any, args: str, kind: str) -> None:
    """Behind an option that takes a value, two minus signs are that value and end nothing."""
    ran = cli(*args.split())
    assert ran.code > 0 and ran.document["error"]["type"] == kind


def test_behind_two_minus_signs_the_flag_for_json_is_text(cli: Any) -> None:
    ran = cli("recall", "x", "--limit", "0", "--", "--json")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("args", ["list", "list --json", "show nosuch --json"])
def test_a_disk_that_is_full_gets_one_line(args: str, home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "recollect", *args.split(), "--quiet"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert (b"make room" in done.stderr) is args.startswith("list")


def test_a_standard_input_that_is_closed_is_at_its_end(home: Path) -> None:
    """Commands that would ask, or read, run under cron and services too."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = " ".join(map(shlex.quote, (sys.executable, "-m", "recollect", "--json", *arguments)))
        return subprocess.run(["sh", "-c", f"{words} <&-"], capture_output=True, text=True, check=False)

    id = json.loads(run("remember", "We sail at noon").stdout)["id"]
    assert json.loads(run("remember", "-").stdout)["receipts"] == []
    assert "no known format" in json.loads(run("import", "-").stdout)["error"]["message"]
    forgotten = run("forget", id)
    assert (forgotten.returncode, json.loads(forgotten.stdout)["forgotten"]) == (0, 1), forgotten.stderr


def test_a_standard_output_that_is_closed_is_no_failure(home: Path) -> None:
    command = f"{sys.executable} -m recollect list >&-"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_stopping_while_the_program_starts_leaves_no_traceback(home: Path) -> None:
    code = (
        "import sys, recollect.doors.cli.app as app, recollect.__main__ as start\n"
        "def stopped(): raise KeyboardInterrupt\n"
        "app.main, sys.argv = stopped, ['recollect', 'list']\n"
        "start.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_no_hits_are_fine(cli: Any) -> None:
    ran = cli("recall", "nothing is here", "--json")
    assert ran.code == 0
    assert ran.document["hits"] == []


def test_the_first_run_tells_where_the_store_is(cli: Any, home: Path) -> None:
    first, second = cli("list"), cli("list")
    assert str(home / "memories.db") in first.err
    assert "memories.db" not in second.err


def test_without_a_model_the_first_run_says_how_to_get_one(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    assert "recollect models fetch" in cli("list").err


def test_a_recall_that_finds_nothing_says_what_a_model_would_add(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "we run postgres")
    for embedder, wanted in (("default", True), ("none", False)):
        monkeypatch.setenv("RECOLLECT_EMBEDDER", embedder)
        assert ("recollect models fetch" in cli("recall", "which database").err) is wanted
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    assert "recollect models fetch" not in cli("recall", "postgres").err


def test_a_recall_that_finds_nothing_says_what_waits_for_its_embedding(cli: Any) -> None:
    cli("remember", "we run postgres", "--no-wait")
    waiting = cli("recall", "postal zoo", "--mode", "bm25")
    assert "wait for their embedding: 1; `recollect upkeep`" in waiting.err
    cli("upkeep")
    assert "wait" not in cli("recall", "postal zoo", "--mode", "bm25").err


def test_importing_the_command_line_loads_no_heavy_library() -> None:
    heavy = "numpy onnxruntime tokenizers fastapi apsw rich recollect.engine"
    code = f"import sys, recollect.doors.cli.app; print([one for one in '{heavy}'.split() if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_real_process_answers_with_one_document(process: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    assert process("remember", "the harbour opens at six", "--json").returncode == 0
    done = process("recall", "harbour", "--json")
    assert json.loads(done.stdout)["hits"][0]["content"] == "the harbour opens at six"
    failed = process("show", "nosuch", "--json")
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["error"]["type"] == "NotFound"


@pytest.mark.parametrize("args", [["list"], ["recall", "memory", "--profile", "importance-prior"], ["export"]])
def test_a_reader_that_has_seen_enough_is_no_failure(cli: Any, home: Path, args: list[str]) -> None:
    lines = "\n".join(f"memory number {place} {'x' * 2000}" for place in range(100))
    assert cli("remember", "-", "--no-dedupe", "--no-wait", "--quiet", input=lines).code == 0
    limit = [] if args == ["export"] else ["--limit", "100"]
    command = [sys.executable, "-m", "recollect", *args, *limit]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        complaint = running.stderr.read()
        assert running.wait(60) == 0
    assert b"Traceback" not in complaint and b"Broken" not in complaint


def test_bytes_that_are_no_text_are_answered(process: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    done = process("recall", b"caf\xe9 \xff", "--json")
    assert done.returncode in (0, 2)
    json.loads(done.stdout)


def test_a_terminal_that_knows_only_ascii_is_served(
    process: Callable[..., subprocess.CompletedProcess[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert process("remember", "Bodø is a port ⚓").returncode == 0
    assert process("recall", "port", "--explain").returncode == 0
    assert json.loads(process("recall", "port", "--json").stdout)["hits"][0]["content"] == "Bodø is a port ⚓"


def test_the_reference_page_names_every_command_and_option() -> None:
    page = reference.page()
    for name, command in commands():
        assert f"## `recollect {name}`" in page
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert parameter.opts[0] in page


def test_the_first_run_says_only_once_that_there_is_no_model(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    assert cli("recall", "anything").err.count("no model yet") == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("search", "recall"), ("add", "remember"), ("rm", "forget"), ("edit", "update"), ("get", "show")],
)
def test_a_command_of_another_name_is_told_ours(cli: Any, typed: str, meant: str) -> None:
    ran = cli(typed, "x")
    assert ran.code == 2
    assert (
        ran.err
        == f"recollect: no such command '{typed}': here it is called '{meant}' — see `recollect {meant} --help`\n"
    )


def test_there_is_no_undo_and_it_is_said_what_there_is(cli: Any) -> None:
    assert "restore" in cli("undo").err


def test_no_other_name_is_one_of_ours(cli: Any) -> None:
    from recollect.doors.cli.other_names import INSTEAD, NAMES, OURS

    ours = set(get_command(app).commands)  # type: ignore[attr-defined]
    assert {name.partition(" ")[0] for name in NAMES} | {command for _, command in INSTEAD.values()} <= ours
    assert not ours & (set(OURS) | set(INSTEAD))
    assert len(OURS) == sum(len(others) for others in NAMES.values())
