"""A command that is told to end leaves nothing behind; what stays and serves ends as it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.doors.cli.ending import SIGNALS

# The command, told to end by itself at the moment when its work would be under way.
TOLD = """
import os, signal, sys
import {module} as place

def told(*_given, **_more):
    os.kill(os.getpid(), int(os.environ["NUMBER"]))
    raise AssertionError("it was told to end")

place.{name} = told
from recollect.doors.cli.app import main
main()
"""


def told(number: int, place: str, *args: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    module, _, name = place.partition(":")
    code = TOLD.format(module=module, name=name)
    given = {**os.environ, "NUMBER": str(int(number))}
    # Inherited by the command, whatever the tests themselves were started with (`nohup make test`).
    before = signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        return subprocess.run(
            [sys.executable, "-c", code, *args], capture_output=True, text=True, env=given, timeout=60, check=False
        )
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_export_that_is_told_to_end_leaves_no_part_of_itself(home: Path, tmp_path: Path, number: int) -> None:
    target = tmp_path / "out"
    target.mkdir()
    ran = told(number, "recollect.importers:export", "export", str(target / "memories.jsonl"))
    assert (ran.returncode, list(target.iterdir())) == (128 + number, []), ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_restore_that_is_told_to_end_leaves_no_copy(home: Path, tmp_path: Path) -> None:
    store, backup = tmp_path / "in" / "store.db", tmp_path / "backup.db"
    for args in (["remember", "Tea is served at five"], ["backup", str(backup)]):
        command = [sys.executable, "-m", "recollect", "--store", str(tmp_path / "first.db"), *args, "--quiet"]
        subprocess.run(command, check=True, timeout=60)
    ran = told(signal.SIGTERM, "recollect.stores.sqlite.copies:sync", "--store", str(store), "restore", str(backup))
    assert (ran.returncode, list(store.parent.iterdir())) == (128 + signal.SIGTERM, []), ran.stderr


def test_who_asked_not_to_hear_of_a_closed_terminal_does_not(home: Path, tmp_path: Path) -> None:
    ran = told(signal.SIGHUP, "recollect.importers:export", "export", str(tmp_path / "out.jsonl"), ignored=True)
    assert "it was told to end" in ran.stderr


def test_an_mcp_server_ends_at_once(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "recollect", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(
            '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",'
            ' "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
        )
        server.stdin.flush()
        assert "result" in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == -signal.SIGTERM
