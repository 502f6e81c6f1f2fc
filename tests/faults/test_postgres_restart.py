"""The server is restarted under four processes that write and recall: nothing acknowledged is lost, all go on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from recollect.domain.question import Filter
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import running_server

pytestmark = pytest.mark.postgres

PROCESSES = 4
# How long anything may take before the test gives up: a bound against hanging, not a measure.
PATIENCE_S = 60.0
RECOVERY_S = 10.0

WORKER = """
import sys, threading
import numpy as np
from recollect.domain.changes import Put
from recollect.domain.errors import RecollectError
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded
from recollect.stores.postgres.opening import open_postgres

address, tenant = sys.argv[1], sys.argv[2]
store = open_postgres(address, wait_s=5.0)
say, over = threading.Lock(), threading.Event()
east = np.array([1, 0], dtype=np.float32)

def tell(*words):
    with say:
        print(*words, flush=True)

def attempt(step, *arguments):
    try:
        step(*arguments)
    except RecollectError as error:
        tell("error", type(error).__name__)
        over.wait(0.05)
    except BaseException as error:
        tell("untyped", repr(error)[:300].replace(chr(10), " "))
        over.wait(0.05)

def write(number):
    memory = Memory(f"{tenant}-{number}", f"note {number} of shared words by {tenant}", scope=Scope(tenant))
    store.records.write([Put(memory)])
    tell("put", memory.id)
    store.vectors.put("m", [Embedded(memory.id, content_hash(memory.content), east[None, :])])
    tell("embedded", memory.id)

def recall():
    seen = set(store.text.match(Or((Term("shared"), Term("words"))), Filter(tenant), 20).ids)
    seen |= {hit.id for hit in store.vectors.search("m", east, Filter(tenant), 20)}
    seen |= {memory.id for memory in store.records.scan(Filter(tenant), limit=20)}
    for id in seen:
        if not id.startswith(tenant + "-"):
            tell("foreign", id)
    tell("recalled", len(seen))

def writing():
    number = 0
    while not over.is_set():
        number += 1
        attempt(write, number)

def reading():
    while not over.is_set():
        attempt(recall)

threads = [threading.Thread(target=work) for work in (writing, reading)]
for thread in threads:
    thread.start()
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
store.close()
tell("done", tenant)
"""


@dataclass
class Worker:
    """One process and everything it said."""

    process: subprocess.Popen[str]
    said: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            self.said.append((word, rest))

    def all(self, *words: str) -> list[str]:
        return [rest for word, rest in list(self.said) if word in words]

    def wait_for_more(self) -> None:
        """Until it has written and recalled again."""
        before = {word: len(self.all(word)) for word in ("put", "embedded", "recalled")}
        deadline = time.monotonic() + PATIENCE_S
        while any(len(self.all(word)) <= count for word, count in before.items()):
            assert time.monotonic() < deadline, self.said[-20:]
            time.sleep(0.02)


@contextmanager
def workers(address: str) -> Iterator[list[Worker]]:
    """Four processes at work; they end when asked, and are killed if they do not."""
    running = [
        Worker(
            subprocess.Popen(
                [sys.executable, "-c", WORKER, address, f"tenant{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        for number in range(PROCESSES)
    ]
    listeners = [threading.Thread(target=worker.listen) for worker in running]
    for listener in listeners:
        listener.start()
    try:
        yield running
    finally:
        for worker in running:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        for worker in running:
            try:
                worker.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        for listener in listeners:
            listener.join()
        for worker in running:
            assert worker.process.stdout is not None
            worker.process.stdout.close()


def judge(address: str, running: list[Worker]) -> None:
    """What four processes saw, against what is there."""
    with closing(open_postgres(address)) as store:
        assert store.vectors is not None
        for number, worker in enumerate(running):
            assert worker.all("untyped") == []
            assert worker.all("foreign") == []
            assert worker.all("done") == [f"tenant{number}"]
            assert set(worker.all("error")) <= {"StoreUnavailable", "Timeout"}
            written = worker.all("put")
            assert {memory.id for memory in store.records.fetch(written)} == set(written)
            embedded = worker.all("embedded")
            assert {entry.id for entry in store.vectors.stored("m", embedded)} == set(embedded)
            stored = store.records.scan(Filter(f"tenant{number}"), limit=100_000)
            assert {memory.scope.namespace for memory in stored} == {f"tenant{number}"}
        assert store.care.check() == []


def restarted_under_load(seconds: float) -> tuple[list[Worker], list[float]]:
    """The workers after all that, and how long after each restart the last of them was at work again."""
    recovered: list[float] = []
    with running_server(durable=True) as server:
        address = server.fresh()
        open_postgres(address).close()
        with workers(address) as running:
            for how in ("fast", "immediate"):
                for worker in running:
                    worker.wait_for_more()
                time.sleep(seconds / 3)
                server.stop(how)
                time.sleep(0.3)
                server.start()
                back = time.monotonic()
                for worker in running:
                    worker.wait_for_more()
                recovered.append(time.monotonic() - back)
            time.sleep(seconds / 3)
        judge(address, running)
    return running, recovered


def test_nothing_acknowledged_is_lost_when_the_server_restarts_twice() -> None:
    restarted_under_load(1.0)


def main() -> int:
    """The same for longer, with figures; a recovery of more than ten seconds is a failure."""
    running, recovered = restarted_under_load(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    for word in ("put", "embedded", "recalled", "error", "untyped", "foreign"):
        print(f"{word}: {sum(len(worker.all(word)) for worker in running)}")
    print(f"errors: {sorted({name for worker in running for name in worker.all('error')})}")
    print(f"seconds until all four wrote and recalled again: {', '.join(f'{one:.1f}' for one in recovered)}")
    print("every acknowledged write is there, no foreign row was seen, doctor finds nothing")
    return int(max(recovered) > RECOVERY_S)


if __name__ == "__main__":
    sys.exit(main())
