"""`python -m benchmarks.trigrams --programs FOLDER`: look-alike words by our own trigrams and by pg_trgm, in turn.

The figures behind decision 9. FOLDER holds the programs (initdb, pg_ctl, …) of any PostgreSQL with pg_trgm; pgvector is
not needed: only the table of words and its finder are made, as `stores/postgres/tables.py` has them. pg_trgm finds
through a GIN and a GiST index, and what it finds is judged by our own Jaccard: what it did not find is lost. A word of
n trigrams has one more in pg_trgm, so that nobody whose likeness is m or more has less than m · n / (n + 2) there: with
that as its threshold ("exact") nothing is lost among words of ASCII letters.
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
from recollect.stores.postgres.connection import EVERYONE, run
from recollect.stores.postgres.tables import ALIKE, FINDERS, MEMORIES, TEXTS

THRESHOLDS = (0.3, 0.25)
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
        version = _prepare(connection, words)
        lines = _measure(connection, asked, looked_at_all(words, asked))
        cyrillic = len(connection.execute("SELECT unnest(show_trgm(%s))", (CYRILLIC,)).fetchall())
    facts = machine.facts()
    head = [
        f"# Look-alike words: our trigrams and pg_trgm ({version})",
        "",
        f"{given.words:,} words, {given.questions} misspelt ones, likeness {MIN_SIMILARITY} or more, the best"
        f" {MAX_SIMILAR}.",
        f"{facts['cpu']}, {facts['cores']} cores, {facts['date']}, commit {facts['commit']}.",
        f"A Cyrillic word of six letters has {cyrillic} trigrams in pg_trgm, in a database of the locale C.",
        "",
        "| way | p50 ms | server CPU ms | answers that are the same | words lost |",
        "|---|---|---|---|---|",
    ]
    page = "\n".join([*head, *lines]) + "\n"
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


def _prepare(connection: Connection, words: Sequence[str]) -> str:
    """Our table of words, and the same words in two tables with the indexes of pg_trgm."""
    run(connection, "SELECT set_config('recollect.index', %s, false)", (EVERYONE,))
    for part in ("CREATE EXTENSION pg_trgm", MEMORIES, TEXTS, FINDERS, ALIKE):
        connection.execute(part.encode())
    connection.execute(
        "INSERT INTO words SELECT 'one', w, 1, string_to_array(t, ' ') FROM unnest(%s::text[], %s::text[]) AS u (w, t)",
        (list(words), [" ".join(sorted(trigrams(word))) for word in words]),
    )
    for kind in ("gin", "gist"):
        connection.execute(f"CREATE TABLE by_{kind} AS SELECT word, trigrams FROM words".encode())
        connection.execute(f"CREATE INDEX ON by_{kind} USING {kind} (word {kind}_trgm_ops)".encode())
    connection.execute("VACUUM ANALYZE")
    found = connection.execute(
        "SELECT 'PostgreSQL ' || current_setting('server_version') || ', pg_trgm ' || extversion"
        " FROM pg_extension WHERE extname = 'pg_trgm'"
    ).fetchone()
    assert found is not None
    return str(found[0])


def _ours(connection: Connection, word: str) -> list[tuple[str, float]]:
    query = "SELECT * FROM similar_words(%s, %s, %s)"
    return connection.execute(query, (sorted(trigrams(word)), MIN_SIMILARITY, MAX_SIMILAR)).fetchall()


def _theirs(connection: Connection, kind: str, word: str, threshold: float | None) -> list[tuple[str, float]]:
    asked = trigrams(word)
    sure = MIN_SIMILARITY * len(asked) / (len(asked) + 2) - 1e-6
    connection.execute(f"SET pg_trgm.similarity_threshold = {threshold or sure}".encode())
    found = connection.execute(f"SELECT word, trigrams FROM by_{kind} WHERE word %% %s".encode(), (word,)).fetchall()
    judged = [(known, len(asked & set(own)) / len(asked | set(own))) for known, own in found]
    return sorted([one for one in judged if one[1] >= MIN_SIMILARITY], key=lambda one: (-one[1], one[0]))[:MAX_SIMILAR]


def _measure(connection: Connection, asked: Sequence[str], right: Sequence[Sequence[str]]) -> list[str]:
    ways: list[tuple[str, str | None, float | None]] = [("our trigrams, GIN", None, None)]
    ways += [(f"pg_trgm, {kind}, threshold {at}", kind, at) for kind in ("gin", "gist") for at in THRESHOLDS]
    ways += [(f"pg_trgm, {kind}, exact", kind, None) for kind in ("gin", "gist")]
    processes = Processes(connection.info.backend_pid)
    lines: list[str] = []
    for name, kind, threshold in ways:
        wall, answers, cpu = list[float](), list[list[str]](), 0.0
        for warm in (False, True):
            cpu = processes.cpu()
            wall, answers = [], []
            for word in asked:
                with Once() as took:
                    found = _ours(connection, word) if kind is None else _theirs(connection, kind, word, threshold)
                wall.append(took.wall)
                answers.append([known for known, _ in found])
            cpu = processes.cpu() - cpu if warm else 0.0
        same = np.mean([one == two for one, two in zip(answers, map(list, right))])
        lost = sum(len(set(two) - set(one)) for one, two in zip(answers, right))
        lines.append(
            f"| {name} | {np.median(wall) * 1e3:.2f} | {cpu * 1e3 / len(asked):.2f} | {same:.3f}"
            f" | {lost} of {sum(map(len, right))} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
