"""`python -m benchmarks.sizing`: writes docs/sizing.md from the numbers of `benchmarks.postgres`."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "postgres.json"
PAGE = Path(__file__).parent.parent / "docs" / "sizing.md"
MILLION, BILLION = 10**6, 10**9
SERVER_GB = 64
VECTOR_INDEX = "vectors_model_"
HOT = ("texts", "texts_terms", VECTOR_INDEX)
"""What a recall on PostgreSQL touches all over: it should stay in memory. The rest is read for a few hundred rows."""


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(json.loads(RESULTS.read_text("utf-8"))), "utf-8")
    return 0


def page(results: dict[str, Any]) -> str:
    """The whole page; every figure is in the results, or follows from them by the arithmetic that the page names."""
    sizes = sorted(int(size) for size in results["sizes"])
    largest = results["sizes"][str(sizes[-1])]
    embedding = results["embedding_cpu_ms"]
    facts = largest["machine"]
    lines = [
        "# How much it takes",
        "",
        f"Measured with `python -m benchmarks.postgres --sizes {','.join(map(str, sizes))}`"
        f" ([results](../benchmarks/results/postgres.md)) at commit {facts['commit']}, on {facts['cores']} cores and"
        f" {facts['memory_gb']} GB that other work shared, so CPU times and ratios count, not the wall."
        " Memories of about 40 words, one vector of 384 numbers each. `python -m benchmarks.sizing` writes this page.",
        "",
        *_measured(results, sizes),
        *_per_million(results, largest, embedding),
        *_on_paper(results, largest, embedding),
        *_splits(results, sizes, largest),
    ]
    return "\n".join(map(_wrapped, lines)) + "\n"


def _wrapped(line: str) -> str:
    """A line of a table as it is, anything else in the width of the pages."""
    if line.startswith("|"):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _cost(results: dict[str, Any], store: str, step: str) -> float:
    """CPU milliseconds a memory, at the largest size at which this step was measured."""
    measured = {
        int(size): one["filling"][store][step]
        for size, one in results["sizes"].items()
        if step in one["filling"][store]
    }
    return measured[max(measured)]["cpu_ms_each"]


def _measured(results: dict[str, Any], sizes: list[int]) -> list[str]:
    lines = [
        "## As it grows",
        "",
        "| memories | SQLite: bytes each | MB resident | CPU ms a recall | PostgreSQL: bytes each | MB resident"
        " | CPU ms a recall, client + server | p50, PostgreSQL : SQLite |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        one = results["sizes"][str(size)]
        recall, held, resident = one["recall"]["all"], one["bytes_per_memory"], one["resident_mb"]
        lines.append(
            f"| {size:,} | {held['sqlite']:,} | {resident['sqlite process']:,} | {recall['sqlite']['cpu_mean']:.0f}"
            f" | {held['postgres']:,} | {resident['postgres processes']:,} | {recall['postgres']['cpu_mean']:.0f} +"
            f" {recall['server_cpu_mean']:.0f} | {recall['ratio_p50']} |"
        )
    return [*lines, ""]


def _per_million(results: dict[str, Any], one: dict[str, Any], embedding: float) -> list[str]:
    """GB and CPU hours."""
    held = one["bytes_per_memory"]
    lines = [
        "## A million memories",
        "",
        "| | SQLite | PostgreSQL |",
        "|---|---|---|",
        f"| disk, GB | {_gb(held['sqlite'])} | {_gb(held['postgres'])} |",
        f"| memory that recalls want, GB | {one['resident_mb']['sqlite process'] / 1000:.1f} in each process"
        f" | {_gb(_hot(one))} on the server (the indexes of words and vectors, and the tokens) |",
    ]
    for what, step in (("writing", "memories"), ("keeping vectors", "vectors"), ("building indexes", "indexes")):
        cells = [_hours(_cost(results, name, step), MILLION) for name in ("sqlite", "postgres")]
        lines.append(f"| {what}, CPU hours | {' | '.join(cells)} |")
    return [
        *lines,
        f"| embedding on the CPU, CPU hours | {_hours(embedding, MILLION)} | {_hours(embedding, MILLION)} |",
        "",
        f"Embedding is that of the default model on this machine, {embedding:.0f} ms a memory in batches; it is the"
        " same whatever the store. CPU hours of the other steps are those of the largest size at which a step was"
        " measured.",
        "",
    ]


def _on_paper(results: dict[str, Any], one: dict[str, Any], embedding: float) -> list[str]:
    """A thousand times as much, and how many servers that is."""
    hot, disk = _hot(one), one["bytes_per_memory"]["postgres"]
    each = sum(_cost(results, "postgres", step) for step in ("memories", "vectors", "indexes"))
    servers = math.ceil(hot * BILLION / (SERVER_GB * 10**9))
    fitting = f"{SERVER_GB * 1000 / hot:.0f} million memories"
    return [
        "## A billion, on paper",
        "",
        "Bytes and CPU times a memory are taken as they are at the largest measured size; nobody has run this.",
        "",
        f"- Disk: {disk} bytes × 10⁹ = {disk / 1000:.1f} TB, before replicas and backups.",
        f"- Memory for indexes and tokens: {hot:.0f} bytes × 10⁹ = {hot / 1000:.1f} TB: {servers} PostgreSQL servers"
        f" with {SERVER_GB} GB each ({fitting} a server), tenants shared out among them.",
        f"- Writing, vectors and indexes: {_hours(each, BILLION)} CPU hours; on {servers} servers with 8 cores each"
        f" {_hours(each / servers / 8, BILLION)} hours.",
        f"- Embedding on the CPU: {_hours(embedding, BILLION)} CPU hours; this is the part for which one rents GPUs, or"
        " a model behind a URL.",
        f"- A recall costs what a recall in its own shard costs: {fitting} are beyond what was measured here; measure"
        " before you promise.",
        "",
    ]


def _splits(results: dict[str, Any], sizes: list[int], one: dict[str, Any]) -> list[str]:
    hot = _hot(one)
    index = _bytes(one, VECTOR_INDEX)
    million = one["resident_mb"]["sqlite process"]
    growth = ""
    if len(sizes) > 1:
        first, last = (results["sizes"][str(size)]["recall"]["all"]["sqlite"]["cpu_mean"] for size in sizes[-2:])
        growth = f" From {sizes[-2]:,} to {sizes[-1]:,} memories a recall takes {last / first:.1f} times the CPU."
    return [
        "## Where to split",
        "",
        f"- **One file** serves one machine. Every process that recalls holds {million:.0f} MB at {sizes[-1]:,}"
        f" memories; writers take turns.{growth} Move to PostgreSQL when a second machine needs the memories.",
        f"- **One PostgreSQL server** as long as {hot:.0f} bytes for each memory fit into its memory:"
        f" {16 * 1000 / hot:.0f} million with 16 GB, {SERVER_GB * 1000 / hot:.0f} million with {SERVER_GB} GB. Recalls"
        " that want more CPU before that go to standbys (`?replica=`): each adds the recalls of one more server.",
        f"- **Building the vector index** wants {index:.0f} bytes for each memory in `maintenance_work_mem`; with less"
        " it still finishes, much later.",
        "- **Sharding by tenant** beyond that: every key and join carries the namespace ([postgres.md](postgres.md)). A"
        " tenant stays on one server: one that outgrows it must become several namespaces, or give its vectors away.",
        "- **Vectors to Qdrant** ([qdrant.md](qdrant.md)) when the vector index alone fills a server: it is"
        f" {100 * index / hot:.0f} % of what wants to be in memory, and Qdrant shards within a tenant.",
        "- **Embedding** first of all: workers in any number share what waits.",
    ]


def _hot(one: dict[str, Any]) -> float:
    return sum(_bytes(one, name) for name in HOT)


def _bytes(one: dict[str, Any], name: str) -> float:
    """Bytes a memory in a table or index; the index of vectors has the model's number behind its name."""
    tables = one["bytes_per_memory"]["by table"].items()
    return sum(count for table, count in tables if table.rstrip("0123456789") == name)


def _gb(bytes_each: float) -> str:
    return f"{bytes_each * MILLION / 10**9:.1f}"


def _hours(milliseconds_each: float, count: int) -> str:
    hours = milliseconds_each * count / 3.6e6
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2f}"


if __name__ == "__main__":
    sys.exit(main())
