"""The results as a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.bars import bars


def page(results: Mapping[str, Any]) -> str:
    """Machine, promises, and the numbers behind them."""
    facts = results["machine"]
    lines = [
        f"# Benchmark, {results['kind']}, {facts['date']}, commit {facts['commit']}",
        "",
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, Python {facts['python']},"
        f" SQLite {facts['sqlite']}; load when it began: {facts['load_at_start']}. Vectors: {results['vectors']}.",
        "Times in milliseconds. CPU is that of all threads of the process; where the load was not near zero, read the"
        " ratios and the CPU, not the wall.",
        "",
        "## Promises",
        "",
        "| what | found | bar | kept |",
        "|---|---|---|---|",
    ]
    for bar in bars(results):
        sign = "≥" if bar.more_is_better else "≤"
        lines.append(f"| {bar.what} | {bar.found:g} | {sign} {bar.allowed:.3g} | {'yes' if bar.kept else '**no**'} |")
    for size, one in results["sizes"].items():
        lines += ["", f"## {int(size):,} memories", "", "| what | p50 | p95 | p99 | CPU p50 |", "|---|---|---|---|---|"]
        lines += [_row(f"recollect recall, scope {scope}", one["recall"][scope]) for scope in ("all", "10 %", "0.1 %")]
        lines += [_row(f"recollect {name}", times) for name, times in one["daily"].items()]
        lines += [_row(f"recollect, {name} alone", times) for name, times in one["finders"].items()]
        lines += [_row(f"plain FTS5 OR / float scan, {name}", times) for name, times in one["plain"].items()]
        if one.get("whole_recall"):
            lines.append(_row("embedding a question alone", one["whole_recall"]["embedding_alone"]))
            lines.append(_row("recollect recall with embedding", one["whole_recall"]["with_embedding"]))
        absent: list[str] = []
        for name, times in one.get("rivals", {}).items():
            if "p50" in times:
                lines.append(_row(f"{name}, built in {times['build_s']:.0f} s", times))
            else:
                absent.append(f"{name} ({times.get('missing') or times.get('failed')})")
        lines += ["", f"Stages (wall): {_pairs(one['recall']['stages_ms'])}. Legs: {_pairs(one['recall']['legs_ms'])}."]
        lines += ["", f"Read ahead before: {_pairs(one['recall']['read_ahead'])}."]
        lines += ["", f"Import: {_pairs(one['import'])}. Open cold: {_pairs(one['open_cold'])}."]
        lines += ["", f"Open warm: {_pairs(one['open_warm'])}. Bytes a memory: {one['bytes_per_memory']}."]
        if absent:
            lines += ["", f"Not compared: {'; '.join(absent)}."]
    for title in ("writes", "command line"):
        if results.get(title):
            lines += ["", f"## {title.capitalize()}", ""]
            lines += [
                f"- {name}: {_pairs(found) if isinstance(found, dict) else found}"
                for name, found in results[title].items()
            ]
    return "\n".join(lines) + "\n"


def _row(name: str, times: Mapping[str, float]) -> str:
    return f"| {name} | {times['p50']:.2f} | {times['p95']:.2f} | {times['p99']:.2f} | {times['cpu_p50']:.2f} |"


def _pairs(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in numbers.items())
