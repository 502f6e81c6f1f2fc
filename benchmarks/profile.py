"""`python -m benchmarks.profile`: where the time of one recall goes, step by step, in CPU milliseconds.

The steps of many recalls are timed one inside the other, in one thread, so that parallel legs do not blur each other.
With --keep the store stays for the next run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import corpus, meaning, stores
from benchmarks.reading import WARM, KnownQuestions
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import load
from recollect.stores.sqlite import open_sqlite

ROUNDS = 5
"""Every step is given its best round: what others do on the machine only adds."""

# Depth, what it is called, and where it is: the table reads like the pipeline.
STEPS = (
    (0, "parse the question", "recollect.engine", "parse"),
    (0, "legs", "recollect.pipeline", "run_legs"),
    (1, "words", "recollect.legs.running", "lexical"),
    (2, "find candidates in the lists", "recollect.stores.sqlite.fulltext", "find"),
    (2, "count the words they hold", "recollect.stores.sqlite.fulltext", "SqliteText._count"),
    (2, "names of those in scope", "recollect.stores.sqlite.fulltext", "_in_scope"),
    (2, "turns around them", "recollect.legs.lexical", "in_context"),
    (1, "meaning", "recollect.legs.running", "dense"),
    (2, "scan the codes", "recollect.stores.codes", "_near_codes"),
    (2, "exact cosines of the head", "recollect.stores.sqlite.vectors", "_hits"),
    (1, "read ahead what words found", "recollect.legs.running", "_read_ahead"),
    (1, "anchors of the second wave", "recollect.legs.running", "_anchors"),
    (1, "second step", "recollect.legs.running", "bridge"),
    (0, "pool", "recollect.pipeline", "fetch_pool"),
    (1, "records, checked and decoded", "recollect.stores.sqlite.records", "SqliteRecords.fetch"),
    (1, "cosines of what words found", "recollect.stores.sqlite.vectors", "SqliteVectors.similarities"),
    (0, "signals", "recollect.pipeline", "gather_lists"),
    (0, "fusion", "recollect.pipeline", "FUSIONS"),
    (0, "priors", "recollect.pipeline", "adjust"),
    (0, "links", "recollect.pipeline", "_linked"),
    (0, "select", "recollect.pipeline", "select"),
    (0, "confidence", "recollect.pipeline", "judge"),
)


class Inline(Executor):
    """Runs what is submitted at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def main(arguments: list[str] | None = None) -> int:
    """Fill a store (or take the kept one), ask, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="how many memories")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--words", type=int, default=0, help="ask with passages of so many words instead")
    parser.add_argument("--keep", type=Path, help="folder of the store; what is there already is used again")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recollect-profile-") as temporary:
        folder: Path = given.keep or Path(temporary)
        made = meaning.make(given.size, given.questions, None, 1_500)
        texts = corpus.make(given.size, made.topics)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"profile-{given.size}.db"
        filled = file.exists()
        store = open_sqlite(file)
        if not filled:
            stores.write_memories(store, texts)
            stores.write_vectors(store, texts, made.vectors)
        asked = passages(texts, given.questions, given.words) if given.words else texts.questions(given.questions)
        print(profile(store, folder, asked, KnownQuestions(asked, made.questions)))
        store.close()
    return 0


def passages(texts: corpus.Corpus, count: int, words: int) -> list[str]:
    """Long questions: the words of some memories, one memory after the other."""
    written = iter(" ".join(next(texts.texts())).split())
    return [" ".join(islice(written, words)) for _ in range(count)]


def profile(store: Store, home: Path, asked: Sequence[str], embedder: KnownQuestions) -> str:
    """The table of a warm store."""
    spent: dict[str, int] = {}
    best: dict[str, float] = {}
    with ExitStack() as patches, patch("recollect.engine.Pool", lambda *_: Inline()):  # pyright: ignore
        engine = Engine(store, load(home=home, store=":memory:"), embedder, background=False)
        for question in asked:
            engine.recall(question)
        while store.warm():
            pass
        for _, name, module, place in STEPS:
            owner: Any = import_module(module)
            *classes, attribute = place.split(".")
            for one in classes:
                owner = getattr(owner, one)
            step = getattr(owner, attribute)
            timed = (
                {kind: _timed(one, name, spent) for kind, one in step.items()}
                if isinstance(step, dict)
                else _timed(step, name, spent)
            )
            patches.enter_context(patch.object(owner, attribute, timed))
        recall = _timed(engine.recall, "one recall", spent)
        for _ in range(ROUNDS):
            spent.clear()
            for question in asked[WARM:]:
                recall(question)
            for name, nanoseconds in spent.items():
                best[name] = min(best.get(name, float("inf")), nanoseconds / 1e6 / len(asked[WARM:]))
    lines = ["| step | CPU ms |", "|---|---|", f"| **one recall** | **{best['one recall']:.2f}** |"]
    lines += [f"| {'&emsp;' * depth}{name} | {best.get(name, 0.0):.2f} |" for depth, name, _, _ in STEPS]
    return "\n".join(lines)


def _timed(call: Callable[..., Any], name: str, spent: dict[str, int]) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        began = time.thread_time_ns()
        try:
            return call(*args, **named)
        finally:
            spent[name] = spent.get(name, 0) + time.thread_time_ns() - began

    return run


if __name__ == "__main__":
    sys.exit(main())
