"""Data sets as they are found: odd judgements, ids, times, scopes and texts that a store would refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.errors import InvalidInput
from recollect.evals import datasets
from recollect.evals.building import drafts
from recollect.evals.judging import Plan
from recollect.evals.moments import moment
from recollect.evals.running import evaluate
from recollect.evals.systems import system
from recollect.writing import WritePolicy, to_memory
from tests.evals.conftest import CORPUS, QUERIES, Opened, write_set

ONE = [{"_id": "q1", "text": "when does the ferry leave"}]


def judged(tiny: Path, text: str) -> dict[str, Any]:
    (tiny / "qrels" / "test.tsv").write_bytes(text.encode())
    return {one.id: dict(one.relevant) for one in datasets.load(tiny).queries if one.relevant}


@pytest.mark.parametrize(
    "text",
    [
        "q1\ta1\t1\nq2\ta6\t1\n",
        "query-id\tcorpus-id\tscore\r\nq1\ta1\t1\r\n\r\nq2\ta6\t1.0\r\n",
        "\ufeffquery_id\tdoc_id\trelevance\nq1\ta1\t1\nq2\ta6\t1\n\t\t\n",
        " q1\ta1 \t1\nq2\ta6\t1\nq2\ta2\t0\nq3\ta3\t-1\n",
        "q1\tQ0\ta1\t1\nq2\t0\ta6\t1\n",
        "topic\titeration\tdocument\trelevance\nq1\t0\ta1\t1\nq2\t0\ta6\t1\t\n",
        "q1\ta1\t1\tsure\nq2\ta6\t1\t\n",
        "query-id\tcorpus-id\tscore\tremark\nq1\ta1\t1\tsure\nq2\ta6\t1\t7 of 9\n",
        "q1\ta1\t0.5\nq2\ta6\t0.01\nq2\ta2\t-0.5\n",
        "q1\ta1\t0\nq1\ta2\t2\nq1\ta1\t1\nq2\ta6\t3\nq2\ta6\t1\nq1\ta2\t0\n",
    ],
)
def test_judgements_are_read_however_they_are_written(tiny: Path, text: str) -> None:
    assert judged(tiny, text) == {"q1": {"a1": 1}, "q2": {"a6": 1}}


@pytest.mark.parametrize("grade", ["inf", "nan", "high", "x" * 200_000, "1e30", "1000001"])
def test_a_grade_that_is_no_number_is_named_with_its_line(tiny: Path, grade: str) -> None:
    with pytest.raises(InvalidInput, match=r"test\.tsv:2"):
        judged(tiny, f"q1\ta1\t1\nq2\ta6\t{grade}\n")


@pytest.mark.parametrize("category", [0, False, "0"])
def test_a_stratum_may_be_called_nought(tmp_path: Path, category: Any) -> None:
    queries = [{**ONE[0], "metadata": {"category": category}}]
    (query,) = datasets.load(write_set(tmp_path / "set", CORPUS, queries, [("q1", "a1", 1)])).queries
    assert query.stratum == str(category)


def test_numbers_are_ids_too(tmp_path: Path) -> None:
    corpus = [{"_id": 1, "text": "one"}, {"_id": 2, "text": "two", "metadata": {"session": 7}}]
    folder = write_set(
        tmp_path / "set", corpus, [{"_id": 1, "text": "x"}], [("1", "2", 1)], [{"query": 1, "sessions": [7]}]
    )
    (query,) = datasets.load(folder).queries
    assert (query.id, query.relevant, query.candidates) == ("1", {"2": 1}, {"2"})


def test_what_is_there_twice_counts_once_and_what_contradicts_itself_is_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "same", [*CORPUS, CORPUS[0]], [*QUERIES, QUERIES[0]])
    loaded = datasets.load(folder)
    assert (len(loaded.documents), len(loaded.queries)) == (len(CORPUS), len(QUERIES))
    assert datasets.remarks(loaded) == ["2 lines say again what another one says"]
    with pytest.raises(InvalidInput, match="twice"):
        datasets.load(write_set(tmp_path / "other", [*CORPUS, {"_id": "a1", "text": "Something else."}]))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2023-05-30T23:40:00Z", datetime(2023, 5, 30, 23, 40, tzinfo=UTC)),
        ("2023/05/30 (Tue) 23:40", datetime(2023, 5, 30, 23, 40, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("May 8, 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("8 May 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("Mon, 08 May 2023 13:56:00 UTC", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("Mon, 08 May 2023 13:56:00 +0200", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        (1683554160, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (1683554160000, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("1683554160", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("20230508", datetime(2023, 5, 8, tzinfo=UTC)),
        (20230508, datetime(2023, 5, 8, tzinfo=UTC)),
        ("20230508T135600Z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("20230508135600", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023-05-08 13:56:00 UTC", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023-05-08T13:56:00z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("20231308", None),
        ("2023", datetime(2023, 1, 1, tzinfo=UTC)),
        ("2023-05", datetime(2023, 5, 1, tzinfo=UTC)),
        ("soon", None),
        ("", None),
        (None, None),
        (True, None),
        (1e300, None),
        ("99/99/9999", None),
    ],
)
def test_times_are_read_as_data_sets_write_them(written: Any, read: datetime | None) -> None:
    assert moment(written) == read


def test_a_time_that_nobody_can_read_is_told_and_stays_in_the_metadata(tmp_path: Path) -> None:
    corpus = [{"_id": "a1", "text": "x", "metadata": {"created_at": "soon"}}]
    queries = [{"_id": "q1", "text": "x", "metadata": {"question_date": "later"}}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1)]))
    assert (loaded.documents[0].created_at, loaded.documents[0].metadata) == (None, {"created_at": "soon"})
    assert datasets.remarks(loaded) == ["2 times could not be read"]


def in_namespaces(*names: str | None) -> list[dict[str, Any]]:
    return [
        {"_id": f"a{place}", "text": f"text {place}", "metadata": {"namespace": name, "session": "s"}}
        for place, name in enumerate(names, start=1)
    ]


def test_where_no_question_names_a_namespace_everything_is_searched(tmp_path: Path) -> None:
    """Sessions of the same name in two namespaces stay two, and haystacks may still name them."""
    haystacks = [{"query": "q1", "sessions": ["s"]}]
    loaded = datasets.load(write_set(tmp_path / "set", in_namespaces("c1", "c2"), ONE, [("q1", "a1", 1)], haystacks))
    assert {one.namespace for one in loaded.documents} == {None} and len({one.session for one in loaded.documents}) == 2
    assert loaded.queries[0].candidates == {"a1", "a2"} and datasets.remarks(loaded) == []
    apart = [{**ONE[0], "metadata": {"namespace": "c1"}}]
    other = datasets.load(write_set(tmp_path / "apart", in_namespaces("c1", "c2"), apart, [("q1", "a1", 1)]))
    assert {one.namespace for one in other.documents} == {"c1", "c2"} and other.corpus_hash != loaded.corpus_hash


@pytest.mark.parametrize("home", [None, "c1"])
def test_a_namespace_that_no_document_has_means_the_only_one_there_is(tmp_path: Path, home: str | None) -> None:
    queries = [{**ONE[0], "metadata": {"namespace": "unknown"}}]
    loaded = datasets.load(write_set(tmp_path / "set", in_namespaces(home, home), queries, [("q1", "a1", 1)]))
    assert loaded.queries[0].namespace == home and datasets.remarks(loaded) == []


def test_what_a_store_would_refuse_is_made_storable(tmp_path: Path) -> None:
    odd = {"session": "a\nb" * 200, "type": "no type!", "deep": [[[[[[[[[[1]]]]]]]]]], "kept": 1, "huge": 10**30}
    corpus = [{"_id": "a1", "text": "half \ud800 and \0 nothing", "metadata": odd}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, ONE, [("q1", "a1", 1)]))
    (draft,) = drafts(loaded)
    memory, _ = to_memory(draft, id="1", now=datasets.UNDATED, policy=WritePolicy())
    assert memory.content == "half ? and   nothing" and memory.type == "episode"
    assert memory.metadata == {"type": "no type!", "kept": 1}


@pytest.mark.parametrize("name", ["balanced", "bm25"])
def test_a_question_does_not_find_itself(tmp_path: Path, opened: Opened, name: str) -> None:
    """Sets of arguments ask with a document of the corpus; the same id with another text is chance."""
    text = "The ferry leaves the harbour at noon."
    corpus = [
        {"_id": "same", "title": "Harbour", "text": text},
        {"_id": "other", "text": "No ferry leaves any harbour at noon."},
        {"_id": "chance", "text": "Bees live in the old barn."},
    ]
    queries = [{"_id": "same", "text": text}, {"_id": "chance", "text": "bees in the barn"}]
    bench = opened(write_set(tmp_path / "set", corpus, queries, [("same", "other", 1), ("chance", "chance", 1)]))
    result = evaluate(bench, system(name, {}, None), Plan())
    assert result.measures["recall@1"].mean == 1.0


def test_a_question_at_the_end_of_time_is_answered(tmp_path: Path, opened: Opened) -> None:
    corpus = [{**CORPUS[0], "metadata": {"created_at": "9999-12-31T23:00:00Z"}}, *CORPUS[1:]]
    bench = opened(write_set(tmp_path / "set", corpus, ONE, [("q1", "a1", 1)]))
    assert evaluate(bench, system("balanced", {}, None), Plan()).measures["recall@5"].mean == 1.0


def dated(id: str, session: str | None, at: str | None = None) -> dict[str, Any]:
    told = {"session": session, "created_at": at}
    return {"_id": id, "text": f"text {id}", "metadata": {name: value for name, value in told.items() if value}}


def test_a_turn_without_a_time_was_said_when_the_one_before_it_was(tmp_path: Path) -> None:
    """Often only the first turn of a session tells when it was."""
    corpus = [
        dated("a1", "a"), dated("a2", "a", "2024-03-02"), dated("a3", "a"),
        dated("b1", "b", "2024-03-01"), dated("b2", "b"), dated("c1", "c"), dated("alone", None),
    ]  # fmt: skip
    loaded = datasets.load(write_set(tmp_path / "set", corpus, ONE, [("q1", "a1", 1)]))
    assert {one.id: one.created_at and one.created_at.day for one in loaded.documents} == {
        "a1": 2, "a2": 2, "a3": 2, "b1": 1, "b2": 1, "c1": None, "alone": None,
    }  # fmt: skip
    assert [one.id for one in loaded.documents] == ["c1", "alone", "b1", "b2", "a1", "a2", "a3"]


@pytest.mark.parametrize("other", ["2020-01-01", "2024-03-01"])
def test_what_has_no_time_is_as_old_as_the_oldest(tmp_path: Path, opened: Opened, other: str) -> None:
    queries = [{**ONE[0], "metadata": {"question_date": other}}]
    corpus = [CORPUS[0], dated("b", None, other), dated("c", None, "2025-01-01")]
    bench = opened(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1)]))
    assert evaluate(bench, system("balanced", {}, None), Plan()).measures["recall@5"].mean == 1.0


def test_a_question_with_a_date_finds_what_has_none(tmp_path: Path, opened: Opened) -> None:
    """Documents without any time would else lie in its future, and `balanced` would answer nothing."""
    queries = [{**ONE[0], "metadata": {"question_date": "2021-05-30T10:00:00+09:00"}}]
    bench = opened(write_set(tmp_path / "set", CORPUS, queries, [("q1", "a1", 1)]))
    assert evaluate(bench, system("balanced", {}, None), Plan()).measures["recall@5"].mean == 1.0
    (case,) = bench.cases
    assert case.now == datasets.UNDATED and case.now.utcoffset() == timedelta(hours=9)


def test_evidence_from_after_the_question_is_told(tmp_path: Path) -> None:
    corpus = [dated("a1", None, "2024-03-05"), dated("a2", None, "2024-03-01")]
    queries = [{**ONE[0], "metadata": {"question_date": at}} for at in ("2024-03-02",)]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1), ("q1", "a2", 1)]))
    assert datasets.remarks(loaded) == [
        "1 questions have evidence dated more than a day after they were asked, which balanced leaves out"
    ]


@pytest.mark.parametrize("session", ["session", "session_id", "session_num"])
@pytest.mark.parametrize("time", ["created_at", "timestamp", "date", "date_time", "session_date"])
@pytest.mark.parametrize("beside", [False, True])
def test_sessions_and_times_go_by_other_names_too(tmp_path: Path, session: str, time: str, beside: bool) -> None:
    """A turn without its session has no neighbours: a tenth and more of a conversation's figures."""
    told = {session: 3, time: "1:56 pm on 8 May, 2023", "speaker": "Ann", "namespace": "c1"}
    corpus = [{"_id": "a1", "text": "x", **(told if beside else {"metadata": told})}]
    queries = [{**ONE[0], **({"namespace": "c1", "category": "x"} if beside else {})}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1)]))
    (one,) = loaded.documents
    assert (one.session, one.created_at, one.namespace) == ("3", datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "c1")
    assert one.metadata == {"speaker": "Ann"} and datasets.remarks(loaded) == []
    assert loaded.queries[0].stratum == ("x" if beside else None)


def test_what_is_no_time_stays_under_its_name(tmp_path: Path) -> None:
    told = {"date": "in spring", "timestamp": "2024-05-01", "session_id": ""}
    corpus = [{"_id": "a1", "text": "x", "metadata": told}, {"_id": "a2", "text": "y", "metadata": {"date": "soon"}}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, ONE, [("q1", "a1", 1)]))
    first = next(one for one in loaded.documents if one.id == "a1")
    assert first.created_at == datetime(2024, 5, 1, tzinfo=UTC) and first.session is None
    assert first.metadata["date"] == "in spring"
    assert datasets.remarks(loaded) == ["1 times could not be read"]


@pytest.mark.parametrize(
    ("id", "metadata", "kind"),
    [
        ("q1_abs", {}, "unanswerable"),
        ("q1_abs", {"abstention": False}, "counted"),
        ("q1", {"abstention": "True"}, "unanswerable"),
        ("q1", {"abstention": 1}, "unanswerable"),
        ("q1", {"abstention": "no"}, "counted"),
        ("q1", {"is_abstention": True}, "unanswerable"),
        ("q1", {"answerable": "false"}, "unanswerable"),
        ("q1", {"answerable": 0}, "unanswerable"),
        ("q1", {"is_answerable": False}, "unanswerable"),
        ("q1", {"is_impossible": True}, "unanswerable"),
        ("q1", {"unanswerable": True}, "unanswerable"),
        ("q1", {"answerable": True, "is_impossible": False}, "counted"),
        ("q1", {"category": "Abstention"}, "unanswerable"),
        ("q1", {"question_type": "unanswerable"}, "unanswerable"),
        ("q1", {"category": "Adversarial"}, "aside"),
        ("q1", {"category": 5, "adversarial_answer": "a cat"}, "aside"),
        ("q1", {"category": 5}, "counted"),
    ],
)
def test_questions_without_an_answer_are_known_however_they_are_marked(
    tmp_path: Path, id: str, metadata: dict[str, Any], kind: str
) -> None:
    queries = [{"_id": id, "text": "x", "metadata": metadata}, {"_id": "other", "text": "y"}]
    loaded = datasets.load(write_set(tmp_path / "set", CORPUS, queries, [(id, "a1", 1), ("other", "a2", 1)]))
    assert loaded.queries[0].kind == kind


def test_texts_go_by_other_names_and_a_question_without_words_is_told(tmp_path: Path) -> None:
    corpus = [{"_id": "a1", "contents": "The ferry leaves."}, {"_id": "a2", "content": "Bees."}]
    queries = [{"_id": "q1", "query": "ferry"}, {"_id": "q2", "question": "bees"}, {"_id": "q3", "prompt": "bees"}]
    qrels = [("q1", "a1", 1), ("q2", "a2", 1), ("q3", "a2", 1)]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, qrels))
    assert [one.content for one in loaded.documents] == ["The ferry leaves.", "Bees."]
    assert [one.text for one in loaded.queries] == ["ferry", "bees", ""]
    assert datasets.remarks(loaded) == ["1 questions have no words"]


@pytest.mark.parametrize(
    "haystack",
    [
        {"query_id": "q1", "session_ids": ["s"]},
        {"query-id": "q1", "corpus-ids": ["a1", "a2"]},
        {"_id": "q1", "haystack": ["s"]},
        {"question_id": "q1", "haystack_dates": ["2024"], "haystack_session_ids": ["s"]},
        {"query": "q1", "documents": [{"_id": "a1"}, {"id": "a2"}]},
        {"query": "q1", "sessions": ["s"], "answers": ["a3"]},
    ],
)
def test_haystacks_are_read_however_they_are_written(tmp_path: Path, haystack: dict[str, Any]) -> None:
    corpus = [dated("a1", "s"), dated("a2", "s"), dated("a3", "t")]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, ONE, [("q1", "a1", 1)], [haystack]))
    assert loaded.queries[0].candidates == {"a1", "a2"} and datasets.remarks(loaded) == []


def test_a_question_may_name_its_haystack_itself(tmp_path: Path) -> None:
    corpus = [dated("a1", "s"), dated("a2", "s"), dated("a3", "t")]
    queries = [{**ONE[0], "metadata": {"haystack_session_ids": ["s", "gone"]}}, {"_id": "q2", "text": "x"}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1), ("q2", "a3", 1)]))
    assert [one.candidates for one in loaded.queries] == [{"a1", "a2"}, None]
    assert datasets.remarks(loaded) == [
        "1 names in haystacks are those of no document and no session",
        "1 questions have no haystack and are asked of everything",
    ]


@pytest.mark.parametrize("name", ["haystacks.jsonl.gz", "haystack.jsonl", "haystacks.json"])
def test_a_haystack_file_that_would_be_passed_over_is_named(tiny: Path, name: str) -> None:
    (tiny / name).write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match=name.replace(".", r"\.")):
        datasets.load(tiny)


def test_judgements_divided_by_spaces_are_read(tiny: Path) -> None:
    """As TREC's own files are; where the first line has tabs, an id may hold spaces."""
    expected = {"q1": {"a1": 1}, "q2": {"a6": 1}}
    assert judged(tiny, "q1 0 a1 1\nq2  Q0 a6 1 \n") == expected
    assert judged(tiny, "\nquery-id corpus-id score\nq1 a1 1\nq2 a6 1\n") == expected
    with pytest.raises(InvalidInput, match=r"test\.tsv:2"):
        judged(tiny, "query-id\tcorpus-id\tscore\nq1 a1 1\n")


def test_metadata_that_part_a_set_without_being_its_namespace_are_told(tmp_path: Path) -> None:
    corpus = [{"_id": id, "text": id, "metadata": {"sample_id": id[0], "lang": "en"}} for id in ("a1", "a2", "b1")]
    queries = [
        {"_id": "q1", "text": "x", "metadata": {"sample_id": "a", "lang": "en"}},
        {"_id": "q2", "text": "y", "metadata": {"sample_id": "b", "lang": "en"}},
    ]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "a1", 1), ("q2", "b1", 1)]))
    assert datasets.remarks(loaded) == [
        "every question shares sample_id with its evidence: call it namespace if nothing else may be found"
    ]
    mixed = datasets.load(write_set(tmp_path / "mixed", corpus, queries, [("q1", "b1", 1), ("q2", "b1", 1)]))
    assert datasets.remarks(mixed) == []


def test_evidence_that_stands_in_the_corpus_twice_is_told(tmp_path: Path) -> None:
    """Of copies `balanced` returns one, perhaps not the one that is judged. Where they cannot meet, none is lost."""
    copy = {**CORPUS[0], "_id": "copy", "text": "The ferry leaves  the HARBOUR at noon."}
    remark = "1 questions have evidence that stands in the corpus twice, word by word, of which balanced returns one"
    loaded = datasets.load(write_set(tmp_path / "set", [copy, *CORPUS], ONE, [("q1", "a1", 1)]))
    assert datasets.remarks(loaded) == [remark]
    haystacks = [{"query": "q1", "documents": ["a1", "a2"]}]
    apart = datasets.load(write_set(tmp_path / "apart", [copy, *CORPUS], ONE, [("q1", "a1", 1)], haystacks))
    assert datasets.remarks(apart) == []
