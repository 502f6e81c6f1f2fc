"""Data sets whose questions are whole paragraphs, made of other sets (decision 18).

`python -m benchmarks.long_questions KIND SET FOLDER [OTHER]` writes SET_KIND into the folder:

- `halves`: one half of a document is the question; the other half, which alone stays in the corpus, is the answer.
- `kin`: a document is the question for those that answer the same question of the set, as in sets of arguments.
- `padded`: a question of the set stands somewhere among sentences of OTHER that have nothing to do with it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from recollect.evals import datasets
from recollect.evals.datasets import Dataset, Document
from recollect.stages.sentences import sentences

SEED = 18
QUESTIONS = 300
HALF_WORDS = 160
"""A document that is cut in two has so many words at least."""
KIN_WORDS = 100
PADDED_WORDS = 150
SENTENCE_WORDS = range(6, 41)

T = TypeVar("T")


class Made(NamedTuple):
    """A set: texts by id, questions by id, and what answers each."""

    documents: Mapping[str, str]
    questions: Mapping[str, str]
    judged: Mapping[str, Iterable[str]]


def halves(dataset: Dataset, _: Dataset | None, chance: random.Random) -> Made:
    """Which half asks is left to chance."""
    documents = {one.id: one.content for one in dataset.documents}
    questions: dict[str, str] = {}
    for one in _drawn([one for one in dataset.documents if _words(one.content) >= HALF_WORDS], chance):
        words = one.content.split()
        parts = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
        asking, asked_for = parts if chance.random() < 0.5 else parts[::-1]
        questions[f"half of {one.id}"], documents[one.id] = asking, asked_for
    return Made(documents, questions, {id: (id.removeprefix("half of "),) for id in questions})


def kin(dataset: Dataset, _: Dataset | None, chance: random.Random) -> Made:
    """The question has the id of its document, so that `recollect eval` does not search it."""
    documents = {one.id: one.content for one in dataset.documents}
    related: dict[str, set[str]] = {}
    for query in dataset.queries:
        known = {id for id in query.relevant if id in documents}
        for id in known:
            related.setdefault(id, set()).update(known - {id})
    long = [id for id in sorted(related) if related[id] and _words(documents[id]) >= KIN_WORDS]
    questions = {id: documents[id] for id in _drawn(long, chance)}
    return Made(documents, questions, {id: sorted(related[id]) for id in questions})


def padded(dataset: Dataset, other: Dataset | None, chance: random.Random) -> Made:
    """Sentences are drawn until there are enough words; where the question stands among them is left to chance."""
    pool = [text for one in (other or dataset).documents for text in _sentences(one)]
    questions: dict[str, str] = {}
    asked = [query for query in dataset.queries if query.relevant and query.kind == "counted"]
    for query in _drawn(asked, chance):
        around: list[str] = []
        while _words(" ".join(around)) < PADDED_WORDS:
            around.append(chance.choice(pool))
        around.insert(chance.randint(0, len(around)), query.text)
        questions[query.id] = " ".join(around)
    judged = {query.id: sorted(query.relevant) for query in asked if query.id in questions}
    return Made({one.id: one.content for one in dataset.documents}, questions, judged)


KINDS: Mapping[str, Callable[[Dataset, Dataset | None, random.Random], Made]] = {
    "halves": halves,
    "kin": kin,
    "padded": padded,
}


def write(kind: str, source: Path, folder: Path, other: Path | None = None) -> Path:
    """The set of this kind, in BEIR layout."""
    made = KINDS[kind](datasets.load(source), datasets.load(other) if other else None, random.Random(SEED))
    target = folder / f"{source.name}_{kind}"
    (target / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", made.documents), ("queries", made.questions)):
        rows = [{"_id": id, "text": text} for id, text in texts.items()]
        (target / f"{name}.jsonl").write_text("".join(map(_line, rows)), encoding="utf-8")
    pairs = [f"{question}\t{id}\t1\n" for question, ids in made.judged.items() for id in ids]
    (target / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(pairs), encoding="utf-8")
    return target


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _drawn(some: Sequence[T], chance: random.Random) -> list[T]:
    return chance.sample(some, min(QUESTIONS, len(some)))


def _words(text: str) -> int:
    return len(text.split())


def _sentences(document: Document) -> list[str]:
    parts = (document.content[start:end].strip() for start, end in sentences(document.content))
    return [part for part in parts if _words(part) in SENTENCE_WORDS]


if __name__ == "__main__":
    print(write(sys.argv[1], *map(Path, sys.argv[2:])))
