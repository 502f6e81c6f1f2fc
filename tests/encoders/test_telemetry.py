"""Models are run, and nobody is told: onnxruntime reports its use to its makers, unless it is told not to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EMBED = (
    "import os, sys; from pathlib import Path; from recollect.encoders import open_embedder\n"
    "open_embedder(sys.argv[1], Path('missing')).embed_query('red'); print(os.environ['ORT_DISABLE_TELEMETRY'])"
)


@pytest.mark.parametrize("said", [None, "true"])
def test_a_model_that_is_used_leaves_nothing_for_others_to_collect(
    said: str | None, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}  # what says that this is a test says no by itself
    if said is not None:
        environment["ORT_DISABLE_TELEMETRY"] = said
    command = [sys.executable, "-c", EMBED, str(tiny_folder())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (said or "1")
    assert [str(file) for file in home.rglob("*")] == []
