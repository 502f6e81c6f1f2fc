"""Tidying up beside others who look after the same file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlite_cases import note, put

from recollect.stores.sqlite import open_sqlite

# The lock of whoever copies the write-ahead log: one byte of the index file, by the file format of SQLite.
COPYING = """
import fcntl, sys
file = open(sys.argv[1] + "-shm", "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 121)
print("copying", flush=True)
sys.stdin.read()
"""


def test_tidy_leaves_the_log_to_whoever_is_copying_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_sqlite(path)
    put(store, note("a", "the ferry leaves at nine"))
    command = [sys.executable, "-c", COPYING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "copying\n"
        assert store.care.tidy()["checkpointed_pages"] == 0
        other.communicate()
    put(store, note("b", "and another at ten"))
    assert store.care.tidy()["checkpointed_pages"] > 0
    store.close()
