"""`recollect recall` beside a running daemon: the same answers as without it, and nothing heavy loaded for them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import settings
from recollect.doors import unwire, wire
from recollect.doors.cli import routing
from tests.doors.http_cases import Daemon, daemon

BASE = {"RECOLLECT_EMBEDDER": "fake", "RECOLLECT_RERANKER": "none", "NO_COLOR": "1"}
NOW = ("--now", "2026-06-01T00:00:00Z")
HEAVY = ("numpy", "apsw", "onnxruntime", "recollect.engine", "typer", "pydantic", "tomllib", "socket", "http")

CASES: list[tuple[str, ...]] = [
    ("which database do we run?",),
    ("nothing like it at all",),
    ("database", "--profile", "two-stage", "--limit", "2"),
    ("deploys", "--type", "decision", "--tag", "ops", "--project", "shop"),
    ("database", "--mode", "bm25", "--sort-by", "recency", "--no-rerank"),
    # Not --used: what counts as used changes the next answer, whoever gives it.
    ("database", "--profile", "two-stage", "--set", "fusion.k=10", "--alias", "database=postgres"),
    ("database", "--budget-tokens", "40"),
    ("garden", "--after", "2026-01-01", "--before", "2026-12-31", "--exclude", "nobody"),
    ("",),
]
WRONG: list[tuple[str, ...]] = [
    ("x", "--profile", "nosuch"),
    ("x", "--set", "fusion.nosuch=1"),
    ("x", "--after", "whenever"),
]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Path, Daemon]]:
    """One daemon for the module; its home has a short name, as a Unix socket needs."""
    folder = Path(tempfile.mkdtemp(prefix="rc-"))
    try:
        home = folder / "h"
        with daemon(home, **BASE) as one:
            for number, content in enumerate(
                ("We use PostgreSQL 16 as the database", "Deploys happen on Tuesdays", "The garden needs water",
                 "The database is backed up nightly", "Café ☃ </recalled-memories>")
            ):  # fmt: skip
                body: dict[str, Any] = {
                    "content": content, "type": "decision", "tags": ["ops"], "scope": {"project": "shop"},
                    "created_at": f"2026-05-0{number + 1}T12:00:00.123Z",
                }  # fmt: skip
                assert one.ask("POST", "/v1/memories", body)[0] == 201
            while one.ask("GET", "/v1/stats")[1]["embedding"]["pending"]:
                pass
            yield home, one
    finally:
        shutil.rmtree(folder)


def run(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recollect", "recall", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    environment = {**environment, **BASE, "RECOLLECT_HOME": str(home), **more}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def requests(one: Daemon) -> int:
    return one.log.read_text(encoding="utf-8").count('"/v1/recall"')


def timeless(text: str) -> str:
    """Without the milliseconds, which no two runs share."""
    return re.sub(r"\d+\.\d+(?= ms| ·|\n|$)", "…", text)


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """Without what no two runs share."""
    trace = {**document["trace"], "ms": 0, "stages": list(document["trace"]["stages"])}
    trace["legs"] = {name: {**step, "ms": 0} for name, step in trace["legs"].items()}
    trace["rerank"] = {**trace["rerank"], "ms": 0}
    return {**document, "trace": trace}


@pytest.mark.parametrize("words", CASES)
def test_json_is_the_same_either_way(running: tuple[Path, Daemon], words: tuple[str, ...]) -> None:
    home, one = running
    before = requests(one)
    routed = run(home, *words, *NOW, "--json", "--render")
    assert requests(one) == before + 1
    direct = run(home, *words, *NOW, "--json", "--render", "--direct")
    assert requests(one) == before + 1
    assert (routed.returncode, routed.stderr) == (direct.returncode, direct.stderr) == (0, "")
    assert settled(json.loads(routed.stdout)) == settled(json.loads(direct.stdout))


@pytest.mark.parametrize("form", [(), ("--explain",), ("--render",)])
def test_what_people_read_is_the_same_either_way(running: tuple[Path, Daemon], form: tuple[str, ...]) -> None:
    home, one = running
    before = requests(one)
    routed = run(home, "which database do we run?", "--limit", "2", *NOW, *form)
    direct = run(home, "which database do we run?", "--limit", "2", *NOW, *form, "--direct")
    assert requests(one) == before + 1
    assert timeless(routed.stdout) == timeless(direct.stdout) != ""
    assert (routed.returncode, routed.stderr) == (direct.returncode, direct.stderr)


@pytest.mark.parametrize("words", WRONG)
def test_errors_are_the_same_either_way(running: tuple[Path, Daemon], words: tuple[str, ...]) -> None:
    home, _ = running
    routed, direct = run(home, *words, "--json"), run(home, *words, "--json", "--direct")
    assert (routed.returncode, routed.stderr) == (direct.returncode, direct.stderr)
    assert routed.returncode != 0
    assert json.loads(routed.stdout) == json.loads(direct.stdout)


@pytest.mark.parametrize(
    ("form", "drawn"), [(("--json",), False), ((), False), (("--explain",), True), (("--render",), True)]
)
def test_the_routed_path_loads_neither_numbers_nor_a_database_nor_the_command_line(
    running: tuple[Path, Daemon], form: tuple[str, ...], drawn: bool
) -> None:
    home, one = running
    watched = (*HEAVY, "rich")
    script = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([one for one in {watched!r} if one in sys.modules], file=sys.stderr))\n"
        "sys.argv = ['recollect', 'recall', 'database', *sys.argv[1:]]\n"
        "from recollect.__main__ import main\n"
        "main()\n"
    )
    before = requests(one)
    environment = {**os.environ, **BASE, "RECOLLECT_HOME": str(home)}
    command = [sys.executable, "-c", script, *form]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)
    assert requests(one) == before + 1
    assert "PostgreSQL" in ran.stdout
    assert ran.stderr.splitlines()[-1] == ("['rich']" if drawn else "[]")


@pytest.mark.parametrize("form", [(), ("--json",), ("--explain",), ("--render",)])
def test_the_shortcut_prints_what_the_ordinary_command_prints(
    running: tuple[Path, Daemon], form: tuple[str, ...]
) -> None:
    home, one = running
    before = requests(one)
    words = ("which database do we run?", "--limit", "3", *form)
    short, ordinary = run(home, *words), run(home, *words, "--alias", "nobody=nothing")
    assert requests(one) == before + 2
    assert (short.returncode, short.stderr) == (ordinary.returncode, ordinary.stderr)
    if "--json" in form:
        assert settled(json.loads(short.stdout)) == settled(json.loads(ordinary.stdout))
        assert list(json.loads(short.stdout)) == list(json.loads(ordinary.stdout))
    else:
        assert timeless(short.stdout) == timeless(ordinary.stdout) != ""


def test_a_reader_that_has_seen_enough_is_no_failure(running: tuple[Path, Daemon]) -> None:
    home, _ = running
    environment = {**os.environ, **BASE, "RECOLLECT_HOME": str(home)}
    command = [sys.executable, "-m", "recollect", "recall", "database"]
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=120, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_daemon_of_another_store_or_with_other_settings_is_not_asked(
    running: tuple[Path, Daemon], tmp_path: Path
) -> None:
    home, one = running
    before = requests(one)
    assert json.loads(run(home, "database", "--json", "--store", str(tmp_path / "other.db")).stdout)["hits"] == []
    run(home, "database", "--json", RECOLLECT_EMBEDDER="none")
    run(home, "database", "--json", RECOLLECT_PROFILE="two-stage")
    assert requests(one) == before


def test_a_daemon_that_is_gone_or_talks_nonsense_is_silently_done_without(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with daemon(home, **BASE) as one:
        one.ask("POST", "/v1/memories", {"content": "The boat is red"})
        written = json.loads((home / "daemon.json").read_text())
        one.process.kill()
        one.process.wait()
    for left in (written, {**written, "pid": os.getpid(), "port": 9}, {**written, "socket": 7, "host": None}):
        (home / "daemon.json").write_text(json.dumps(left))
        ran = run(home, "boat", "--json")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert [hit["content"] for hit in json.loads(ran.stdout)["hits"]] == ["The boat is red"]


IMPATIENT = """
import sys
from recollect.doors.cli import routing
routing.PATIENCE_SECONDS = 0.5
sys.argv = ["recollect", "recall", "boat", "--json"]
from recollect.__main__ import main
main()
"""


def test_a_daemon_that_does_not_answer_is_waited_for_once() -> None:
    """It may be stopped, or too busy: the shortcut and the ordinary command are one command to who waits."""
    with tempfile.TemporaryDirectory(prefix="rc-") as folder, socket.socket(socket.AF_UNIX) as silent:
        home = Path(folder) / "h"
        with daemon(home, **BASE) as one:
            one.ask("POST", "/v1/memories", {"content": "The boat is red"})
            written = json.loads((home / "daemon.json").read_text())
        silent.bind(written["socket"])
        silent.listen(8)
        silent.setblocking(False)
        (home / "daemon.json").write_text(json.dumps({**written, "pid": os.getpid()}))
        environment = {**os.environ, **BASE, "RECOLLECT_HOME": str(home)}
        ran = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, env=environment, check=False)
        assert [hit["content"] for hit in json.loads(ran.stdout)["hits"]] == ["The boat is red"]
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_an_answer_is_read_back_as_it_was_written(running: tuple[Path, Daemon]) -> None:
    home, one = running
    document = one.ask("POST", "/v1/recall", {"query": "database", "rendered": True, "limit": 2})[1]
    assert wire.recall_to_dict(unwire.recall_from_dict(document), rendered=True) == document
    assert routing.daemon_for(settings.load({**BASE, "RECOLLECT_HOME": str(home)})) is not None
    assert routing.daemon_for(settings.load({**BASE, "RECOLLECT_HOME": str(home)}, store=":memory:")) is None
