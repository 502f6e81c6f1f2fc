"""Sets of long questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import long_questions
from recollect.evals import datasets
from tests.evals.conftest import write_set

LONG = [{"_id": f"d{number}", "text": " ".join(f"w{number}x{place}" for place in range(200))} for number in range(4)]
ASKED = [{"_id": "q1", "text": "which two are it"}, {"_id": "q2", "text": "and which one"}]
JUDGED = [("q1", "d0", 1), ("q1", "d1", 1), ("q2", "d3", 1)]
SENTENCES = [{"_id": "s", "text": "Here are some six other words. Too few. And here again are some more words."}]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_set(tmp_path / "long", LONG, ASKED, JUDGED)


def test_half_of_a_document_asks_for_the_other(source: Path, tmp_path: Path) -> None:
    made = datasets.load(long_questions.write("halves", source, tmp_path))
    kept = {one.id: one.content.split() for one in made.documents}
    whole = {str(row["_id"]): row["text"].split() for row in LONG}
    assert len(made.queries) == len(LONG)
    for query in made.queries:
        (id,) = query.relevant
        assert sorted([*query.text.split(), *kept[id]]) == sorted(whole[id])


def test_a_document_asks_for_those_that_answer_the_same_question(source: Path, tmp_path: Path) -> None:
    made = datasets.load(long_questions.write("kin", source, tmp_path))
    assert {query.id: set(query.relevant) for query in made.queries} == {"d0": {"d1"}, "d1": {"d0"}}
    assert all(query.itself == query.id for query in made.queries), "and is not searched for itself"


def test_a_question_stands_among_sentences_of_another_set(source: Path, tmp_path: Path) -> None:
    other = write_set(tmp_path / "other", SENTENCES, ASKED, [("q1", "s", 1)])
    made = datasets.load(long_questions.write("padded", source, tmp_path, other))
    assert {query.id: set(query.relevant) for query in made.queries} == {"q1": {"d0", "d1"}, "q2": {"d3"}}
    for query, asked in zip(sorted(made.queries, key=lambda one: one.id), ASKED, strict=True):
        assert asked["text"] in query.text and len(query.text.split()) > long_questions.PADDED_WORDS
        assert "Too few" not in query.text, "only whole sentences"
