"""`python -m benchmarks.bm25_extension`: what a BM25 extension of PostgreSQL would bring, and what it may do.

The figures behind decision 9. First a store of --size memories: the same questions, their candidates found by our GIN
index and with `bm25=extension`, in turn, before and after --later memories more; counting and scoring are the same.
Then, with pg_textsearch and with pg_search on a small table of the ordinary kind, what happens to others while a
transaction writes, after the server crashed, and on a standby. The server is the one of `tests/pgembed.py`: run it
again when that carries newer versions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg

from benchmarks import corpus, machine, stores
from benchmarks.postgres import SERVER as LARGE_SERVER
from benchmarks.postgres import Processes
from benchmarks.timing import Once
from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.legs import bm25
from recollect.ports import Store, TextMatches
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.opening import open_postgres
from recollect.stores.postgres.ranked import LEAST
from tests import postgres_server
from tests.postgres_server import STREAMING, TestServer, eventually, running_server, running_standby

BEST = (10, 50)
ROUNDS = 2
ROWS = 3_000
LATER = 500
HOLD_S = 4.0
TIMEOUT_S = 1.0
HUNG_S = 8.0
INDEX = "CREATE INDEX {name} ON {table} USING bm25 (words) WITH (text_config = 'pg_catalog.simple')"
BY_INDEX = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off"
INSERT = "INSERT INTO small VALUES (-1, 'other words')"


@dataclass(frozen=True)
class Extension:
    """How a small table is indexed and asked. Both claim the access method `bm25`, so each has its own database."""

    name: str
    database: str
    index: str
    ask: str

    def connect(self, server: TestServer, **options: Any) -> psycopg.Connection[Any]:
        """As the superuser, each statement its own transaction."""
        address = server.address("postgres").replace("/postgres?", f"/{self.database}?")
        return psycopg.connect(address, **{"autocommit": True, **options})


EXTENSIONS = (
    Extension(
        "pg_textsearch",
        "postgres",
        INDEX.format(name="small_words", table="small"),
        "SELECT number FROM small ORDER BY words <@> to_bm25query('{}', 'public.small_words') LIMIT 100000",
    ),
    Extension(
        "pg_search",
        "other",
        "CREATE INDEX small_words ON small USING bm25 (number, words) WITH (key_field = 'number',"
        """ text_fields = '{"words": {"tokenizer": {"type": "whitespace"}}}')""",
        "SELECT number FROM small WHERE words @@@ '{}' ORDER BY paradedb.score(number) DESC LIMIT 100000",
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the numbers and a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bm25_extension", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--later", type=int, default=500)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args(arguments)
    if given.size < LEAST:
        parser.error(f"argument --size: from {LEAST:,} memories on recollect builds and uses such an index")
    os.environ[postgres_server.SERVER] = "pgembed"
    results: dict[str, Any] = {"machine": machine.facts(), "size": given.size}
    with running_server(durable=True, settings=LARGE_SERVER) as server:
        results["versions"] = _versions(server)
        results["finding"] = _finding(server, given.size, given.later, given.questions)
    experiments = {
        "while another writes": _while_another_writes, "after a crash": _after_a_crash, "on a standby": _on_a_standby
    }  # fmt: skip
    for extension in EXTENSIONS:
        results[extension.name] = {}
        for title, experiment in experiments.items():
            with running_server(durable=True, settings=STREAMING) as server:
                results[extension.name][title] = experiment(server, extension)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "bm25_extension.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    (given.out / "bm25_extension.md").write_text(page(results), "utf-8")
    print(page(results))
    return 0


def _versions(server: TestServer) -> str:
    with psycopg.connect(server.address("postgres")) as connection:
        found = connection.execute(
            "SELECT 'PostgreSQL ' || current_setting('server_version') || (SELECT string_agg(', ' || name || ' '"
            " || default_version, '' ORDER BY name DESC) FROM pg_available_extensions WHERE name = ANY (%s))",
            ([extension.name for extension in EXTENSIONS],),
        ).fetchone()
    assert found is not None
    return str(found[0])


def _finding(server: TestServer, size: int, later: int, count: int) -> dict[str, Any]:
    """The whole of `match` with either finder, for questions of 6 to 12 words of which any may occur."""
    texts = corpus.make(size)
    address = server.address("postgres", schema="large")
    both = {
        "gin": open_postgres(address, wait_s=120.0, search_s=60.0),
        "extension": open_postgres(f"{address}&bm25=extension", wait_s=120.0, search_s=60.0),
    }
    stores.write_memories(both["gin"], texts)
    both["gin"].care.tidy()
    with psycopg.connect(address.split("&schema")[0], autocommit=True) as connection:
        processes = Processes(connection.info.backend_pid)
        before = processes.cpu()
        assert both["extension"].care.tidy()["indexed"] == 1
        built = processes.cpu() - before
        sizes = connection.execute(
            "SELECT pg_relation_size('large.texts_terms'), pg_total_relation_size('large.ranked_1')"
        ).fetchone()
        assert sizes is not None
        found = {"fresh": _in_turn(both, texts.questions(count), processes)}
        more = [Memory(f"later{number}", text) for number, text in enumerate(next(texts.texts())[:later])]
        before = processes.cpu()
        both["gin"].records.write([Put(memory) for memory in more])
        entered = processes.cpu() - before
        found[f"{later:,} later"] = _in_turn(both, texts.questions(count), processes)
    for store in both.values():
        store.close()
    return {
        "asked": found,
        "build_cpu_ms_each": round(built * 1e3 / size, 3),
        "later_cpu_ms_each": round(entered * 1e3 / later, 3),
        "bytes_each": {"gin": round(sizes[0] / size), "extension": round(sizes[1] / size)},
    }


def _in_turn(both: dict[str, Store], questions: Sequence[str], processes: Processes) -> dict[str, Any]:
    wall: dict[str, list[float]] = {name: [] for name in both}
    cpu = dict.fromkeys(both, 0.0)
    same: dict[str, list[list[float]]] = {name: [] for name in both}
    for number in range(1 + ROUNDS):
        for question in questions:
            exact = _best(_match(both["gin"], question, large=10**9)) if number == 0 else []
            for name, store in both.items():
                before = processes.cpu()
                with Once() as took:
                    found = _match(store, question, finding.LARGE_INDEX)
                if number == 0:  # also warms
                    ids = _best(found)
                    same[name].append([len(set(ids[:best]) & set(exact[:best])) / best for best in BEST])
                    continue
                wall[name].append(took.wall)
                cpu[name] += took.cpu + processes.cpu() - before
    return {
        name: {
            "p50": round(float(np.median(wall[name])) * 1e3, 2),
            "p95": round(float(np.percentile(wall[name], 95)) * 1e3, 2),
            "cpu_mean": round(cpu[name] * 1e3 / len(wall[name]), 2),
            **{f"same of the best {best}": round(float(np.mean(same[name], axis=0)[at]), 3)
               for at, best in enumerate(BEST)},
        }
        for name in both
    }  # fmt: skip


def _match(store: Store, question: str, large: int) -> TextMatches:
    assert store.text is not None
    with patch.object(finding, "LARGE_INDEX", large):
        return store.text.match(Or(tuple(map(Term, question.split()))), Filter(), BEST[-1])


def _best(matches: TextMatches) -> list[str]:
    scored = bm25.scores(matches, (1.0, 1.0))
    return [matches.ids[at] for at in np.lexsort((np.array(matches.ids), -scored))[: BEST[-1]]]


# --- what it may do ---------------------------------------------------------------------------------------------


@contextmanager
def _small(server: TestServer, extension: Extension) -> Iterator[psycopg.Connection[Any]]:
    """A table of a few thousand short texts, indexed."""
    if extension.database != "postgres":
        server.execute(f"CREATE DATABASE {extension.database}")
    with extension.connect(server) as connection:
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension.name}".encode())
        connection.execute("CREATE TABLE small (number bigint PRIMARY KEY, words text NOT NULL)")
        _write(connection, 0, ROWS)
        connection.execute(extension.index.encode())
        yield connection


def _write(connection: psycopg.Connection[Any], first: int, stop: int) -> None:
    connection.execute(
        "INSERT INTO small SELECT n, (SELECT string_agg('word' || 1 + (n * place * 7919) %% (place * 50), ' ')"
        " FROM generate_series(1, 30) place) FROM generate_series(%s::bigint, %s::bigint) n",
        (first, stop - 1),
    )


def _rightness(connection: psycopg.Connection[Any], extension: Extension) -> str:
    """How many rows the index finds, misses, finds though they do not match, and finds twice, over 20 words."""
    right = missing = foreign = twice = 0
    for number in range(100, 120):
        connection.execute(BY_INDEX.encode())
        found = [row for (row,) in connection.execute(extension.ask.format(f"word{number}").encode()).fetchall()]
        connection.execute("RESET ALL")
        matching = "SELECT number FROM small WHERE words ~ %s"
        expected = {row for (row,) in connection.execute(matching, (rf"\mword{number}\M",)).fetchall()}
        right += len(expected & set(found))
        missing += len(expected - set(found))
        foreign += len(set(found) - expected)
        twice += len(found) - len(set(found))
    return f"{right} found, {missing} missed, {foreign} that do not match, {twice} found twice"


def _attempt(server: TestServer, extension: Extension, statement: str, patience: float = HUNG_S) -> str:
    """What becomes of a statement that has a second; cancelled and terminated where it goes on."""
    said: list[str] = []

    def run() -> None:
        options = f"-c statement_timeout={TIMEOUT_S:g}s -c enable_seqscan=off -c enable_sort=off"
        try:
            with extension.connect(server, options=options) as connection:
                started = time.monotonic()
                try:
                    connection.execute(statement.encode())
                    said.append(f"done after {time.monotonic() - started:.0f} s")
                except psycopg.Error as error:
                    said.append(f"after {time.monotonic() - started:.0f} s: {str(error).splitlines()[0]}")
        except psycopg.Error:
            said.append("the server went away")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(patience)
    if said:
        return said[0]
    with extension.connect(server) as connection:
        waits = connection.execute(
            "SELECT pid, wait_event FROM pg_stat_activity WHERE wait_event_type = 'LWLock'"
            " AND backend_type = 'client backend'"
        ).fetchall()
        for process, _ in waits:
            connection.execute("SELECT pg_cancel_backend(%s), pg_terminate_backend(%s)", (process, process))
    thread.join(HOLD_S)
    if said:
        return said[0]
    return f"hangs ({', '.join(sorted({event for _, event in waits}))}), can neither be cancelled nor terminated"


def _while_another_writes(server: TestServer, extension: Extension) -> dict[str, str]:
    """One transaction has written one row and is open for a while: what a reader and a writer of other rows see."""
    found: dict[str, str] = {}
    with _small(server, extension):
        for name, statement in (("reader", extension.ask.format("word7")), ("writer", INSERT)):
            with extension.connect(server, autocommit=False) as writing:
                _write(writing, 10 * ROWS, 10 * ROWS + 1)
                end = threading.Timer(HOLD_S, writing.rollback)
                end.start()
                found[name] = _attempt(server, extension, statement, 3 * HOLD_S)
                end.join()
    return found


def _after_a_crash(server: TestServer, extension: Extension) -> dict[str, str]:
    """The index was built, some rows were written and deleted, the server was killed and started again."""
    with _small(server, extension) as connection:
        for number in range(ROWS, ROWS + LATER):
            _write(connection, number, number + 1)
        connection.execute("DELETE FROM small WHERE number % 3 = 0")
        found = {"before": _rightness(connection, extension)}
    server.stop("immediate")
    server.start()
    read = extension.ask.format("word7")
    found["first reader"] = _attempt(server, extension, read)
    found["writer"] = _attempt(server, extension, INSERT)
    found["next reader"] = _attempt(server, extension, read)
    if found["next reader"].startswith("done"):
        with extension.connect(server) as connection:
            found["afterwards"] = _rightness(connection, extension)
    return found


def _on_a_standby(server: TestServer, extension: Extension) -> dict[str, str]:
    """Rows written after the standby was copied, and an index built after that."""
    with _small(server, extension) as connection, running_standby(server) as standby:
        last = ROWS + LATER
        _write(connection, ROWS, last)
        _follow(standby, extension, last)
        found = {"the primary": _rightness(connection, extension)}
        try:
            with extension.connect(standby) as there:
                found["rows written later"] = _rightness(there, extension)
        except psycopg.Error as error:
            found["rows written later"] = str(error).splitlines()[0]
        connection.execute("DROP INDEX small_words")
        connection.execute(extension.index.encode())
        _write(connection, last, last + 1)
        _follow(standby, extension, last + 1)
        found["an index built later"] = _attempt(standby, extension, extension.ask.format("word7"))
    return found


def _follow(standby: TestServer, extension: Extension, rows: int) -> None:
    """Wait until the standby has so many rows."""
    with extension.connect(standby) as there:
        eventually(lambda: there.execute("SELECT count(*) FROM small").fetchone() == (rows,))


def page(results: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    facts, ways = results["machine"], results["finding"]
    lines = [
        f"# {results['versions']}: what a BM25 index would bring, and what it may do",
        "",
        f"{facts['cpu']}, {facts['cores']} cores, {facts['date']}, commit {facts['commit']}, load when it began"
        f" {facts['load_at_start']}.",
        "",
        f"## Finding in {results['size']:,} memories of one tenant",
        "",
        "Milliseconds of `match` (finding, counting) for 6 to 12 words of which any may occur, asked in turn.",
        "",
        "| | our GIN index | pg_textsearch | ratio |",
        "|---|---|---|---|",
    ]
    for title, found in ways["asked"].items():
        ours, theirs = found["gin"], found["extension"]
        lines += [
            f"| {title}: {name} | {ours[name]} | {theirs[name]} | {theirs[name] / ours[name]:.2f} |"
            for name in ("p50", "p95", "cpu_mean")
        ]
        lines += [f"| {title}: same of the best {best} as counting every match | {ours[key]} | {theirs[key]} | |"
                  for best in BEST for key in [f"same of the best {best}"]]  # fmt: skip
    held = ways["bytes_each"]
    lines += [
        f"| bytes a memory | {held['gin']} | {held['extension']} | |",
        f"| building, CPU ms a memory | | {ways['build_cpu_ms_each']} | |",
        f"| writing one memory more, CPU ms of the server | | {ways['later_cpu_ms_each']} | |",
    ]
    for extension in EXTENSIONS:
        for title, found in results[extension.name].items():
            lines += ["", f"## {extension.name}, {title}", ""]
            lines += [f"- {name}: {said}" for name, said in found.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
