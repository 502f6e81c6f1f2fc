"""`python -m tests.compose`: the stack of deploy/compose.yaml for real: built, started, asked, its database restarted.

Needs Docker with Compose, or what COMPOSE names instead (`COMPOSE=podman-compose`), and the images that the files name.
Port 4777 must be free. Everything that was made is taken away again, but for the images.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMPOSE = [*os.environ.get("COMPOSE", "docker compose").split(), "--file", "deploy/compose.yaml"]
PASSWORDS = {"POSTGRES_PASSWORD": "of the administrator", "RECOLLECT_PASSWORD": "the daemon's own"}
ADDRESS = "http://127.0.0.1:4777"
PATIENCE_S = 120.0


def compose(*arguments: str) -> str:
    """What a command of Compose prints; it fails loudly."""
    environment = {**os.environ, **PASSWORDS}
    done = subprocess.run(
        [*COMPOSE, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def ask(token: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """What the daemon answers."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(ADDRESS + path, data, headers), timeout=30) as answer:
        return json.load(answer)


def eventually(attempt: Callable[[], Any]) -> Any:
    """What the attempt gives as soon as it succeeds."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return attempt()
        except (OSError, subprocess.CalledProcessError, urllib.error.URLError):
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def check() -> None:
    """What is remembered is there, by words and by meaning, also after the database was restarted."""
    token = eventually(lambda: compose("exec", "-T", "recollect", "cat", "/data/token").strip())
    stats = eventually(lambda: ask(token, "/v1/stats"))
    assert stats["kind"] == "postgresql" and stats["embedding"]["model"], stats
    remembered = ask(token, "/v1/memories", {"content": "The ferry to Oslo leaves at noon"})["id"]
    compose("restart", "db")
    for question in ("ferry", "when does the boat sail?"):
        hits = eventually(lambda question=question: ask(token, "/v1/recall", {"query": question})["hits"])
        assert [hit["id"] for hit in hits] == [remembered], (question, hits)
    told = compose("exec", "-T", "recollect", "recollect", "doctor", "--json")
    assert json.loads(told)["healthy"], told


def main() -> int:
    try:
        compose("up", "--detach")
        check()
    finally:
        compose("down", "--volumes")
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
