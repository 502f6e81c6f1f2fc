"""Every binding behaviour is proved by at least one test."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent.parent
MANIFEST = tomllib.loads((Path(__file__).parent / "manifest.toml").read_text(encoding="utf-8"))
IDS = {f"{section}.{name}" for section, entries in MANIFEST.items() for name in entries}


def covered_ids(path: Path) -> set[str]:
    """The ids that tests of one file carry, read from its source: only markers on test functions and classes count."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "covers":
                found.update(str(one.value) for one in mark.args if isinstance(one, ast.Constant))
    return found


def test_every_behaviour_has_a_test_and_no_test_names_an_unknown_one() -> None:
    covered = set[str]().union(*(covered_ids(path) for path in TESTS.rglob("test_*.py")))
    assert sorted(IDS - covered) == []
    assert sorted(covered - IDS) == []
