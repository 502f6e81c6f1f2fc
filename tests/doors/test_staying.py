"""Processes that stay spare the garbage collector; a library leaves that of its host as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recollect.doors.staying import THRESHOLDS

PATIENCE_SECONDS = 120
"""Only so that a hanging test ends; nothing here is measured."""

TELL = "print(gc.get_freeze_count(), *gc.get_threshold(), file=sys.stderr, flush=True)"
DAEMON = f"""
import gc, os, sys
from recollect.doors.http.daemon import Place, serve

def started(*_):
    {TELL}
    os._exit(0)

serve(None, Place(port=0), started)
"""
MCP = f"""
import gc, os, sys, threading, time
from recollect.doors.mcp.stdio import serve
from recollect.engine import open_engine

def watch():
    while not gc.get_freeze_count() or gc.get_threshold()[0] < 1_000:
        time.sleep(0.01)
    {TELL}
    os._exit(0)

threading.Thread(target=watch, daemon=True).start()
serve(open_engine)
"""
LIBRARY = f"""
import gc, sys
from recollect.engine import open_engine

with open_engine() as engine:
    engine.remember("the office moved to Lyon")
    engine.recall("office")
    {TELL}
"""


def told(code: str, said: bytes = b"") -> list[int]:
    """How many objects a process has frozen, and its thresholds."""
    piped = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", code], **piped) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(said)
        process.stdin.flush()  # and left open: a server goes with its client
        try:
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()
        return [int(word) for word in process.stderr.read().split()[-4:]]


def conversation() -> bytes:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    said: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": "office"}}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in said)


@pytest.mark.parametrize(("code", "said"), [(DAEMON, b""), (MCP, conversation())])
def test_a_server_sets_aside_what_stays(home: Path, code: str, said: bytes) -> None:
    frozen, *thresholds = told(code, said)
    assert frozen > 1_000 and tuple(thresholds) == THRESHOLDS


def test_a_library_leaves_the_collector_alone(home: Path) -> None:
    frozen, *thresholds = told(LIBRARY)
    own = subprocess.run([sys.executable, "-c", f"import gc, sys; {TELL}"], capture_output=True, check=True).stderr
    assert [frozen, *thresholds] == [int(word) for word in own.split()]


CONNECTIONS = """
import gc
from collections import deque
from recollect.doors.staying import settle_down

settle_down()
in_use, most = deque(maxlen=1_500), 0
for number in range(600_000):
    one = {"number": number}
    one["itself"] = [one, {}, []]
    in_use.append(one)
    if number % 20_000 == 0:
        most = max(most, len(gc.get_objects()))
print(most)
"""


def test_what_connections_leave_in_circles_is_found_in_time() -> None:
    """They are in use for seconds, so that the collector has set them aside when they are left."""
    done = subprocess.run([sys.executable, "-c", CONNECTIONS], capture_output=True, check=True, timeout=120)
    assert int(done.stdout) < 100_000
