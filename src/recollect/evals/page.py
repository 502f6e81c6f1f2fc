"""The report: one HTML page that needs nothing but itself, in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from recollect.evals import plots
from recollect.evals.tables import SHOWN, Table, origins, tables

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fdfdfb; --soft: #6b6b76; --rule: #d8d8d2;
  --c0: #2f5fd0; --c1: #c2410c; --c2: #15803d; --c3: #9333ea; --c4: #0e7490; --c5: #a16207; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --paper: #17171a; --soft: #a0a0ab; --rule: #3a3a42;
  --c0: #7aa2ff; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc; --c4: #22d3ee; --c5: #facc15; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } p { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--rule); padding: .25rem .6rem; text-align: left; white-space: nowrap; }
svg { display: block; max-width: 46rem; margin: 1rem 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg text.strong { font-weight: 600; } svg line, svg polyline { fill: none; stroke-width: 2; }
svg .axis { fill: none; stroke: var(--soft); stroke-width: 1; }
svg .d1 { stroke-dasharray: 6 3; } svg .d2 { stroke-dasharray: 2 3; }
"""
COLOUR = "svg .c{0} {{ stroke: var(--c{0}); }} svg circle.c{0} {{ fill: var(--c{0}); }}\n"


def html(documents: Sequence[Mapping[str, Any]], title: str = "How well recollect recalls") -> str:
    """Plots first, then every table, then what it all rests on."""
    style = STYLE + "".join(COLOUR.format(number) for number in range(plots.COLOURS))
    parts = [f"<h1>{escape(title)}</h1>"]
    drawn = [*_run_plots(documents), *_sweep_plots(documents), *_confidence_plots(documents)]
    if drawn:
        parts += ["<h2>Plots</h2>", *drawn]
    parts += [_table(one) for one in tables(documents)]
    parts += ["<h2>Measured</h2>", *(f"<p>{escape(line)}</p>" for line in origins(documents))]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{style}</style></head>\n'
        f"<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def _table(table: Table) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<h2>{escape(table.title)}</h2>\n<div class="wide"><table><tr>{top}</tr>\n{rows}</table></div>'


def _run_plots(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    results = [result for one in documents if one["kind"] == "run" for result in one["results"]]
    drawn: list[str] = []
    for name in SHOWN:
        rows = [
            (one["data"]["name"], one["system"], found["mean"], found["low"], found["high"])
            for one in results
            if (found := one["measures"].get(name))
        ]
        if rows and name in ("recall@10", "ndcg@10"):
            drawn.append(plots.forest(f"{name}, mean and 95 % interval", rows))
    for set_name in dict.fromkeys(one["data"]["name"] for one in results):
        here = [one for one in results if one["data"]["name"] == set_name]
        curves = {one["system"]: _recall_curve(one["measures"]) for one in here}
        if any(len(curve) > 1 for curve in curves.values()):
            drawn.append(plots.lines(f"{set_name}: recall by depth", curves, "k", "recall@k"))
        gates = {one["system"]: one["abstention"]["curve"] for one in here if one.get("abstention")}
        if gates:
            title = f"{set_name}: unanswerable questions that inject something"
            drawn.append(plots.lines(title, gates, "answerable questions kept", "unanswerable injected"))
    return drawn


def _confidence_plots(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    fits = [fit for one in documents if one["kind"] == "abstain" for fit in one["fits"]]
    curves = {one["name"]: one["curve"] for one in fits}
    title = "unanswerable questions that inject something, each scope left out in turn"
    return [plots.lines(title, curves, "answerable questions kept", "unanswerable injected")] if curves else []


def _recall_curve(measures: Mapping[str, Mapping[str, float]]) -> list[plots.Point]:
    return [
        (float(name.partition("@")[2]), found["mean"]) for name, found in measures.items() if name.startswith("recall@")
    ]


def _sweep_plots(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """One curve per set over a single numeric option, and one for the macro average; one value makes no curve."""
    drawn: list[str] = []
    for document in (one for one in documents if one["kind"] == "sweep"):
        paths = list(dict.fromkeys(path for one in document["combinations"] for path in one["options"]))
        values = [one["options"][path] for path in paths[:1] for one in document["combinations"]]
        if len(paths) != 1 or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
            continue
        path, by = paths[0], document["by"]
        series: dict[str, list[plots.Point]] = {"macro average": []}
        for one in (one for one in document["combinations"] if by in one["macro"]):
            series["macro average"].append((float(one["options"][path]), one["macro"][by]))
            for name, found in one["sets"].items():
                if by in found["measures"]:
                    series.setdefault(name, []).append((float(one["options"][path]), found["measures"][by]["mean"]))
        if len({x for x, _ in series["macro average"]}) > 1:
            drawn.append(plots.lines(f"{document['profile']}: {by} over {path}", series, path, by))
    return drawn
