"""Every door at once on one store: two daemons, ten command lines, an MCP server; nothing is lost, nothing doubled."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from tests.doors.http_cases import Daemon, daemon
from tests.doors.mcp_cases import Visit, visit

COMMAND_LINES = 10
EACH = 8
SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
PATIENCE_SECONDS = 300
"""Only so that a hanging test ends; nothing here is measured."""

Receipts = list[dict[str, Any]]
Writer = Callable[[str, threading.Barrier], Receipts]


def texts_of(writer: str) -> list[str]:
    """What one writer says: as many texts that all say as texts of its own, so unlike that none is taken for a twin."""
    return [text for pair in zip(_made_up("all"), _made_up(writer), strict=True) for text in pair]


def _made_up(name: str) -> list[str]:
    chance = random.Random(name)
    return [" ".join("".join(chance.choices(SYLLABLES, k=3)) for _ in range(8)) for _ in range(EACH)]


def over_http(running: Daemon, writer: str, ready: threading.Barrier) -> Receipts:
    """Each write twice under its key, as a client that saw no answer would."""
    receipts: Receipts = []
    ready.wait()
    for number, text in enumerate(texts_of(writer)):
        for _ in range(2):
            status, receipt = running.ask("POST", "/v1/memories", {"content": text, "key": f"{writer} {number}"})
            assert status in (200, 201), receipt
            receipts.append(receipt)
    return receipts


def over_the_command_line(store: Path, writer: str, ready: threading.Barrier) -> Receipts:
    """Started before it is told what to remember, so that all of them come to the store together."""
    command = [sys.executable, "-m", "recollect", "--store", str(store), "--json", "remember", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ready.wait()
        out, _ = process.communicate("\n".join(texts_of(writer)), PATIENCE_SECONDS)
    assert process.returncode == 0
    return json.loads(out)["receipts"]


def over_mcp(store: Path, writer: str, ready: threading.Barrier) -> Receipts:
    arguments = ["-m", "recollect", "--store", str(store), "mcp"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def work(at: Visit) -> Receipts:
        await at.call("memory_status")
        ready.wait()
        return [await at.call("memory_remember", content=text) for text in texts_of(writer)]

    return visit(server, work)


def all_at_once(writers: dict[str, Writer]) -> dict[str, Receipts]:
    """What each writer was told; they begin when all of them are ready, and one that fails fails the test."""
    ready = threading.Barrier(len(writers), timeout=PATIENCE_SECONDS)
    told: dict[str, Receipts] = {}
    failures: list[str] = []

    def run(name: str, write: Writer) -> None:
        try:
            told[name] = write(name, ready)
        except BaseException as failure:  # an assertion in a thread would be lost
            ready.abort()
            failures.append(f"{name}: {failure!r}")

    threads = [threading.Thread(target=run, args=one) for one in writers.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert failures == []
    assert set(told) == set(writers)
    return told


def test_all_doors_at_once_lose_nothing_and_double_nothing(home: Path, tmp_path: Path) -> None:
    store, other = tmp_path / "shared.db", tmp_path / "other"
    other.mkdir()
    with daemon(home, "--store", str(store)) as first, daemon(other, "--store", str(store)) as second:
        writers: dict[str, Writer] = {
            "daemon one": partial(over_http, first),
            "daemon two": partial(over_http, second),
            "mcp": partial(over_mcp, store),
        }
        writers |= {f"command line {one}": partial(over_the_command_line, store) for one in range(COMMAND_LINES)}
        told = all_at_once(writers)
        page = first.ask("GET", "/v1/memories?limit=200")[1]["memories"]
        assert second.ask("GET", "/v1/memories?limit=200")[1]["memories"] == page
        assert first.ask("GET", "/v1/stats")[1]["memories"] == len(page)

    stored = {one["content"]: one["id"] for one in page}
    said = {name: texts_of(name) for name in writers}
    assert Counter(one["content"] for one in page) == Counter({text for texts in said.values() for text in texts})
    for name, receipts in told.items():
        expected = [text for text in said[name] for _ in range(2 if name.startswith("daemon") else 1)]
        assert [one["id"] for one in receipts] == [stored[text] for text in expected], name
    ran = subprocess.run(
        [sys.executable, "-m", "recollect", "--store", str(store), "--json", "doctor"], capture_output=True, check=True
    )
    assert [one for one in json.loads(ran.stdout)["findings"] if one["severity"] != "info"] == []
