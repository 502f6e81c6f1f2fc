"""Other engines on the same texts and vectors, each where it is installed: extras of the benchmark, never of recollect.

`pip install -r benchmarks/requirements.txt` brings them. What is not there, or fails, is named in the results.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import Corpus
from benchmarks.meaning import Meaning
from benchmarks.stores import reciprocal
from benchmarks.timing import Once, each

TOP = 50
SCORED_TEXTS = 100_000
"""rank_bm25 takes seconds for a question among more."""
Question = tuple[int, str]
Ask = Callable[[Question], list[int]]
"""From the number and the words of a question to row numbers, best first."""
Rival = Callable[[Corpus, Meaning, Path], dict[str, Ask]]


def measure_rivals(corpus: Corpus, meaning: Meaning, asked: Sequence[str]) -> dict[str, Any]:
    """Build and ask every rival that is installed."""
    results: dict[str, Any] = {}
    numbered = list(enumerate(asked))
    for name, rival in RIVALS.items():
        try:
            with tempfile.TemporaryDirectory(prefix="recollect-rival-", ignore_cleanup_errors=True) as folder:
                with Once() as built:
                    ways = rival(corpus, meaning, Path(folder))
                for way, ask in ways.items():
                    for question in numbered[:3]:
                        ask(question)
                    times, _ = each(ask, numbered)
                    results[f"{name}: {way}"] = {**times.as_dict(), "build_s": round(built.wall, 2)}
        except ImportError as error:
            results[name] = {"missing": str(error)}
        except Exception as error:  # a rival that fails must not end the benchmark
            results[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}
    return results


def _texts(corpus: Corpus) -> list[str]:
    return [text for piece in corpus.texts() for text in piece]


def _bm25s(corpus: Corpus, _: Meaning, _folder: Path) -> dict[str, Ask]:
    bm25s: Any = importlib.import_module("bm25s")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(_texts(corpus), show_progress=False, stopwords=None), show_progress=False)

    def ask(question: Question) -> list[int]:
        tokens = bm25s.tokenize([question[1]], show_progress=False, stopwords=None)
        found, _ = index.retrieve(tokens, k=TOP, show_progress=False)
        return (found[0] + 1).tolist()

    return {"words": ask}


def _tantivy(corpus: Corpus, _: Meaning, _folder: Path) -> dict[str, Ask]:
    tantivy: Any = importlib.import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("content", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("row", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for row, text in enumerate(_texts(corpus), start=1):
        writer.add_document(tantivy.Document(content=text, row=row))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(question: Question) -> list[int]:
        found = searcher.search(index.parse_query(question[1], ["content"]), TOP).hits
        return [searcher.doc(address)["row"][0] for _, address in found]

    return {"words": ask}


def _faiss(_: Corpus, meaning: Meaning, _folder: Path) -> dict[str, Ask]:
    faiss: Any = importlib.import_module("faiss")
    index = faiss.IndexFlatIP(meaning.vectors.shape[1])
    index.add(meaning.vectors)

    def ask(question: Question) -> list[int]:
        return (index.search(meaning.questions[question[0]][None], TOP)[1][0] + 1).tolist()

    return {"flat vectors": ask}


def _usearch(_: Corpus, meaning: Meaning, _folder: Path) -> dict[str, Ask]:
    usearch: Any = importlib.import_module("usearch.index")
    index = usearch.Index(ndim=meaning.vectors.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(1, len(meaning.vectors) + 1), meaning.vectors)
    return {"graph of vectors": lambda question: index.search(meaning.questions[question[0]], TOP).keys.tolist()}


def _hnswlib(_: Corpus, meaning: Meaning, _folder: Path) -> dict[str, Ask]:
    hnswlib: Any = importlib.import_module("hnswlib")
    index = hnswlib.Index(space="ip", dim=meaning.vectors.shape[1])
    index.init_index(max_elements=len(meaning.vectors), ef_construction=200, M=16)
    index.add_items(meaning.vectors, np.arange(1, len(meaning.vectors) + 1))
    index.set_ef(200)
    return {
        "graph of vectors": lambda question: index.knn_query(meaning.questions[question[0]], TOP)[0][0].tolist(),
    }


def _lancedb(corpus: Corpus, meaning: Meaning, folder: Path) -> dict[str, Ask]:
    for name in ("LANCEDB_LOG", "LANCE_LOG", "RUST_LOG"):  # it warns at every search
        os.environ.setdefault(name, "error")
    lancedb: Any = importlib.import_module("lancedb")
    arrow: Any = importlib.import_module("pyarrow")
    database = lancedb.connect(str(folder))
    width = meaning.vectors.shape[1]
    table = database.create_table(
        "memories",
        arrow.table(
            {
                "row": arrow.array(np.arange(1, corpus.size + 1)),
                "content": arrow.array(_texts(corpus)),
                "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(meaning.vectors.ravel()), width),
            }
        ),
    )
    table.create_fts_index("content", replace=True)

    def ask(question: Question) -> list[int]:
        found = table.search(query_type="hybrid").vector(meaning.questions[question[0]]).text(question[1]).limit(TOP)
        return found.select(["row"]).to_arrow()["row"].to_pylist()

    return {"hybrid": ask}


def _rank_bm25(corpus: Corpus) -> Ask:
    """What is mostly put beside a vector store in Python: it scores every text, in numpy."""
    rank_bm25: Any = importlib.import_module("rank_bm25")
    index = rank_bm25.BM25Okapi([text.lower().split() for text in _texts(corpus)])

    def ask(question: Question) -> list[int]:
        scores = index.get_scores(question[1].lower().split())
        best = np.argpartition(-scores, TOP)[:TOP]
        return [int(row) + 1 for row in best[np.argsort(-scores[best])]]

    return ask


def _chroma(corpus: Corpus, meaning: Meaning, folder: Path) -> dict[str, Ask]:
    """Where it runs by itself it has no hybrid search, so words come from a package beside it. Both that there are
    hold a fixed set of texts: what was just written is found when their index has been built anew."""
    chromadb: Any = importlib.import_module("chromadb")
    words = {"bm25s": _bm25s(corpus, meaning, folder)["words"]}
    if corpus.size <= SCORED_TEXTS:
        words["rank_bm25"] = _rank_bm25(corpus)
    quiet = chromadb.Settings(anonymized_telemetry=False)
    box = chromadb.PersistentClient(str(folder), quiet).create_collection(
        "memories", metadata={"hnsw:space": "ip"}, embedding_function=None
    )
    texts = _texts(corpus)
    for first in range(0, corpus.size, 5000):
        some = slice(first, min(first + 5000, corpus.size))
        ids = [str(row + 1) for row in range(some.start, some.stop)]
        box.add(ids=ids, embeddings=meaning.vectors[some], documents=texts[some])

    def ask(question: Question, by_words: Ask) -> list[int]:
        found = box.query(query_embeddings=[meaning.questions[question[0]]], n_results=TOP)
        return reciprocal([by_words(question), [int(id) for id in found["ids"][0]]])

    return {f"vectors, with {name} for words": partial(ask, by_words=one) for name, one in words.items()}


class Given:
    """In the place of a model: the vector of the question that is being asked."""

    def __init__(self, meaning: Meaning) -> None:
        self._questions = meaning.questions
        self.number = 0

    def embed(self, _text: str, *_: object) -> list[float]:
        return self._questions[self.number].tolist()


def _mem0(corpus: Corpus, meaning: Meaning, folder: Path) -> dict[str, Ask]:
    """A whole product: its own search with the vectors given. Memories go in through its store, without its language
    model.
    """
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder))
    os.environ.setdefault("OPENAI_API_KEY", "not used")
    mem0: Any = importlib.import_module("mem0")
    width = meaning.vectors.shape[1]
    store = {"path": str(folder / "vectors"), "embedding_model_dims": width, "collection_name": "memories"}
    memory: Any = mem0.Memory.from_config(
        {"vector_store": {"provider": "faiss", "config": store}, "history_db_path": str(folder / "history.db")}
    )
    memory.embedding_model = given = Given(meaning)
    payloads = [{"data": text, "user_id": "all", "created_at": "2026-01-01T00:00:00Z"} for text in _texts(corpus)]
    ids = [str(row) for row in range(1, corpus.size + 1)]
    memory.vector_store.insert(meaning.vectors, payloads, ids)

    def ask(question: Question) -> list[int]:
        given.number = question[0]
        found = memory.search(question[1], top_k=TOP, filters={"user_id": "all"})
        return [int(one["id"]) for one in found["results"]]

    return {"its search, by meaning alone (FAISS)": ask}


RIVALS: dict[str, Rival] = {
    "bm25s": _bm25s,
    "tantivy": _tantivy,
    "faiss": _faiss,
    "usearch": _usearch,
    "hnswlib": _hnswlib,
    "LanceDB": _lancedb,
    "Chroma": _chroma,
    "mem0": _mem0,
}
