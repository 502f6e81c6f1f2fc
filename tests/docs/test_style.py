"""The shape of the code: functions that can be read at once, files with one subject."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 500


def test_no_function_is_longer_than_a_screen() -> None:
    long: list[str] = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} ({lines})")
    assert long == []


def test_no_file_is_longer_than_its_subject() -> None:
    assert [str(path) for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES] == []
