"""Plots: nothing is cut off at an edge, and what is shortened can still be told apart."""

from __future__ import annotations

import re
from html import unescape

from recollect.evals import plots

LONG = "balanced@limit=3@fusion.ranges.similarity=0.25"
WIDEST = 7.0
"""Of a letter in the page's font, on average, as browsers draw it."""


def shown(svg: str) -> list[tuple[float, str]]:
    found = re.findall(
        r'<text x="([\d.]+)" y="[\d.]+"(?: class="strong")?>(?:<title>[^<]*</title>)?([^<]*)</text>', svg
    )
    return [(float(x), unescape(text)) for x, text in found]


def test_names_of_curves_end_before_the_edge_and_keep_what_parts_them() -> None:
    svg = plots.lines("t", {LONG: [(0, 0), (1, 1)], LONG.replace("25", "35"): [(0, 1), (1, 0)]}, "k", "recall@k")
    names = [(x, text) for x, text in shown(svg) if "balanced" in text]
    assert all(x + len(text) * WIDEST <= plots.WIDTH for x, text in names)
    assert len({text for _, text in names}) == 2 and all(text.startswith("balanced@") for _, text in names)
    assert f"<title>{LONG}</title>" in svg


def test_names_of_systems_end_before_their_lines_and_keep_what_parts_them() -> None:
    svg = plots.forest("t", [("set", name, 0.5, 0.4, 0.6) for name in (LONG, LONG.replace("25", "35"))])
    names = [(x, text) for x, text in shown(svg) if text.startswith("balanced")]
    assert all(x + len(text) * WIDEST <= plots.LEFT for x, text in names)
    assert len({text for _, text in names}) == 2


def test_axes_tell_their_whole_names() -> None:
    svg = plots.lines("t", {"a": [(0, 0), (1, 1)]}, "answerable questions kept", "unanswerable injected")
    assert "answerable questions kept → ; ↑ unanswerable injected" in [text for _, text in shown(svg)]
