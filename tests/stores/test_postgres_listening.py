"""Workers of several processes are called when memories wait for vectors, and share what waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.ports import Store
from recollect.stores.postgres import listening
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import PATIENCE_S, eventually, running_server

pytestmark = pytest.mark.postgres

MEMORIES = 200

# Looks once an hour, and holds its first batch until the other process has one too.
WORKER = """
import sys, threading
from datetime import UTC, datetime
from pathlib import Path
from recollect import worker
from recollect.encoders.fake import FakeEmbedder
from recollect.stores.postgres.opening import open_postgres
from recollect.upkeep import embed_backlog
from recollect.writing import WritePolicy

address, mine, others = sys.argv[1:]
worker.IDLE_SECONDS = 3600.0

def say(*words):
    print(*words, flush=True)

class Shared(FakeEmbedder):
    def embed_documents(self, texts):
        Path(mine).touch()
        while not Path(others).exists():
            threading.Event().wait(0.01)
        for text in texts:
            say("embedded", text)
        return super().embed_documents(texts)

def step():
    report = embed_backlog(store, Shared(), now=datetime.now(UTC), policy=WritePolicy(dedupe=False))
    say("idle")
    return report.embedded > 0

def wake():
    say("called")
    working.wake()

store = open_postgres(address)
working = worker.Worker(step, "test")
working.start()
store.subscribe(wake)
sys.stdin.read()
working.stop()
store.close()
"""


class Process:
    """A worker of its own, and what it said."""

    def __init__(self, address: str, mine: Path, others: Path) -> None:
        self.said: list[str] = []
        command = [sys.executable, "-c", WORKER, address, str(mine), str(others)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.said.extend(line.strip() for line in self._process.stdout)

    def is_idle(self) -> bool:
        """It listens, and has looked in vain since."""
        said = list(self.said)
        return "called" in said and "idle" in said[said.index("called") :]

    def embedded(self) -> list[str]:
        return [line.removeprefix("embedded ") for line in list(self.said) if line.startswith("embedded ")]

    def end(self) -> None:
        """Not by `communicate`, which would close what the other thread still reads."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._reader.join()
        self._process.stdout.close()


def test_two_processes_are_called_and_share_what_waits(address: str, store: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    processes = [Process(address, one, two), Process(address, two, one)]
    try:
        eventually(lambda: all(process.is_idle() for process in processes))
        texts = [f"note number {number}" for number in range(MEMORIES)]
        store.records.write([Put(Memory(f"m{number:04}", text)) for number, text in enumerate(texts)])
        eventually(lambda: sum(len(process.embedded()) for process in processes) >= MEMORIES)
    finally:
        for process in processes:
            process.end()
    shares = [process.embedded() for process in processes]
    assert all(shares)
    assert sorted([*shares[0], *shares[1]]) == sorted(texts)


def test_a_write_without_work_for_the_embedder_calls_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.vectors is not None
    called: list[str] = []
    monkeypatch.setattr("recollect.stores.postgres.records.announce", lambda server: called.append("called"))
    store.records.write([Put(Memory("m1", "before any model was asked for"))])
    assert called == []
    store.vectors.missing("model", 1)
    assert called == ["called"]
    store.records.write([Put(Memory("m2", "a secret", sensitive=True))])
    assert called == ["called"]
    store.records.write([Put(Memory("m3", "for the model"))])
    assert called == ["called", "called"]


def test_listening_goes_on_after_a_restart_of_the_server() -> None:
    calls: list[str] = []
    with running_server() as server:
        store = open_postgres(server.fresh())
        assert store.vectors is not None
        store.vectors.missing("model", 1)
        store.subscribe(lambda: calls.append("called"))
        eventually(lambda: bool(calls))
        server.stop("fast")
        known = len(calls)
        server.start()
        eventually(lambda: len(calls) > known)  # whatever came meanwhile was missed
        known = len(calls)
        store.records.write([Put(Memory("m1", "after the restart"))])
        eventually(lambda: len(calls) > known)
        store.close()


def test_behind_a_pooler_nobody_listens_and_workers_look(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "is_direct", lambda connection: False)
    calls: list[str] = []
    store.subscribe(lambda: calls.append("called"))
    eventually(lambda: "recollect-listen" not in {thread.name for thread in threading.enumerate()})
    assert calls == []
    assert "a pooler stands before PostgreSQL" in caplog.text


def test_what_a_forked_process_closes_is_still_its_parents(store: Store) -> None:
    assert store.vectors is not None
    assert store.vectors.missing("m", 5) == []
    called = threading.Event()
    store.subscribe(called.set)
    assert called.wait(PATIENCE_S)
    called.clear()
    child = os.fork()
    if not child:
        signal.alarm(20)  # who waits for threads that are not there waits for ever
        store.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.records.write([Put(Memory("m1", "left for the worker"))])
    assert called.wait(PATIENCE_S)
