"""`python -m benchmarks.postgres`: the same memories on SQLite and on PostgreSQL, asked in turn, side by side.

Starts a PostgreSQL of its own from the development package, or uses the one at --address. Memory and CPU of the server
are those of its processes, so they are only known where it runs on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from benchmarks import corpus, machine, meaning, stores
from benchmarks.reading import RECALLED, SCOPES, WARM, KnownQuestions, measure_open
from benchmarks.stores import MODEL, float_scan
from benchmarks.timing import Once, summary
from recollect.adapters import open_embedder
from recollect.domain.memory import Scope
from recollect.domain.question import Filter
from recollect.engine import Engine
from recollect.ports import Embedder, Store
from recollect.settings import load
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.sqlite import open_sqlite
from recollect.upkeep.embedding import BATCH
from tests.postgres_server import running_server

ALLOWED = 3.0
"""A recall on PostgreSQL may take so many times that on SQLite."""
COMPARED = 10
SERVER = {
    "shared_buffers": "2GB",
    "maintenance_work_mem": "4GB",
    "max_parallel_maintenance_workers": "2",
    "dynamic_shared_memory_type": "mmap",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "on",
}
TICK = os.sysconf("SC_CLK_TCK")
SIZES = (
    "SELECT c.relname, pg_relation_size(c.oid) + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind IN ('r', 'i')"
    " ORDER BY 2 DESC, 1 LIMIT 14"
)


def main(arguments: list[str] | None = None) -> int:
    """Fill, ask, write the numbers and a page; returns 0 even where the bar is missed: the page tells."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres", description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="how many memories, as 10000,100000,1000000")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--sample", type=int, default=1_500, help="how many real sentences are embedded")
    parser.add_argument("--no-model", action="store_true", help="synthetic vectors only")
    parser.add_argument("--address", help="a server that runs already, with rights to make schemas")
    parser.add_argument("--keep", type=Path, help="folder of the SQLite stores; what is filled already is used again")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args(arguments)
    sizes = [int(size) for size in given.sizes.split(",")]
    embedder = None if given.no_model else open_embedder(load(store=":memory:"))[0]
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "postgres.json"
    with tempfile.TemporaryDirectory(prefix="recollect-postgres-") as temporary, _server(given.address) as address:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {"sizes": {}}
        if embedder is not None:
            results["embedding_cpu_ms"] = _embedding(embedder)
        for size in sizes:
            made = meaning.make(size, given.questions, embedder, given.sample, folder)
            results["vectors"] = made.kind
            before = results["sizes"].get(str(size), {"filling": {}})["filling"]
            found = {"machine": machine.facts(), **_measure(folder, address, made)}
            found["filling"] = {name: before.get(name, {}) | new for name, new in found["filling"].items()}
            results["sizes"][str(size)] = found
            file.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            (given.out / "postgres.md").write_text(page(results), "utf-8")
    print(page(results))
    return 0


def _embedding(embedder: Embedder) -> float:
    """CPU milliseconds to embed a memory, in the batches in which the background does it."""
    texts = next(corpus.make(4 * BATCH).texts())
    embedder.embed_documents(texts[:BATCH])
    with Once() as took:
        for first in range(0, len(texts), BATCH):
            embedder.embed_documents(texts[first : first + BATCH])
    return round(took.cpu * 1e3 / len(texts), 1)


@contextmanager
def _server(address: str | None) -> Iterator[str]:
    if address is not None:
        yield address
        return
    with running_server(durable=True, settings=SERVER) as server:
        yield server.address()


def _measure(folder: Path, address: str, made: meaning.Meaning) -> dict[str, Any]:
    """One size: fill both, ask both in turn, weigh both."""
    size = len(made.vectors)
    texts = corpus.make(size, made.topics)
    asked = texts.questions(len(made.questions))
    schema = f"bench_{size}"
    local = open_sqlite(folder / f"postgres-{size}.db")
    remote = open_postgres(f"{address}{'&' if '?' in address else '?'}schema={schema}", search_s=60.0)
    with psycopg.connect(address, autocommit=True) as connection:
        server = Processes(connection.info.backend_pid)
        results: dict[str, Any] = {
            "filling": {
                "sqlite": _fill(local, texts, made, _no_cpu),
                "postgres": _fill(remote, texts, made, server.cpu),
            }
        }
        _say(f"{size}: recall")
        results["recall"] = _recall(local, remote, made, asked, server)
        _say(f"{size}: rightness")
        results["vector_recall_at_100"] = {
            "sqlite": _found(local, made), "postgres": _found(remote, made)
        }  # fmt: skip
        local.close()
        held = sum(file.stat().st_size for file in folder.glob(f"postgres-{size}.db*"))
        tables = {name: round(count / size, 1) for name, count in connection.execute(SIZES, (schema,)).fetchall()}
        results["bytes_per_memory"] = {
            "sqlite": round(held / size), "postgres": round(remote.care.stats().bytes / size), "by table": tables
        }  # fmt: skip
        results["resident_mb"] = {
            "sqlite process": measure_open(folder / f"postgres-{size}.db")["resident_mb"],
            "postgres processes": server.resident_mb(),
        }
        remote.close()
    return results


def _fill(store: Store, texts: corpus.Corpus, made: meaning.Meaning, server_cpu: Callable[[], float]) -> dict[str, Any]:
    """Memories, vectors, routine work (which builds the indexes); seconds of wall and CPU per million."""
    size = texts.size
    assert store.vectors is not None
    has_vectors = store.vectors.progress(MODEL).done == size
    kept = {"memories": store.care.stats().memories == size, "vectors": has_vectors, "indexes": has_vectors}
    found: dict[str, Any] = {}

    def tidied() -> Once:
        with Once() as took:
            store.care.tidy()
            store.vectors.search(MODEL, made.questions[0], Filter(), 1)  # type: ignore[union-attr]
            store.care.tidy()
        return took

    steps: dict[str, Callable[[], Once]] = {
        "memories": lambda: stores.write_memories(store, texts),
        "vectors": lambda: stores.write_vectors(store, texts, made.vectors),
        "indexes": tidied,
    }
    for name, step in steps.items():
        if kept[name]:
            continue
        _say(f"{size}: {store.care.stats().kind} {name}")
        before = server_cpu()
        took = step()
        cpu = took.cpu + server_cpu() - before
        found[name] = {"wall_s": round(took.wall, 1), "cpu_s": round(cpu, 1), "cpu_ms_each": round(cpu * 1e3 / size, 3)}
    return found


def _recall(
    local: Store, remote: Store, made: meaning.Meaning, asked: Sequence[str], server: Processes
) -> dict[str, Any]:
    """Each question goes to one store and then to the other, so that both see the same weather."""
    known = KnownQuestions(asked, made.questions)
    settings = load(store=":memory:")
    engines = {
        "sqlite": Engine(local, settings, known, background=False),
        "postgres": Engine(remote, settings, known, background=False),
    }
    while local.warm():  # as in the background of every process that stays
        pass
    results: dict[str, Any] = {}
    for name, scope in SCOPES.items():
        for question in asked[:WARM]:
            for engine in engines.values():
                engine.recall(question, scope=scope)
        results[name] = _in_turn(engines, asked, scope, server)
    return results


def _in_turn(
    engines: dict[str, Engine], asked: Sequence[str], scope: Scope | None, server: Processes
) -> dict[str, Any]:
    wall: dict[str, list[float]] = {name: [] for name in engines}
    cpu: dict[str, list[float]] = {name: [] for name in engines}
    same: list[float] = []
    before = server.cpu()
    for question in asked:
        ids: list[set[str]] = []
        for name, engine in engines.items():
            with Once() as took:
                answer = engine.recall(question, scope=scope, limit=COMPARED)
            wall[name].append(took.wall)
            cpu[name].append(took.cpu)
            ids.append({hit.id for hit in answer})
        same.append(len(ids[0] & ids[1]) / max(1, len(ids[0])))
    found: dict[str, Any] = {name: summary(wall[name], cpu[name]).as_dict() for name in engines}
    server_ms = (server.cpu() - before) * 1e3 / len(asked)
    total = found["postgres"]["cpu_mean"] + server_ms
    return found | {
        "ratio_p50": round(found["postgres"]["p50"] / found["sqlite"]["p50"], 2),
        "server_cpu_mean": round(server_ms, 2),
        "ratio_cpu": round(total / found["sqlite"]["cpu_mean"], 2),
        "same_of_top_10": round(float(np.mean(same)), 3),
    }


def _found(store: Store, made: meaning.Meaning) -> float:
    """How many of the truly nearest the vector index finds."""
    assert store.vectors is not None
    wanted = min(RECALLED, len(made.vectors))
    shares: list[float] = []
    for vector in made.questions[:40]:
        exact = {f"m{row - 1:09d}" for row in float_scan(made.vectors, vector, wanted)}
        shares.append(len(exact & {hit.id for hit in store.vectors.search(MODEL, vector, Filter(), wanted)}) / wanted)
    return round(float(np.mean(shares)), 4)


class Processes:
    """The server's processes, where they run on this machine: its postmaster and the children of that."""

    def __init__(self, backend: int) -> None:
        name = Path(f"/proc/{backend}/comm")
        here = name.exists() and name.read_text().strip() == "postgres"
        self._postmaster = int(_stat(backend)[1]) if here else None

    def cpu(self) -> float:
        """Seconds of CPU so far, of those that have ended too."""
        if self._postmaster is None:
            return 0.0
        seconds = sum(map(int, _stat(self._postmaster)[13:15]))
        return (seconds + sum(sum(map(int, _stat(child)[11:13])) for child in self._children())) / TICK

    def resident_mb(self) -> float:
        """What they hold together; shared pages count once."""
        if self._postmaster is None:
            return 0.0
        kilobytes = 0
        for process in (self._postmaster, *self._children()):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                kilobytes += int(line.split()[1]) if line.startswith("Pss:") else 0
        return round(kilobytes / 1024, 1)

    def _children(self) -> list[int]:
        listed = Path(f"/proc/{self._postmaster}/task/{self._postmaster}/children")
        return [int(child) for child in listed.read_text().split()]


def _stat(process: int) -> list[str]:
    """The fields of /proc/N/stat from the state on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _no_cpu() -> float:
    return 0.0


def page(results: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = ["# SQLite and PostgreSQL side by side", "", f"Vectors: {results['vectors']}. Times in milliseconds."]
    for size, one in sorted(results["sizes"].items(), key=lambda pair: int(pair[0])):
        facts = one["machine"]
        lines += [
            "",
            f"## {int(size):,} memories",
            "",
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['date']}, commit"
            f" {facts['commit']}, load when it began {facts['load_at_start']}.",
            "",
            f"| scope | SQLite p50 | PostgreSQL p50 | ratio (bar {ALLOWED:g}) | SQLite CPU | client + server CPU"
            " | ratio of CPU | same of the best 10 |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for scope, found in one["recall"].items():
            ours, theirs = found["sqlite"], found["postgres"]
            lines.append(
                f"| {scope} | {ours['p50']} | {theirs['p50']} | {found['ratio_p50']} | {ours['cpu_mean']} |"
                f" {theirs['cpu_mean']} + {found['server_cpu_mean']} | {found['ratio_cpu']} |"
                f" {found['same_of_top_10']} |"
            )
        lines += ["", "| | SQLite | PostgreSQL |", "|---|---|---|"]
        lines += [_line(f"{step}, CPU ms each", one["filling"], step) for step in ("memories", "vectors", "indexes")]
        found, held, resident = one["vector_recall_at_100"], one["bytes_per_memory"], one["resident_mb"]
        lines.append(f"| vector recall@100 | {found['sqlite']} | {found['postgres']} |")
        lines.append(f"| bytes a memory on disk | {held['sqlite']} | {held['postgres']} |")
        lines.append(f"| MB resident | {resident['sqlite process']} | {resident['postgres processes']} |")
        tables = ", ".join(f"{name} {count:g}" for name, count in held["by table"].items())
        lines += ["", f"Bytes a memory in PostgreSQL, by table and index: {tables}."]
    return "\n".join(lines) + "\n"


def _line(what: str, filling: dict[str, Any], step: str) -> str:
    cells = [str(filling[name].get(step, {}).get("cpu_ms_each", "not measured")) for name in ("sqlite", "postgres")]
    return f"| {what} | {' | '.join(cells)} |"


def _say(what: str) -> None:
    print(f"· {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
