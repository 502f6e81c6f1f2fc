"""`python -m benchmarks.trigrams --programs FOLDER`: look-alike words by our own index and through pg_trgm, in turn.

The figures behind decision 9. FOLDER holds the programs (initdb, pg_ctl, …) of any PostgreSQL with pg_trgm and
btree_gin; pgvector is not needed: only the table of words and its finder are made, as `stores/postgres/alike.py` has
them, once with each set of indexes. Two tenants have the same words; a store of one of them asks, and one of all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from benchmarks import corpus, machine
from benchmarks.postgres import Processes
from benchmarks.timing import Once
from recollect.domain.trigrams import trigrams
from recollect.stages.ladder import MAX_SIMILAR, MIN_SIMILARITY
from recollect.stores.postgres.alike import ALIKE, ALIKE_INDEXES, ALONE, SHARED
from recollect.stores.postgres.connection import EVERYONE, run
from recollect.stores.postgres.tables import FINDERS, MEMORIES, TEXTS

SETS = {"own": ALONE, "shared": SHARED}
"""The indexes of each schema."""
NAMES = {"own": "our own index", "shared": "pg_trgm, and our own for other words"}
BATCH = 500
TURNS = 3
CYRILLIC = "\u043f\u0430\u043c\u044f\u0442\u044c"
Connection = psycopg.Connection[Any]


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trigrams", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder with initdb and pg_ctl")
    parser.add_argument("--words", type=int, default=60_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args(arguments)
    words = [str(word) for word in corpus.vocabulary()[: given.words]]
    asked = misspelt(words, given.questions)
    with _server(given.programs) as address, psycopg.connect(address, autocommit=True) as connection:
        version = _prepare(connection)
        written = _write(connection, words)
        lines = _measure(connection, asked, looked_at_all(words, asked))
        cyrillic = len(connection.execute("SELECT unnest(show_trgm(%s))", (CYRILLIC,)).fetchall())
    facts = machine.facts()
    head = [
        f"# Look-alike words: our trigrams and pg_trgm ({version})",
        "",
        f"{given.words:,} words of each of two tenants, {given.questions} misspelt ones, likeness {MIN_SIMILARITY}"
        f" or more, the best {MAX_SIMILAR}.",
        f"{facts['cpu']}, {facts['cores']} cores, {facts['date']}, commit {facts['commit']}.",
        f"A Cyrillic word of six letters has {cyrillic} trigrams in pg_trgm, in a database of the locale C.",
        "",
        "| found by | asked by | p50 ms | server CPU ms | answers that are right | words lost |",
        "|---|---|---|---|---|---|",
    ]
    page = "\n".join([*head, *lines, "", *written]) + "\n"
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "trigrams.md").write_text(page, "utf-8")
    print(page)
    return 0


def misspelt(words: Sequence[str], count: int) -> list[str]:
    """Words with a letter left out, doubled, changed or two of them swapped; always the same."""
    rng = np.random.default_rng(corpus.SEED)
    made: list[str] = []
    while len(made) < count:
        word = words[int(rng.integers(len(words)))]
        place = int(rng.integers(1, len(word))) if len(word) > 3 else 0
        if place:
            head, letter, tail = word[:place], word[place], word[place + 1 :]
            ways = (head + tail, head + letter + letter + tail, head + "x" + tail, head + tail[:1] + letter + tail[1:])
            made.append(ways[int(rng.integers(len(ways)))])
    return made


def looked_at_all(words: Sequence[str], asked: Sequence[str]) -> list[list[str]]:
    """The right answers: every word judged."""
    pieces = {word: trigrams(word) for word in words}
    answers: list[list[str]] = []
    for word in asked:
        own = trigrams(word)
        alike = [(-len(own & other) / len(own | other), known) for known, other in pieces.items() if own & other]
        answers.append([known for likeness, known in sorted(alike)[:MAX_SIMILAR] if -likeness >= MIN_SIMILARITY])
    return answers


@contextmanager
def _server(programs: Path) -> Iterator[str]:
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="rtg-", ignore_cleanup_errors=True) as folder:
        if user is not None:
            shutil.chown(folder, user)

        def run(name: str, *arguments: str) -> None:
            subprocess.run(
                [str(programs / name), "-D", f"{folder}/data", *arguments],
                user=user, extra_groups=[] if user else None, cwd=folder, check=True, timeout=60,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip

        run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", "postgres")
        with Path(folder, "data", "postgresql.auto.conf").open("a") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\n")
        run("pg_ctl", "start", "-w", "-l", f"{folder}/log")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")


def _prepare(connection: Connection) -> str:
    """The table of words twice, in a schema for each set of indexes."""
    _ask_for(connection, EVERYONE)
    for extension in ("pg_trgm", "btree_gin"):
        connection.execute(f"CREATE EXTENSION {extension}".encode())
    for schema in SETS:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        _use(connection, schema)
        for part in (MEMORIES, TEXTS, FINDERS, ALIKE_INDEXES, ALIKE):
            connection.execute(part.encode())
    _index(connection, "shared")
    connection.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
    found = connection.execute(
        "SELECT 'PostgreSQL ' || current_setting('server_version') || ', pg_trgm ' || extversion"
        " FROM pg_extension WHERE extname = 'pg_trgm'"
    ).fetchone()
    assert found is not None
    return str(found[0])


def _use(connection: Connection, schema: str) -> None:
    connection.execute(f"SET search_path = {schema}, public".encode())


def _ask_for(connection: Connection, tenant: str) -> None:
    run(connection, "SELECT set_config('recollect.index', %s, false)", (tenant,))


def _index(connection: Connection, schema: str) -> None:
    """Make the indexes of a schema anew, as an owner does who follows the extension."""
    _use(connection, schema)
    connection.execute(f"DROP INDEX IF EXISTS {', '.join([*ALONE, *SHARED])}".encode())
    for name, statement in SETS[schema].items():
        run(connection, statement.format(name=name, table="words", extension="public"))


def _write(connection: Connection, words: Sequence[str]) -> list[str]:
    """Write all words, a batch into the one table and then into the other; then make the indexes anew."""
    processes = Processes(connection.info.backend_pid)
    took = dict.fromkeys(SETS, 0.0)
    for tenant in ("one", "two"):
        for at in range(0, len(words), BATCH):
            part = words[at : at + BATCH]
            values = (tenant, part, [" ".join(sorted(trigrams(word))) for word in part])
            for schema in SETS:
                _use(connection, schema)
                before = processes.cpu()
                connection.execute(
                    "INSERT INTO words SELECT %s, w, 1, string_to_array(t, ' ')"
                    " FROM unnest(%s::text[], %s::text[]) AS u (w, t)",
                    values,
                )
                took[schema] += processes.cpu() - before
    lines = ["| indexes | CPU ms for 1,000 words written | kB | s to build |", "|---|---|---|---|"]
    for schema in SETS:
        with Once() as once:
            _index(connection, schema)
        size = "SELECT sum(pg_relation_size(name::regclass)) / 1024 FROM unnest(%s::text[]) name"
        found = connection.execute(size.encode(), (list(SETS[schema]),)).fetchone()
        assert found is not None
        written = took[schema] * 1e6 / (2 * len(words))
        lines.append(f"| {NAMES[schema]} | {written:.1f} | {found[0]:.0f} | {once.wall:.2f} |")
    connection.execute("VACUUM ANALYZE")
    return lines


def _measure(connection: Connection, asked: Sequence[str], right: Sequence[Sequence[str]]) -> list[str]:
    processes = Processes(connection.info.backend_pid)
    lines: list[str] = []
    for tenant, who in (("one", "a store of one tenant"), (EVERYONE, "a store of all")):
        _ask_for(connection, tenant)
        cpu, wall = dict.fromkeys(SETS, 0.0), {schema: list[float]() for schema in SETS}
        answers: dict[str, list[list[str]]] = {}
        for turn in range(TURNS + 1):  # the first one warms
            for schema in SETS:
                _use(connection, schema)
                before, times = processes.cpu(), list[float]()
                answers[schema] = [_ask(connection, word, times) for word in asked]
                if turn:
                    cpu[schema] += processes.cpu() - before
                    wall[schema] += times
        for schema, found in answers.items():
            same = np.mean([one == two for one, two in zip(found, map(list, right))])
            lost = sum(len(set(two) - set(one)) for one, two in zip(found, right))
            lines.append(
                f"| {NAMES[schema]} | {who} | {np.median(wall[schema]) * 1e3:.2f}"
                f" | {cpu[schema] * 1e3 / len(asked) / TURNS:.2f} | {same:.3f} | {lost} of {sum(map(len, right))} |"
            )
    return lines


def _ask(connection: Connection, word: str, times: list[float]) -> list[str]:
    query = "SELECT word FROM alike_words(%s, %s, %s, %s)"
    with Once() as took:
        found = connection.execute(query, (sorted(trigrams(word)), MIN_SIMILARITY, MAX_SIMILAR, word)).fetchall()
    times.append(took.wall)
    return [known for (known,) in found]


if __name__ == "__main__":
    sys.exit(main())
