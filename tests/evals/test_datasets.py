"""Reading BEIR layout: what becomes of titles, scopes, times, haystacks, categories; and what is wrong with a file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.domain.errors import InvalidInput, NotFound
from recollect.evals import datasets
from recollect.evals.bench import cases_of, namespace_of
from recollect.evals.building import drafts, memory_id
from recollect.evals.unanswerable import swapped
from tests.evals.conftest import CORPUS, QUERIES, write_set


def turn(id: str, session: str, at: str | None, namespace: str = "c1", speaker: str = "Ann", text: str = "") -> dict:
    metadata = {"namespace": namespace, "session": session, "speaker": speaker}
    return {"_id": id, "text": text or f"turn {id}", "metadata": metadata | ({"created_at": at} if at else {})}


def asked(id: str, text: str, **metadata: object) -> dict:
    return {"_id": id, "text": text, "metadata": metadata}


def test_a_title_comes_first_unless_the_text_starts_with_it(tmp_path: Path) -> None:
    corpus = [
        {"_id": "1", "title": "Harbour", "text": "Ferries leave."},
        {"_id": "2", "title": "Harbour", "text": "Harbour: ferries leave."},
        {"_id": "3", "title": "", "text": "No title."},
    ]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, [asked("q", "x")], [("q", "1", 1)]))
    contents = [one.content for one in loaded.documents]
    assert contents == ["Harbour\nFerries leave.", "Harbour: ferries leave.", "No title."]
    assert [one.metadata.get("title") for one in loaded.documents] == ["Harbour", "Harbour", None]


def test_kinds_and_strata(tiny: Path) -> None:
    found = {one.id: (one.kind, one.stratum) for one in datasets.load(tiny).queries}
    assert found == {
        "q1": ("counted", "single"),
        "q2": ("counted", "single"),
        "q3": ("counted", "food"),
        "q4": ("unanswerable", None),
        "q5": ("aside", "adversarial"),
        "q6": ("unjudged", None),
    }


def test_sessions_are_remembered_as_they_were_lived(tmp_path: Path) -> None:
    """By their start, the turns of one as in the file, even where times are equal and sessions are mixed."""
    corpus = [
        turn("late-1", "s2", "2024-03-02"),
        turn("early-1", "s1", "2024-03-01"),
        turn("late-2", "s2", "2024-03-02"),
        turn("other", "s9", "2020-01-01", namespace="c2"),
        turn("early-2", "s1", "2024-03-05"),
    ]
    queries = [asked("q", "x", namespace="c2")]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q", "other", 1)]))
    assert [one.id for one in loaded.documents] == ["early-1", "early-2", "late-1", "late-2", "other"]
    assert memory_id(9) < memory_id(10)


def test_documents_become_memories_with_scope_time_and_the_rest_of_their_metadata(tmp_path: Path) -> None:
    corpus = [turn("t1", "s1", "2024-03-01T10:00:00Z"), {"_id": "plain", "text": "A note."}]
    queries = [asked("q", "x", namespace="c1")]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q", "t1", 1)]))
    first, second = drafts(loaded)
    assert (first.scope.namespace, first.scope.session, first.type) == ("c1", "s1", "episode")
    assert first.created_at == datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert first.metadata == {"speaker": "Ann"}
    assert (second.scope.namespace, second.scope.session, second.type, second.created_at) == (
        "default", None, "fact", None,
    )  # fmt: skip


def test_haystacks_name_documents_or_sessions(tmp_path: Path) -> None:
    corpus = [turn("t1", "s1", None), turn("t2", "s1", None), turn("t3", "s2", None), {"_id": "doc", "text": "x"}]
    queries = [asked("q1", "x", namespace="c1"), asked("q2", "x"), asked("q3", "x")]
    haystacks = [{"query": "q1", "sessions": ["s1", "gone"]}, {"query": "q2", "documents": ["doc", "t3"]}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "t1", 1)], haystacks))
    assert [one.candidates for one in loaded.queries] == [{"t1", "t2"}, {"doc", "t3"}, None]


def test_a_question_is_asked_at_its_date_else_when_its_namespace_ends(tmp_path: Path) -> None:
    corpus = [turn("t1", "s1", "2024-03-01"), turn("t2", "s1", "2024-03-09"), turn("t3", "s2", "2024-05-01", "c2")]
    queries = [
        asked("dated", "x", namespace="c1", question_date="2024-04-01"),
        asked("undated", "x", namespace="c1"),
        asked("everywhere", "x"),
    ]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("dated", "t1", 1)]))
    places = {one.id: memory_id(number) for number, one in enumerate(loaded.documents)}
    dates = {case.id: case.now.date().isoformat() for case in cases_of(loaded, places, loaded.queries)}
    assert dates == {"dated": "2024-04-01", "undated": "2024-03-09", "everywhere": "2024-05-01"}


def test_a_set_without_times_has_one_time_of_its_own(tiny: Path) -> None:
    loaded = datasets.load(tiny)
    places = {one.id: memory_id(number) for number, one in enumerate(loaded.documents)}
    assert {case.now for case in cases_of(loaded, places, loaded.queries)} == {datasets.UNDATED}


def test_strange_namespaces_get_names_of_their_own() -> None:
    assert namespace_of("conv-26") == "conv-26" and namespace_of(None) == "default"
    strange = {namespace_of("Conv 26"), namespace_of("conv 26")}
    assert len(strange) == 2 and all(one.startswith("eval-") for one in strange)


def test_swapped_questions_carry_the_other_names_and_no_judgements(tmp_path: Path) -> None:
    corpus = [
        turn("1", "s1", None, "c1", "Ann"), turn("2", "s1", None, "c1", "Bob"),
        turn("3", "s2", None, "c2", "Cleo"), turn("4", "s2", None, "c2", "Dan"),
    ]  # fmt: skip
    queries = [
        asked("q1", "What did Ann give to Bob? Annual gifts", namespace="c1"),
        asked("q2", "Where is the key?", namespace="c1"),
        asked("q3", "Does Dan sing?", namespace="c2"),
    ]
    loaded = datasets.load(
        write_set(tmp_path / "set", corpus, queries, [("q1", "1", 1), ("q2", "2", 1), ("q3", "4", 1)])
    )
    found = swapped(loaded)
    assert [(one.text, one.namespace, one.kind) for one in found] == [
        ("What did Cleo give to Dan? Annual gifts", "c2", "unanswerable"),
        ("Does Bob sing?", "c1", "unanswerable"),
    ]
    assert all(not one.relevant for one in found)


def test_empty_documents_and_unknown_judgements_are_counted(tmp_path: Path) -> None:
    corpus = [*CORPUS, {"_id": "empty", "text": "  "}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, QUERIES, [("q1", "a1", 1), ("q1", "empty", 1)]))
    assert (loaded.empty, loaded.unknown_judgements) == (1, 1)
    assert loaded.queries[0].relevant == {"a1": 1}


def test_a_sample_is_spread_and_always_the_same(tiny: Path) -> None:
    queries = datasets.load(tiny).queries
    assert [one.id for one in datasets.sampled(queries, 3)] == ["q1", "q3", "q5"]
    assert datasets.sampled(queries, 99) == list(queries)


def test_the_hash_follows_the_data(tiny: Path) -> None:
    before = datasets.load(tiny)
    with (tiny / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "q7", "text": "new"}\n')
    after = datasets.load(tiny)
    assert before.data_hash != after.data_hash and before.corpus_hash == after.corpus_hash


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("corpus.jsonl", '{"_id": "1", "text": "x"}\n{nonsense\n', "corpus.jsonl:2"),
        ("queries.jsonl", "[1]\n", "queries.jsonl:1"),
        ("corpus.jsonl", '{"_id": "1", "text": "x"}\n{"text": "x"}\n', "corpus.jsonl:2"),
        ("queries.jsonl", '\n\n{"_id": " ", "text": "x"}\n', "queries.jsonl:3"),
        ("corpus.jsonl", '{"_id": "1", "text": "x"}\n{"_id": "1", "text": "y"}\n', "twice"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1 a1 1\n", "test.tsv:2"),
        ("haystacks.jsonl", '\n{"query": "q1"}\n', "haystacks.jsonl:2"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tiny: Path, file: str, text: str, place: str) -> None:
    (tiny / file).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=place.replace(".", r"\.")):
        datasets.load(tiny)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "haystacks.jsonl"])
def test_what_is_not_utf_8_is_named(tiny: Path, file: str) -> None:
    (tiny / file).write_bytes('{"_id": "café"}\n'.encode("latin-1"))
    with pytest.raises(InvalidInput, match=f"{file.replace('.', chr(92) + '.')} is not UTF-8"):
        datasets.load(tiny)


def test_what_is_missing_is_named(tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(NotFound, match="no data set"):
        datasets.load(tmp_path / "nowhere")
    (tiny / "corpus.jsonl").rename(tiny / "corpus.jsonl.gz")
    with pytest.raises(NotFound) as packed:
        datasets.load(tiny)
    assert packed.value.hint == "unpack corpus.jsonl.gz"
    (tiny / "qrels" / "test.tsv").unlink()
    with pytest.raises(NotFound, match="qrels"):
        datasets.load(tiny)


def test_the_test_split_alone_judges_where_there_is_one(tiny: Path) -> None:
    (tiny / "qrels" / "train.tsv").write_text("q6\ta1\t1\n", encoding="utf-8")
    loaded = datasets.load(tiny)
    assert {one.id for one in loaded.queries if one.relevant} == {"q1", "q2", "q3", "q5"}
    assert datasets.remarks(loaded) == ["judged by test.tsv alone, not by train.tsv"]
    (tiny / "qrels" / "test.tsv").rename(tiny / "qrels" / "dev.tsv")
    loaded = datasets.load(tiny)
    assert {one.id for one in loaded.queries if one.relevant} == {"q1", "q2", "q3", "q5", "q6"}
    assert datasets.remarks(loaded) == []


def test_a_set_that_judges_nothing_is_refused(tmp_path: Path) -> None:
    queries = ({"_id": "q1", "text": "when does the ferry leave"},)
    for qrels in ((("q1", "elsewhere", 1),), (("another", "a1", 1),)):
        with pytest.raises(InvalidInput, match="no question has a judgement"):
            datasets.load(write_set(tmp_path / qrels[0][1], queries=queries, qrels=qrels))


def test_questions_without_a_namespace_are_asked_in_the_only_one(tmp_path: Path) -> None:
    corpus = [{"_id": id, "text": f"text {id}", "metadata": {"namespace": "here"}} for id in ("a", "b")]
    loaded = datasets.load(write_set(tmp_path / "one", corpus, [{"_id": "q", "text": "a"}], [("q", "a", 1)]))
    assert [one.namespace for one in loaded.queries] == ["here"] and datasets.remarks(loaded) == []
    corpus.append({"_id": "c", "text": "text c", "metadata": {"namespace": "there"}})
    queries = [asked("q", "a"), asked("r", "c", namespace="there")]
    loaded = datasets.load(write_set(tmp_path / "two", corpus, queries, [("q", "a", 1), ("r", "c", 1)]))
    assert [one.namespace for one in loaded.queries] == [None, "there"]
    assert datasets.remarks(loaded)[0].startswith("1 questions have evidence in another namespace")


def test_what_figures_leave_out_is_told(tmp_path: Path) -> None:
    corpus = [{"_id": "a", "text": "text a"}, {"_id": "b", "text": "text b"}, {"_id": "empty", "text": " "}]
    haystacks = [{"query": "q", "documents": ["b"]}]
    qrels = [("q", "a", 1), ("q", "missing", 1)]
    told = datasets.remarks(datasets.load(write_set(tmp_path / "set", corpus, [asked("q", "a")], qrels, haystacks)))
    assert [one.split()[0] for one in told] == ["1", "1", "1"]
    assert "without text" in told[0] and "does not hold" in told[1] and "outside their haystack" in told[2]


def test_haystacks_and_judgements_that_fit_nothing_are_told(tmp_path: Path) -> None:
    """Else questions would be asked of everything, or of less than was meant, and nobody would know."""
    corpus = [{"_id": "a", "text": "text a"}, {"_id": "b", "text": "text b"}, {"_id": "empty", "text": " "}]
    queries = [{"_id": "q", "text": "a"}, {"_id": "r", "text": "b"}]
    haystacks = [{"query": "q", "documents": ["a", "gone", "empty"]}, {"query": "R", "documents": ["b", "gone"]}]
    qrels = [("q", "a", 1), ("r", "b", 1), ("other", "a", 1), ("R", "a", 0)]
    told = datasets.remarks(datasets.load(write_set(tmp_path / "set", corpus, queries, qrels, haystacks)))
    assert told == [
        "1 documents without text were left out",
        "2 questions of qrels/ or haystacks.jsonl are not in queries.jsonl",
        "1 names in haystacks are those of no document and no session",
        "1 questions have no haystack and are asked of everything",
    ]
