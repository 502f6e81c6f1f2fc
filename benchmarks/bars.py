"""What is promised, read from the numbers of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.startup import ROUTED
from benchmarks.writes import SAME_ROWS

PROMISED_FROM = 100_000


@dataclass(frozen=True)
class Bar:
    """One promise: its wording, the number found, the number allowed, and whether more is better."""

    what: str
    found: float
    allowed: float
    more_is_better: bool = False

    @property
    def kept(self) -> bool:
        return self.found >= self.allowed if self.more_is_better else self.found <= self.allowed


def bars(results: Mapping[str, Any]) -> list[Bar]:
    """Every promise that this run can judge. Ratios are of CPU time where other work may share the machine."""
    found: list[Bar] = []
    for name, one in results["sizes"].items():
        if int(name) >= PROMISED_FROM:
            found += _of_size(int(name), one)
    sizes = sorted(int(name) for name in results["sizes"])
    if len(sizes) > 1 and sizes[-1] >= 1_000_000:  # promised up to a million
        p50 = [results["sizes"][str(size)]["recall"]["all"]["cpu_p50"] for size in sizes]
        slope = float(np.polyfit(np.log(sizes), np.log(p50), 1)[0])
        found.append(Bar(f"growth of recall from {sizes[0]} to {sizes[-1]}: N to the power of", round(slope, 2), 0.75))
    writes = results.get("writes")
    if writes:
        gain = writes["16 writers"]["per_s"] / writes[SAME_ROWS]["per_s"]
        found.append(Bar("durable writes, 16 writers : one commit each of the same rows", round(gain, 2), 5.0, True))
        slow = writes["16 writers"]["p99_ms"] / writes["fsync_p50_ms"]
        found.append(Bar("p99 of a durable write with 16 writers : fsync p50", round(slow, 1), 20.0))
    commands = results.get("command line")
    if commands:
        most = max(commands[name]["cpu_ms"] for name in ROUTED)
        found.append(Bar("recollect recall beside a daemon, CPU ms of the command", most, 150.0))
    return found


def _of_size(size: int, one: Mapping[str, Any]) -> list[Bar]:
    recall, plain = one["recall"]["all"], one["plain"]["hybrid"]
    million = size >= 1_000_000
    found = [
        Bar(f"{size}: recall p50 without embedding, ms", recall["p50"], 40.0 if million else 8.0),
        Bar(
            f"{size}: recall : plain FTS5 OR and float scan (wall)",
            round(recall["p50"] / plain["p50"], 3),
            1 / 20 if million else 1 / 10,
        ),
        Bar(
            f"{size}: recall : plain FTS5 OR and float scan (CPU)",
            round(recall["cpu_p50"] / plain["cpu_p50"], 3),
            1 / 20 if million else 1 / 10,
        ),
        Bar(f"{size}: top-50 agreement of words", one["rightness"]["top50_agreement"], 0.98, True),
        Bar(f"{size}: import : bare rows and FTS5 (wall)", one["import"]["ratio_wall"], 1 / 3, True),
        Bar(f"{size}: import : bare rows and FTS5 (CPU)", one["import"]["ratio_cpu"], 1 / 3, True),
        Bar(f"{size}: bytes a memory", one["bytes_per_memory"], 3072.0),
    ]
    found += [
        Bar(f"{size}: vector recall@100, scope {scope}", share, 0.99, True)
        for scope, share in one["rightness"]["vector_recall_at_100"].items()
    ]
    if "steps" in one:
        found.append(Bar(f"{size}: PageRank over links, CPU ms", one["steps"]["cpu_p50"], 10.0))
        found.append(Bar(f"{size}: second step by names, ms", one["recall"]["legs_ms"]["bridge"], 10.0))
    if million:  # promised for a million memories: a smaller store proves nothing
        found += [
            Bar(f"{size}: open to first answer with index file, s", one["open_warm"]["to_first_answer_s"], 0.5),
            Bar(f"{size}: open to first answer without, s", one["open_cold"]["to_first_answer_s"], 3.0),
            Bar(f"{size}: memory of a process, MB", one["open_warm"]["resident_mb"], 700.0),
        ]
    whole = one.get("whole_recall")
    if whole and not million:  # promised for a hundred thousand
        found.append(Bar(f"{size}: whole recall : embedding alone (wall)", whole["ratio_p50"], 3.0))
        found.append(Bar(f"{size}: whole recall : embedding alone (CPU)", whole["ratio_cpu"], 3.0))
    for name, times in one.get("rivals", {}).items():
        if name.startswith(("LanceDB: hybrid", "Chroma: ")) and "p50" in times and not million:
            for clock, kind in (("wall", "p50"), ("CPU", "cpu_p50")):
                gain = round(times[kind] / recall[kind], 2)
                found.append(Bar(f"{size}: {name} : recall ({clock})", gain, 5.0, True))
    return found
