"""A disk without room for anything: what is there is read all the same, and nobody who could write is kept from it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlite_cases import note, put

from recollect.domain.errors import DiskFull
from recollect.stores.sqlite import open_sqlite

WITHOUT_ROOM = """
import json, os, resource, signal, sys
from pathlib import Path
import recollect
from recollect.domain.errors import RecollectError
from recollect.stores.sqlite import open_sqlite
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # no file can grow, as on a full disk
"""

READ = """
file = Path(sys.argv[1])
with recollect.open(file, home=file.parent, embedder="none", reranker="none", read_only=True) as memory:
    found = [hit.id for hit in memory.recall("hiking")]
    held = [one.id for one in memory.list()]
    wrong = [one.id for one in memory.check()]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with recollect.open(file, home=file.parent, embedder="none", reranker="none") as writing:
        writing.remember("hiking again, with room")
        found_later = len(memory.recall("hiking"))
print(json.dumps({"found": found, "held": held, "wrong": wrong, "later": found_later}))
"""

OPEN = """
try:
    open_sqlite(sys.argv[1]).records.fetch(["a"])
except RecollectError as error:
    print(json.dumps({"type": type(error).__name__, "message": error.message}))
"""


def run(program: str, file: Path) -> Any:
    command = [sys.executable, "-c", WITHOUT_ROOM + program, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def left_behind(file: Path) -> None:
    """A store whose last memory is in its log alone, as a process leaves it that was killed."""
    aside = file.with_name("aside")
    aside.mkdir()
    store = open_sqlite(file)
    put(store, note("a", "winter notes about hiking"))
    for suffix in ("", "-wal"):
        shutil.copy(f"{file}{suffix}", aside / f"{file.name}{suffix}")
    store.close()
    for copied in aside.iterdir():
        shutil.copy(copied, file.with_name(copied.name))


@pytest.mark.parametrize("log", [False, True], ids=["closed", "killed"])
def test_who_only_reads_needs_no_room_and_keeps_nobody_away(tmp_path: Path, log: bool) -> None:
    file = tmp_path / "s.db"
    if log:
        left_behind(file)
    else:
        store = open_sqlite(file)
        put(store, note("a", "winter notes about hiking"))
        store.close()
    assert run(READ, file) == {"found": ["a"], "held": ["a"], "wrong": [], "later": 2}


def test_who_would_write_is_told_that_the_disk_is_full(tmp_path: Path) -> None:
    open_sqlite(tmp_path / "s.db").close()
    assert run(OPEN, tmp_path / "s.db") == {"type": "DiskFull", "message": "the disk is full"}


def test_a_reader_without_room_leaves_log_and_file_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    left_behind(file)
    before = {name: file.with_name(name).read_bytes() for name in ("s.db", "s.db-wal")}
    program = """
store = open_sqlite(sys.argv[1], read_only=True)
print(json.dumps([one.id for one in store.records.fetch(["a"])]))
store.close()
"""
    assert run(program, file) == ["a"]
    assert {name: file.with_name(name).read_bytes() for name in before} == before


def limited() -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RECOLLECT_HOME": str(folder), "RECOLLECT_EMBEDDER": "none"}
    program = [sys.executable, "-m", "recollect", "--json", "--store", str(folder / "s.db"), *arguments]
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limited
    )


def test_commands_read_on_a_full_disk_and_say_so(tmp_path: Path) -> None:
    left_behind(tmp_path / "s.db")
    recalled = command(tmp_path, "recall", "hiking")
    assert recalled.returncode == 0, recalled.stderr
    assert [hit["id"] for hit in json.loads(recalled.stdout)["hits"]] == ["a"]
    assert "the disk is full" in recalled.stderr
    refused = command(tmp_path, "remember", "no room for this")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["type"] == DiskFull.__name__
