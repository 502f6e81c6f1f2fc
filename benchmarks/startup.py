"""What `recollect recall` costs its own process beside a running daemon: `python -m benchmarks.startup`.

The CPU time of the client from its first instruction to its end, at the median; the daemon's work is not in it. Beside
it: a Python that does nothing, and the same command when it has to open the store itself.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import recollect

ROUNDS = 15
MEMORIES = 200
QUESTION = "what falls back to the nightly export"
RECALL = ("-m", "recollect", "recall", QUESTION)
FORMS: dict[str, Sequence[str]] = {
    "bare Python": ("-c", "pass"),
    "recall": RECALL,
    "recall --json": (*RECALL, "--json"),
    "recall --explain": (*RECALL, "--explain"),
    "recall --direct": (*RECALL, "--direct"),
}
ROUTED = ("recall", "recall --json")
"""What the promise is about."""


def measure_startup() -> dict[str, Any]:
    """CPU and wall milliseconds of each form, medians; the folder has a short name, as a Unix socket needs."""
    with tempfile.TemporaryDirectory(prefix="rc-") as folder:
        home = Path(folder)
        with recollect.open(home=home, embedder="fake", background=False) as memory:
            drafts = [
                recollect.Draft(f"Service {n}: the nightly export falls back to host {n}") for n in range(MEMORIES)
            ]
            memory.remember_many(drafts, dedupe=False)
            memory.upkeep()
        own = {"RECOLLECT_HOME": folder, "RECOLLECT_EMBEDDER": "fake", "RECOLLECT_RERANKER": "none"}
        environment = {**os.environ, **own}
        serve = [sys.executable, "-m", "recollect", "serve", "--port", "0", "--json"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as daemon:
            assert daemon.stdout is not None
            try:
                daemon.stdout.readline()
                return {name: _life(words, environment) for name, words in FORMS.items()}
            finally:
                daemon.terminate()


def _life(words: Sequence[str], environment: dict[str, str]) -> dict[str, float]:
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(ROUNDS):
        spent, began = _spent(), time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, env=environment, check=True)
        wall.append(time.perf_counter() - began)
        cpu.append(_spent() - spent)
    return {"cpu_ms": round(float(np.median(cpu)) * 1000, 1), "wall_ms": round(float(np.median(wall)) * 1000, 1)}


def _spent() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(measure_startup(), indent=1))
