"""The README quotes figures; each must be the one that a benchmark wrote down."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def _rows(text: str) -> list[list[str]]:
    """The cells of every table line."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_the_quality_in_the_readme_is_that_of_the_quality_page() -> None:
    rows = _rows((ROOT / "benchmarks/quality.md").read_text("utf-8"))
    measured = {(row[0], row[1]): row for row in reversed(rows)}  # the first table stands last, and wins
    header = measured["set", "measure"]
    quoted = [row for row in _rows(README) if (row[0], row[1]) in measured and row[0] != "set"]
    assert len(quoted) >= 5
    for name, measure, bm25, dense, balanced in quoted:
        row = measured[name, measure]
        assert [bm25, dense] == [row[header.index("bm25")], row[header.index("dense")]]
        assert balanced == row[header.index("balanced")].partition(" ")[0]


def test_the_import_in_the_readme_is_that_of_the_quick_benchmark() -> None:
    sizes = json.loads((ROOT / "benchmarks/results/quick.json").read_text("utf-8"))["sizes"]
    assert f"writes {round(sizes['1000000']['import']['checked, per_s'], -2):,} memories a second" in README


def test_the_speed_in_the_readme_is_that_of_the_quick_benchmark() -> None:
    sizes = json.loads((ROOT / "benchmarks/results/quick.json").read_text("utf-8"))["sizes"]
    quoted = {
        row[0]: row[1:] for row in _rows(README) if re.fullmatch(r"[\d,]+", row[0]) and row[0].replace(",", "") in sizes
    }
    assert set(quoted) == {"100,000", "1,000,000"}
    for size, (recall, embedded, plain, opened) in quoted.items():
        one = sizes[size.replace(",", "")]
        assert recall == f"{one['recall']['all']['p50']:.0f} ms"
        assert embedded == f"{one['whole_recall']['with_embedding']['p50']:.0f} ms"
        assert plain == f"{one['plain']['hybrid']['p50']:.0f} ms"
        assert opened == f"{one['open_warm']['to_first_answer_s']:.2f} s"
