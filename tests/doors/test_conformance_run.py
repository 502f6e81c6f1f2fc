"""The conformance run is a step of `make test`, and no obstacle to somebody without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_whole_gate_includes_it_and_ends_with_the_summary_of_pytest() -> None:
    steps = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("test:"))
    named = steps.partition("##")[0].split()[1:]
    assert "conformance" in named
    assert named[-1] == "unit"


def test_without_the_registry_it_says_what_was_not_run(tmp_path: Path) -> None:
    nobody = {"npm_config_registry": "http://127.0.0.1:9/", "RECOLLECT_CONFORMANCE_CACHE": str(tmp_path)}
    command = [sys.executable, str(ROOT / "tests" / "doors" / "conformance" / "run.py")]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **nobody}, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("NOT RUN: the MCP conformance suites and the inspector.")
    assert not (tmp_path / "mcp-conformance" / "node_modules").exists()
