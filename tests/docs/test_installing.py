"""What is to be installed is told by the names of packages: the index knows another project by ours."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from recollect import extras

ROOT = Path(__file__).parents[2]
STATED: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
WRITTEN = ("src", "docs", "plugins", ".claude-plugin", "deploy", "benchmarks")
BY_NAME = re.compile(r"(?:pip3? install|uv add|uvx|pipx (?:run|install))[^\n`&]*[ '\"]recollect(?:\[|['\"`\s]|$)")


def names(requirements: str) -> set[str]:
    return set(re.findall(r"'([A-Za-z0-9_.-]+)", requirements))


@pytest.mark.parametrize("wanted", [("mcp",), ("server",), ("server", "mcp"), ("postgres",), ("qdrant",), ("eval",)])
def test_the_command_names_every_package_of_an_extra(wanted: tuple[str, ...]) -> None:
    told = extras.install(*wanted)
    assert told.startswith("pip install '")
    assert names(told) == names(" ".join(f"'{one}'" for extra in wanted for one in STATED[extra]))


def test_from_sources_that_were_never_installed_the_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _name: None)
    assert extras.install("server", "mcp") == "pip install '.[server,mcp]'"


def test_nobody_is_told_to_ask_the_index_for_us() -> None:
    written = [*ROOT.glob("*.md"), *(file for name in WRITTEN for file in (ROOT / name).rglob("*"))]
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in written
        if file.is_file() and file.suffix != ".pyc"
        for line in file.read_text("utf-8").splitlines()
        if BY_NAME.search(line)
    ]
    assert len(written) > 100 and found == []


@pytest.mark.parametrize("line", ["pip install 'recollect[mcp]'", "uvx recollect mcp", 'pip install "recollect[eval]"'])
def test_such_a_line_would_be_found(line: str) -> None:
    assert BY_NAME.search(line)
