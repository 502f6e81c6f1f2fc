"""Commands that need the store for themselves say which daemon holds it, and how it is ended."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doors.http_cases import daemon

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def refusal(ran: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    assert (ran.returncode, b"Traceback" in ran.stderr) == (1, False)
    return json.loads(ran.stdout)["error"]


def test_restore_names_the_daemon_and_works_once_it_is_ended(home: Path, process: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    process("remember", "in the backup")
    process("backup", str(copy))
    with daemon(home) as running:
        told = refusal(process("restore", str(copy), "--force", "--json"))
        assert told["type"] == "StoreInUse"
        assert told["message"] == f"another process has the store open: the daemon (process {running.process.pid})"
        assert f"`kill {running.process.pid}`" in told["hint"]
        elsewhere = process("--store", str(tmp_path / "other.db"), "restore", str(copy))
        assert elsewhere.returncode == 0
        subprocess.run(["kill", str(running.process.pid)], check=True)
        assert running.process.wait(60) == 0
        assert process("restore", str(copy), "--force").returncode == 0


def test_what_another_process_than_the_daemon_holds_is_not_blamed_on_it(
    home: Path, process: Run, tmp_path: Path
) -> None:
    import recollect

    copy, other = tmp_path / "copy.db", tmp_path / "other.db"
    process("--store", str(other), "remember", "not the daemon's")
    process("--store", str(other), "backup", str(copy))
    with daemon(home), recollect.open(other, embedder=None, background=False):
        told = refusal(process("--store", str(other), "restore", str(copy), "--force", "--json"))
    assert told["type"] == "StoreInUse" and "daemon (process" not in told["message"]


@pytest.mark.parametrize("command", ["doctor", "stats", "list"])
def test_an_embedded_qdrant_is_the_daemons_alone(
    home: Path, process: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    pytest.importorskip("qdrant_client")
    monkeypatch.setenv("RECOLLECT_QDRANT", str(home / "qdrant"))
    process("remember", "where the vectors are mirrored")
    with daemon(home) as running:
        told = refusal(process(command, "--json"))
    assert told["type"] == "StoreInUse" and str(home / "qdrant") in told["message"]
    assert f"process {running.process.pid}" in told["message"] and f"`kill {running.process.pid}`" in told["hint"]


def test_a_second_daemon_is_told_how_to_end_the_first(home: Path, process: Run) -> None:
    with daemon(home) as running:
        told = refusal(process("serve", "--port", "0", "--json"))
    assert f"`kill {running.process.pid}`" in told["hint"]


def test_who_changes_a_setting_is_told_of_a_daemon_that_goes_on_without_it(home: Path, process: Run) -> None:
    process("remember", "there is a store")
    with daemon(home) as running:
        assert b"daemon" not in process("settings", "set", "keywordWeight", "0.5").stderr  # known at once, everywhere
        told = process("settings", "set", "recollect_limit", "5").stderr.decode()
    assert f"the daemon (process {running.process.pid})" in told and f"`kill {running.process.pid}`" in told
    with daemon(home, "--until-changed"):
        assert b"daemon" not in process("settings", "set", "recollect_limit", "6").stderr
    assert b"daemon" not in process("settings", "set", "recollect_limit", "7").stderr


def test_doctor_knows_the_daemon_and_whether_it_has_the_settings_of_now(home: Path, process: Run) -> None:
    process("remember", "there is a store")
    assert json.loads(process("doctor", "--json").stdout)["daemon"] is None
    assert b"daemon     not running" in process("doctor").stdout
    with daemon(home) as running:
        found = json.loads(process("doctor", "--json").stdout)["daemon"]
        assert (found["pid"], found["url"], found["current"]) == (running.process.pid, running.url, True)
        said = process("doctor").stdout.decode()
        assert f"process {running.process.pid} (`kill {running.process.pid}` ends it)" in said and "anew" not in said
        process("settings", "set", "recollect_limit", "5")
        assert json.loads(process("doctor", "--json").stdout)["daemon"]["current"] is False
        said = process("doctor").stdout.decode()
    assert f"end it (`kill {running.process.pid}`), then start it anew" in said


def test_uninstall_names_the_daemon_that_is_still_there(
    home: Path, process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    process("install", "gemini")
    with daemon(home) as running:
        told = process("uninstall", "gemini").stderr.decode()
    assert f"`kill {running.process.pid}`" in told
    assert b"kill" not in process("uninstall", "gemini").stderr
