"""How fast recollect answers, stage by stage and in every scope, beside a plain OR query and a scan of floats."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import run
from typing import Any

import apsw
import numpy as np

from benchmarks.meaning import Floats, Meaning
from benchmarks.stores import MODEL, float_scan, plain_search, reciprocal
from benchmarks.timing import Once, each
from recollect.domain.memory import Scope
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.doors.staying import settle_down
from recollect.engine import Engine
from recollect.legs import bm25
from recollect.ports import Embedder, Matrix, Store, Vector
from recollect.settings import Settings

SCOPES: dict[str, Scope | None] = {
    "all": None,
    "10 %": Scope(project="tenth"),
    "0.1 %": Scope(project="thousandth"),
}
TOP = 50
WARM = 5
"""So many questions are asked untimed before every series, of recollect and of the baseline alike."""
RECALLED = 100


class KnownQuestions:
    """An embedder that knows the vectors of the questions; a real one may be asked first, for its time alone."""

    id = MODEL
    max_tokens = 512

    def __init__(self, questions: Sequence[str], vectors: Floats, real: Embedder | None = None) -> None:
        self._known = dict(zip(questions, vectors))
        self._real = real
        self.dimension = vectors.shape[1]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self._known[text] for text in texts])  # of questions: those of memories are given

    def embed_query(self, text: str) -> Vector:
        if self._real is not None:
            self._real.embed_query(text)
        return self._known[text]


def measure_recall(store: Store, settings: Settings, meaning: Meaning, asked: Sequence[str]) -> dict[str, Any]:
    """Recall through the Engine without embedding the question: p50 to p99, by stage and by scope.

    The store has read ahead and the collector has settled down, as in every process of ours that stays.
    """
    results: dict[str, Any] = {}
    with Once() as ahead:
        while store.warm():
            pass
    results["read_ahead"] = {"s": round(ahead.wall, 3), "cpu_s": round(ahead.cpu, 3)}
    settle_down()
    engine = Engine(store, settings, KnownQuestions(asked, meaning.questions), background=False)
    for name, scope in SCOPES.items():
        for question in asked[:WARM]:
            engine.recall(question, scope=scope)
        times, _ = each(lambda question, scope=scope: engine.recall(question, scope=scope), asked)
        results[name] = times.as_dict()
    stages: dict[str, list[float]] = {}
    legs: dict[str, list[float]] = {}
    for answer in (engine.recall(question) for question in asked):
        for stage, ms in answer.trace.stages.items():
            stages.setdefault(stage, []).append(ms)
        for leg, step in answer.trace.legs.items():
            legs.setdefault(leg, []).append(step.ms)
    results["stages_ms"] = {name: round(float(np.median(ms)), 3) for name, ms in stages.items()}
    results["legs_ms"] = {name: round(float(np.median(ms)), 3) for name, ms in legs.items()}
    return results


def measure_whole_recall(
    store: Store, settings: Settings, meaning: Meaning, asked: Sequence[str], real: Embedder
) -> dict[str, Any]:
    """Embedding alone and the whole recall with it, question by question in turn."""
    real.embed_query("warm")
    alone, _ = each(lambda question: real.embed_query(f"{question} ?"), asked)
    engine = Engine(store, settings, KnownQuestions(asked, meaning.questions, real), background=False)
    whole, _ = each(lambda question: engine.recall(question), asked)
    return {
        "embedding_alone": alone.as_dict(),
        "with_embedding": whole.as_dict(),
        "ratio_p50": round(whole.p50 / alone.p50, 2),
        "ratio_cpu": round(whole.cpu_p50 / alone.cpu_p50, 2),
    }


def measure_plain(
    bare: apsw.Connection, meaning: Meaning, asked: Sequence[str], projects: np.ndarray
) -> dict[str, Any]:
    """The baseline: FTS5 with a plain OR query, a numpy scan of all float vectors, reciprocal rank fusion, the rows."""
    results: dict[str, Any] = {}
    numbered = list(enumerate(asked))

    def rows_of(ids: Sequence[int]) -> list[tuple[Any, ...]]:
        marks = ", ".join("?" * len(ids))
        return bare.execute(f"SELECT * FROM memories WHERE row IN ({marks})", tuple(ids)).fetchall()

    def hybrid(pair: tuple[int, str]) -> list[tuple[Any, ...]]:
        words = plain_search(bare, pair[1], TOP)
        return rows_of(reciprocal([words, float_scan(meaning.vectors, meaning.questions[pair[0]], TOP)]))

    for pair in numbered[:WARM]:  # as recollect is asked a few questions before it is timed
        hybrid(pair)
    results["hybrid"] = each(hybrid, numbered)[0].as_dict()
    results["words"] = each(lambda pair: plain_search(bare, pair[1], TOP), numbered)[0].as_dict()
    results["vectors"] = each(
        lambda pair: float_scan(meaning.vectors, meaning.questions[pair[0]], TOP), numbered
    )[0].as_dict()  # fmt: skip
    tenth = projects == 1

    def scoped(pair: tuple[int, str]) -> list[int]:
        where = " CROSS JOIN memories m ON m.row = f.rowid WHERE f.fulltext MATCH ? AND m.project = 'tenth'"
        words = plain_search(bare, pair[1], TOP, where)
        return reciprocal([words, float_scan(meaning.vectors, meaning.questions[pair[0]], TOP, tenth)])

    results["hybrid 10 %"] = each(scoped, numbered)[0].as_dict()
    return results


def measure_legs(store: Store, meaning: Meaning, asked: Sequence[str]) -> dict[str, Any]:
    """The two finders alone, 50 hits each."""
    assert store.text is not None and store.vectors is not None
    text, vectors = store.text, store.vectors
    numbered = list(enumerate(asked))
    for number, question in numbered[:WARM]:
        text.match(_any(question), Filter(), TOP)
        vectors.search(MODEL, meaning.questions[number], Filter(), TOP)
    return {
        "words": each(lambda pair: text.match(_any(pair[1]), Filter(), TOP), numbered)[0].as_dict(),
        "vectors": each(
            lambda pair: vectors.search(MODEL, meaning.questions[pair[0]], Filter(), TOP), numbered
        )[0].as_dict(),
    }  # fmt: skip


def measure_rightness(
    store: Store, bare: apsw.Connection, meaning: Meaning, asked: Sequence[str], projects: np.ndarray
) -> dict[str, Any]:
    """Top-50 agreement with the plain query, and recall@100 of the vector index against exact, by scope."""
    assert store.text is not None and store.vectors is not None
    agreement: list[float] = []
    for question in asked:
        plain = {f"m{row - 1:09d}" for row in plain_search(bare, question, TOP)}
        matches = store.text.match(_any(question), Filter(), TOP)
        best = sorted(zip(-bm25.scores(matches, (1.0, 1.0)), matches.ids))[:TOP]
        agreement.append(len(plain & {id for _, id in best}) / max(1, len(plain)))
    recalled: dict[str, float] = {}
    for name, scope, mark in (("all", None, None), ("10 %", "tenth", 1), ("0.1 %", "thousandth", 2)):
        shares: list[float] = []
        for vector in meaning.questions[: len(asked)]:
            wanted = min(RECALLED, len(projects) if mark is None else int((projects == mark).sum()))
            if not wanted:
                continue
            exact = float_scan(meaning.vectors, vector, wanted, None if mark is None else projects == mark)
            found = store.vectors.search(MODEL, vector, Filter(project=scope), wanted)
            shares.append(len({f"m{row - 1:09d}" for row in exact} & {hit.id for hit in found}) / wanted)
        recalled[name] = round(float(np.mean(shares)), 4) if shares else 1.0
    return {"top50_agreement": round(float(np.mean(agreement)), 4), "vector_recall_at_100": recalled}


def measure_open(path: Path) -> dict[str, Any]:
    """A process of its own: from import to the first answer, and the memory it holds when it has read ahead."""
    began = time.perf_counter()
    code = (
        "import sys,time,numpy as np\n"
        "from pathlib import Path\n"
        "from recollect.stores.sqlite import open_sqlite\n"
        "from recollect.domain.question import Filter\n"
        "from recollect.domain.query import Or,Term\n"
        "from benchmarks.machine import resident_mb\n"
        "before=resident_mb(); c=time.process_time(); t=time.perf_counter()\n"
        f"s=open_sqlite(Path({str(path)!r}),read_only=True)\n"
        "v=np.ones(384,np.float32)/384**.5\n"
        f"s.vectors.search({MODEL!r},v,Filter(),50)\n"
        "s.text.match(Or((Term('world'),Term('people'),Term('never'))),Filter(),50)\n"
        "took=time.perf_counter()-t,time.process_time()-c\n"
        "while s.warm(): pass\n"
        "print(*took,resident_mb(),before)\n"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wall, cpu, resident, before = map(float, done.stdout.split())
    return {
        "to_first_answer_s": round(wall, 3),
        "cpu_s": round(cpu, 3),
        "resident_mb": resident,
        "resident_mb_before": before,
        "process_s": round(time.perf_counter() - began, 3),
    }


def _any(question: str) -> Or:
    return Or(tuple(Term(word) for word in question.split()))
