"""docs/library.md: every example is a whole program that prints what stands below it; no public name is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(number: int, tmp_path: Path) -> None:
    code, printed = EXAMPLES[number]
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    environment = {**os.environ, "RECOLLECT_HOME": str(tmp_path / "home"), "RECOLLECT_EMBEDDER": "none"}
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert (done.stdout, done.stderr) == (printed, "")


def test_every_example_says_what_it_prints() -> None:
    assert len(EXAMPLES) == PAGE.count("```python\n") > 8


def test_every_public_name_is_there() -> None:
    names = [f"recollect.{name}" for name in recollect.__all__ if name not in ("Engine", "__version__")]
    assert [name for name in names if not re.search(rf"^(?:### |- )`{name}`", PAGE, re.MULTILINE)] == []


def test_links_within_the_page_lead_somewhere() -> None:
    slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", PAGE, re.M)}
    assert [anchor for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE) if anchor not in slugs] == []
