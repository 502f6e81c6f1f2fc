"""A writer killed at any moment loses nothing that it acknowledged, and leaves a sound file."""

from __future__ import annotations

import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.stores.sqlite import open_sqlite

CYCLES = 15

WRITER = """
import sys, threading
import numpy as np
from recollect.domain.changes import Erase, Put, Touch
from recollect.domain.memory import EPOCH, Memory, content_hash
from recollect.ports import Embedded
from recollect.stores.sqlite import log, open_sqlite

# The log is copied beside the commits all the time, and brought to its end often.
log.SOON_PAGES, log.LATEST_PAGES = 20, 60
path, run = sys.argv[1], sys.argv[2]
store = open_sqlite(path)
say = threading.Lock()

def acknowledge(word, id):
    with say:
        sys.stdout.write(f"{word} {id}\\n")
        sys.stdout.flush()

def work(thread):
    for number in range(100_000):
        memory = Memory(id=f"{run}-{thread}-{number}", content=f"note {number} of run {run} by thread {thread}")
        store.records.write([Put(memory)])
        acknowledge("put", memory.id)
        entry = Embedded(memory.id, content_hash(memory.content), np.array([[1.0, number]], dtype=np.float32))
        store.vectors.put("m", [entry])
        acknowledge("embedded", memory.id)
        if number % 5 == 4:
            store.records.write([Erase(memory.id)])
            acknowledge("erased", memory.id)

for thread in range(3):
    threading.Thread(target=work, args=(thread,), daemon=True).start()
threading.Event().wait()
"""


def kill_after(path: Path, run: int, lines: int, delay_s: float) -> list[tuple[str, str]]:
    """Start a writer, read some acknowledgements, wait a random moment, kill it, read the rest."""
    worker = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(run)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    heard = [worker.stdout.readline() for _ in range(lines)]
    select.select([], [], [], delay_s)
    worker.send_signal(signal.SIGKILL)
    heard += worker.stdout.readlines()
    worker.stdout.close()
    assert worker.wait() == -signal.SIGKILL
    return [(word, id) for word, _, id in (line.strip().partition(" ") for line in heard if line.endswith("\n"))]


@pytest.mark.covers("more.late-embedding")
def test_sigkill_loses_no_acknowledged_write(tmp_path: Path) -> None:
    chance = random.Random(20_261_115)
    path = tmp_path / "s.db"
    states: dict[str, str] = {}
    for run in range(CYCLES):
        heard = kill_after(path, run, chance.randint(1, 40), chance.random() * 0.05)
        states.update({id: word for word, id in heard})
        store = open_sqlite(path)
        stored = {memory.id for memory in store.records.fetch(list(states))}
        lost = {id for id, word in states.items() if word != "erased" and id not in stored}
        risen = {id for id, word in states.items() if word == "erased" and id in stored}
        # An erasure may have been on the disk already when its writer died before it could say so.
        unsaid = {id for id in lost if int(id.rsplit("-", 1)[1]) % 5 == 4 and states[id] == "embedded"}
        assert (lost - unsaid, risen) == (set(), set())
        assert store.care.check() == []
        for id in unsaid:
            states[id] = "erased"
        store.close()
    assert len(states) > CYCLES
    assert {"embedded", "erased"} <= set(states.values())
