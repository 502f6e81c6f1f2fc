"""How long an agent waits for the hook: 10,000 memories, a running daemon, 200 prompts through the real process.

    python -m benchmarks.hook_latency [--memories 10000] [--prompts 200] [--embedder default]

Each number is the whole life of one `recollect hook UserPromptSubmit` process, from before it is started until it has
ended, as the agent sees it. Other work on the machine lengthens it, so the load average, the life of a Python that does
nothing and the processor time of hook and daemon are told beside it. Prints facts; judges nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = (
    "the checkout",
    "the billing job",
    "the search index",
    "the login page",
    "the mobile app",
    "the nightly export",
)
FACTS = ("runs on", "was moved to", "depends on", "must never use", "is tested with", "falls back to")
THINGS = ("PostgreSQL", "Redis", "SQLite in WAL mode", "Kafka", "the old API", "S3", "a cron job", "gRPC", "Nginx")
UNMEASURED = 5
REASONS = ("because of latency", "since the outage in May", "to save money", "until the audit", "by team decision")


def memories(count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Sentences as people write them down, no two alike."""
    for number in range(count):
        words = (chance.choice(one) for one in (PARTS, FACTS, THINGS, REASONS))
        yield {"content": f"Service {number}: {' '.join(words)}", "type": chance.choice(("decision", "fact", "lesson"))}


def prompt(chance: random.Random) -> str:
    return f"What does {chance.choice(PARTS)} use, and why was {chance.choice(THINGS)} chosen {chance.choice(REASONS)}?"


def filled(home: Path, count: int, chance: random.Random) -> None:
    """A store with that many memories, all of them embedded."""
    import recollect
    from recollect import Draft

    with recollect.open(home=home, background=False) as memory:
        memory.remember_many((Draft(**one) for one in memories(count, chance)), dedupe=False)
        memory.upkeep()


class Life:
    """One process from its start to its end: how long it took, what it cost, and whether it gave context."""

    def __init__(self, command: list[str], payload: dict[str, Any], environment: dict[str, str]) -> None:
        given = json.dumps(payload).encode()
        before, start = _spent_by_children(), time.perf_counter()
        done = subprocess.run(command, input=given, capture_output=True, env=environment, check=True)
        self.ms = (time.perf_counter() - start) * 1000
        self.cpu_ms = (_spent_by_children() - before) * 1000
        self.answered = b"additionalContext" in done.stdout


def _spent_by_children() -> float:
    """Processor seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spent_by(process: int) -> float:
    """Processor seconds of a living process, to a hundredth; Linux only, nothing elsewhere."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(home: Path, arguments: argparse.Namespace, chance: random.Random) -> dict[str, Any]:
    environment = {**os.environ, "RECOLLECT_HOME": str(home), "RECOLLECT_NO_DAEMON": "1"}
    serve = [sys.executable, "-m", "recollect", "serve", "--port", "0", "--json"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as daemon:
        assert daemon.stdout is not None
        try:
            daemon.stdout.readline()
            hook = [str(Path(sys.executable).parent / "recollect"), "hook", "UserPromptSubmit", "--agent", "claude"]
            lives: list[Life] = []
            spent = 0.0
            # A few unmeasured prompts first: the first one of a day also loads the model.
            for number in range(-UNMEASURED, arguments.prompts):
                payload = {"session_id": f"s{number}", "cwd": str(home), "prompt": prompt(chance)}
                spent = _spent_by(daemon.pid) if number == 0 else spent
                lives.append(Life(hook, payload, environment))
            lives = lives[UNMEASURED:]
            spent = _spent_by(daemon.pid) - spent
            bare = [Life([sys.executable, "-c", "pass"], {}, environment) for _ in range(20)]
        finally:
            daemon.terminate()
    return {
        "memories": arguments.memories,
        "prompts": arguments.prompts,
        "embedder": os.environ["RECOLLECT_EMBEDDER"],
        "with_context": sum(one.answered for one in lives),
        "p50_ms": round(percentile([one.ms for one in lives], 0.5), 1),
        "p95_ms": round(percentile([one.ms for one in lives], 0.95), 1),
        "max_ms": round(max(one.ms for one in lives), 1),
        "hook_cpu_p50_ms": round(percentile([one.cpu_ms for one in lives], 0.5), 1),
        "daemon_cpu_ms": round(spent / len(lives) * 1000, 1),
        "bare_python_p50_ms": round(percentile([one.ms for one in bare], 0.5), 1),
        "bare_python_cpu_p50_ms": round(percentile([one.cpu_ms for one in bare], 0.5), 1),
        "load_average": [round(one, 1) for one in os.getloadavg()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--embedder", default="default", help="as in `recollect models list`; fake needs no model")
    arguments = parser.parse_args()
    # The models stay where they are, although the home is a new one.
    from recollect import settings

    os.environ["RECOLLECT_MODELS"] = str(settings.load().models)
    os.environ.update(RECOLLECT_EMBEDDER=arguments.embedder, RECOLLECT_RERANKER="none")
    chance = random.Random(7)
    home = Path(tempfile.mkdtemp(prefix="recollect-"))
    try:
        filled(home, arguments.memories, chance)
        print(json.dumps(measure(home, arguments, chance), indent=2))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
