"""A command line in a home folder of its own, with the fake embedder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner


@dataclass(frozen=True)
class Ran:
    """What one run left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without models; nothing of the machine's own settings shines through."""
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        monkeypatch.delenv(name)
    for name in ("FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("RECOLLECT_HOME", str(folder))
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "fake")
    monkeypatch.setenv("RECOLLECT_RERANKER", "none")
    monkeypatch.setenv("NO_COLOR", "1")
    return folder


Cli = Callable[..., Ran]


@pytest.fixture
def cli(home: Path) -> Cli:
    """Run a command in this process. A traceback is a failure of the test, whatever the exit code."""
    from recollect.doors.cli.app import app

    def run(*args: str, input: str | None = None, terminal: bool = False, columns: int = 100) -> Ran:
        given = {"FORCE_COLOR": "1", "COLUMNS": str(columns), "TERM": "xterm-256color"} if terminal else {}
        result = CliRunner().invoke(app, list(args), input=input, env=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process(home: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run a command in a process of its own, as a shell would."""

    def run(*args: str | bytes, input: bytes = b"", python: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, *python, "-m", "recollect", *args]
        return subprocess.run(command, input=input, capture_output=True, timeout=120, check=False)

    return run
