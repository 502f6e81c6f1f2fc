"""recollect eval from the command line: run, sweep, compare, report, strata; and what private data leave behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recollect.evals import results
from tests.evals.conftest import CORPUS, QUERIES, Opened, write_set

Cli = Callable[..., str]
ABSTAINED = {"abstention": True}


def document(text: str) -> Any:
    return json.loads(text)


def test_run_writes_what_it_prints(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = document(
        cli(
            "eval",
            "run",
            "--data",
            tiny,
            "-P",
            "lexical",
            "-P",
            "bm25",
            "--ablate",
            "--typos",
            1,
            "--out",
            out,
            "--json",
        )
    )
    assert json.loads((out / "run.json").read_text(encoding="utf-8")) == found
    assert [one["system"] for one in found["results"]] == ["lexical", "bm25"] and set(found["macro"]) == {
        "lexical",
        "bm25",
    }
    one = found["results"][0]
    assert set(one["measures"]["recall@5"]) == {"mean", "low", "high"}
    assert set(one["questions"]["values"]) == {"q1", "q2", "q3"}
    assert one["data"]["hash"] and one["data"]["embedder"] == "fake-64" and one["typos"]["edits"] == 1
    assert found["machine"]["cores"] and found["options"]["seed"] and found["recollect"]
    assert str(tmp_path) not in json.dumps(found)


def test_run_for_people_is_tables(cli: Cli, tiny: Path) -> None:
    text = cli("eval", "run", tiny, "--profile", "two-stage@fusion.k=10", "--k", "2,4")
    assert "Quality (mean and 95 % interval)" in text and "two-stage@fusion.k=10" in text
    assert "recall@2\trecall@4" in text and "Unanswerable questions" in text


def test_a_folder_of_sets_is_all_of_them(cli: Cli, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_set(tmp_path / "sets" / name)
    found = document(cli("eval", "run", "--data", tmp_path / "sets", "-P", "lexical", "--limit-queries", 2, "--json"))
    assert [one["data"]["name"] for one in found["results"]] == ["one", "two"]
    assert {one["data"]["questions"] for one in found["results"]} == {2}


@pytest.mark.covers("prior.eval")
def test_sets_of_one_name_are_told_apart_and_the_same_set_counts_once(cli: Cli, tmp_path: Path) -> None:
    corpus = [{"_id": "a1", "text": "The ferry leaves."}, {"_id": "a2", "text": "The ferry is blue."}]
    hard = write_set(tmp_path / "hard" / "dev", corpus, [{"_id": "q", "text": "zebra"}], [("q", "a2", 1)])
    easy = write_set(tmp_path / "easy" / "dev", corpus, [{"_id": "q", "text": "blue"}], [("q", "a2", 1)])
    given = ("--data", hard, "--data", easy, "--data", tmp_path / "easy", "--data", hard, "--json")
    profiles = ("-P", "lexical", "-P", "lexical")
    found = document(cli("eval", "run", *given, *profiles))
    means = {one["data"]["name"]: one["measures"]["recall@5"]["mean"] for one in found["results"]}
    assert len(found["results"]) == 2 and means == {"hard/dev": 0.0, "easy/dev": 1.0}
    found = document(cli("eval", "sweep", *given, "-P", "lexical", "--set", "legs.lexical.limit=1,9"))
    for one in (found["unchanged"], *found["combinations"]):
        assert set(one["sets"]) == {"hard/dev", "easy/dev"} and one["macro"]["recall@5"] == 0.5


def test_profiles_of_one_name_are_told_apart(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    own = tmp_path / "two-stage.toml"
    own.write_text('extends = "two-stage"\ndescription = "mine"\n[legs.lexical]\nweight = 0\n', encoding="utf-8")
    found = document(cli("eval", "run", tiny, "-P", "two-stage", "-P", own, "-P", own, "--json"))
    assert list(found["macro"]) == ["two-stage", "two-stage (2)"]
    assert document(cli("eval", "compare", "two-stage", own, tiny, "--json"))["second"] == "two-stage (2)"


def test_sweep_sorts_by_the_macro_average(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    arguments = ("--data", tiny, "-P", "live-weights", "--set", "fusion.k=1,60", "--set", "legs.lexical.weight=0,1,5")
    found = document(cli("eval", "sweep", *arguments, "--by", "mrr@10", "--out", tmp_path / "out", "--json"))
    averages = [one["macro"]["mrr@10"] for one in found["combinations"]]
    assert len(averages) == 6 and averages == sorted(averages, reverse=True)
    assert found["options"]["set"] == {"fusion.k": [1, 60], "legs.lexical.weight": [0, 1, 5]}
    text = cli("eval", "sweep", *arguments)
    assert "(unchanged)" in text and "fusion.k=60, legs.lexical.weight=5" in text


def test_sweep_takes_tables_and_switches(cli: Cli, tiny: Path) -> None:
    """One fusion against another is a sweep of whole tables, because their options differ."""
    tables = 'fusion={kind="rrf",k=60},{kind="convex",alpha=0.3}'
    found = document(
        cli(
            "eval",
            "sweep",
            tiny,
            "-P",
            "live-weights",
            "--set",
            tables,
            "--set",
            "query.stopwords=true,false",
            "--json",
        )
    )
    points = [(one["options"]["fusion"]["kind"], one["options"]["query.stopwords"]) for one in found["combinations"]]
    assert sorted(points) == [("convex", False), ("convex", True), ("rrf", False), ("rrf", True)]


def test_compare_is_paired(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    found = document(cli("eval", "compare", "bm25", "dense", "--data", tiny, "--out", tmp_path / "out", "--json"))
    (one,) = found["sets"]
    gap = one["difference"]["ndcg@10"]
    assert gap["mean"] == pytest.approx(one["second"]["ndcg@10"]["mean"] - one["first"]["ndcg@10"]["mean"], abs=1e-4)
    assert gap["wins"] + gap["ties"] + gap["losses"] == 3 and gap["low"] <= gap["mean"] <= gap["high"]
    assert "wins / ties / losses" in cli("eval", "compare", "bm25", "dense", "--data", tiny)


class Outside(HTMLParser):
    """Everything in a page that could lead out of it, and every tag that is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe", "object", "embed", "base", "image", "use"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_needs_nothing_but_itself(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    out, page, text = tmp_path / "out", tmp_path / "report.html", tmp_path / "report.md"
    cli("eval", "run", tiny, "-P", "lexical", "-P", "importance-prior", "--ablate", "--typos", 1, "--out", out)
    cli("eval", "sweep", tiny, "-P", "live-weights", "--set", "fusion.k=1,60", "--out", out)
    cli("eval", "compare", "bm25", "lexical", "--data", tiny, "--out", out)
    cli("eval", "report", out, "--html", page, "--markdown", text)
    html = page.read_text(encoding="utf-8")
    outside = Outside()
    outside.feed(html)
    assert outside.found == [] and outside.open == []
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)
    assert "prefers-color-scheme: dark" in html and html.count("<svg") >= 4
    for title in (
        "Quality",
        "By stratum",
        "Cost",
        "Leave one list out",
        "Unanswerable",
        "With typos",
        "Sweep",
        "against",
    ):
        assert title in html and title in text.read_text(encoding="utf-8")
    assert cli("eval", "report", out).startswith("### Quality")
    assert document(cli("eval", "report", out, "--json"))["written"] == []


def test_a_sweep_without_a_curve_has_no_plot(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    """One value is a point that nobody sees; and where no question counts, nothing is 0."""
    unanswered = write_set(tmp_path / "unanswered", queries=[{**one, "metadata": ABSTAINED} for one in QUERIES])
    for data, values, drawn in ((tiny, "1,2", 1), (tiny, "1", 0), (unanswered, "1,2", 0)):
        cli("eval", "sweep", data, "-P", "two-stage", "--set", f"fusion.k={values}", "--out", tmp_path / "out")
        cli("eval", "report", tmp_path / "out", "--html", tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text("utf-8").count("<svg") == drawn


def test_the_report_tells_what_a_reader_of_the_figures_should_know(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    """Once for each set: who reads the page did not see what the command said."""
    (tiny / "qrels" / "train.tsv").write_text("q6\ta1\t1\n", encoding="utf-8")
    out, page, text = tmp_path / "out", tmp_path / "report.html", tmp_path / "report.md"
    cli("eval", "run", tiny, "-P", "lexical", "-P", "bm25", "--out", out)
    cli("eval", "compare", "bm25", "lexical", "--data", tiny, "--out", out)
    cli("eval", "report", out, "--html", page, "--markdown", text)
    for path in (page, text):
        assert path.read_text(encoding="utf-8").count("tiny: judged by test.tsv alone, not by train.tsv") == 1


def test_the_average_in_the_report_is_that_of_the_run(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    """A set measured in two runs counts once in each average, and one without counted questions in none."""
    aside = [{"_id": "q", "text": "ferry", "metadata": {"category": "adversarial"}}]
    other = write_set(tmp_path / "other", CORPUS, [{"_id": "q", "text": "zebra"}], [("q", "a1", 1)])
    empty = write_set(tmp_path / "empty", CORPUS, aside, [("q", "a1", 1)])
    places = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    for place, limit in zip(places, ("bm25", "lexical", "lexical"), strict=True):
        found = document(cli("eval", "run", tiny, other, empty, "-P", "lexical", "-P", limit, "--json", "--out", place))
        expected = f"{found['macro']['lexical']['recall@5']:.3f}"
    rows = document(cli("eval", "report", *places, "--json"))["tables"][0]["rows"]
    averages = [row[1:4] for row in rows if row[0] == "macro average" and row[1] == "lexical"]
    assert averages == [["lexical", "2", expected]] * 3


def test_where_no_question_counts_a_note_says_so_and_strata_have_their_figures(
    cli: Cli, tmp_path: Path, opened: Opened
) -> None:
    aside = [{"_id": "q", "text": "when does the ferry leave", "metadata": {"category": "adversarial"}}]
    folder = write_set(tmp_path / "aside", CORPUS, aside, [("q", "a1", 1)])
    assert "no question counts in the measures" in opened(folder).facts["note"]
    cli("eval", "run", folder, "-P", "lexical", "--out", tmp_path / "out")
    tables = document(cli("eval", "report", tmp_path / "out", "--json"))["tables"]
    strata = next(one for one in tables if one["title"] == "By stratum")
    assert dict(zip(strata["columns"], strata["rows"][0], strict=True))["recall@5"].startswith("1.000")


def test_names_cannot_break_the_page(cli: Cli, tmp_path: Path) -> None:
    folder = write_set(
        tmp_path / "<b>set", CORPUS, [{"_id": "q", "text": "bees", "metadata": {"category": "<i>&"}}], [("q", "a2", 1)]
    )
    cli("eval", "run", folder, "-P", "lexical", "--out", tmp_path / "out")
    cli("eval", "report", tmp_path / "out", "--html", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>" not in html and "<i>" not in html and "&lt;b&gt;set" in html


@pytest.mark.covers("prior.private")
def test_of_a_private_store_only_totals_are_written(cli: Cli, tmp_path: Path) -> None:
    """No content, no question, no id, no path: neither in the results nor anywhere else that the run left."""
    store, questions, out = tmp_path / "own.db", tmp_path / "mine.jsonl", tmp_path / "out"
    for text in ("The wombat sanctuary opens at dawn", "Zanzibar invoices are due in March", "Plain things happen"):
        cli("--store", store, "remember", text)
    cli("--store", store, "eval", "strata", "--out", questions, "--count", 5)
    asked = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    assert {"exact", "typo"} <= {one["stratum"] for one in asked}
    assert questions.stat().st_mode & 0o777 == 0o600
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    arguments = ("--store", store, "eval", "run", "--questions", questions, "-P", "balanced", "-P", "bm25")
    printed = cli(*arguments, "--ablate", "--typos", 1, "--out", out, "--json")
    cli(
        "--store",
        store,
        "eval",
        "sweep",
        "--questions",
        questions,
        "-P",
        "live-weights",
        "--set",
        "fusion.k=1,60",
        "--out",
        out,
    )
    cli("--store", store, "eval", "compare", "bm25", "lexical", "--questions", questions, "--out", out)
    cli("eval", "report", out, "--html", out / "page.html", "--markdown", out / "page.md")
    result = document(printed)["results"][0]
    assert result["measures"]["recall@5"]["mean"] > 0 and result["data"]["documents"] == 3 and "questions" not in result
    fresh = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.name for path in fresh} == {"run.json", "sweep.json", "compare.json", "page.html", "page.md"}
    secrets = ["wombat", "zanzibar", "invoices", "sanctuary", str(tmp_path), "mine.jsonl", "own.db"]
    secrets += [one["query"] for one in asked] + [id for one in asked for id in one["relevant"]]
    for path in fresh:
        written = path.read_bytes().decode("utf-8", "replace").lower()
        assert [secret for secret in secrets if secret.lower() in written] == [], path
    assert [secret for secret in secrets if secret.lower() in printed.lower()] == []


def test_paraphrases_that_fit_no_memory_are_told(cli: Cli, tmp_path: Path) -> None:
    from recollect.doors.cli.app import app

    store, given = tmp_path / "own.db", tmp_path / "mine.jsonl"
    id = document(cli("--store", store, "remember", "The wombat sleeps", "--json"))["id"]
    lines = [{"id": id, "query": "who rests?"}, {"id": "unknown", "query": "who else?"}]
    given.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    words = ["--store", store, "eval", "strata", "--out", tmp_path / "made.jsonl", "--paraphrases", given]
    done = CliRunner().invoke(app, [str(one) for one in words])
    assert "1 paraphrase" in done.stdout and "1 of your paraphrases were left out" in done.stderr


def own_run(cli: Cli, tmp_path: Path, *entries: dict[str, Any], more: Sequence[object] = (), code: int = 0) -> Any:
    """The document of a run on a store of one memory; ID in an entry stands for its id."""
    store, questions = tmp_path / "own.db", tmp_path / "q.jsonl"
    id = document(cli("--store", store, "remember", "The wombat sleeps", "--json"))["id"]
    lines = "".join(json.dumps(one) + "\n" for one in entries)
    questions.write_text(lines.replace("ID", id), encoding="utf-8")
    return document(cli("--store", store, "eval", "run", "--questions", questions, *more, "--json", code=code))


def test_questions_that_nobody_can_answer_are_told(cli: Cli, tmp_path: Path) -> None:
    data = own_run(
        cli,
        tmp_path,
        {"query": "thing", "relevant": {"gone": 2}},
        {"query": "wombat", "relevant": ["ID"], "namespace": "other"},
        {"query": "wombat", "relevant": ["ID"]},
    )["results"][0]["data"]
    assert data["unknown_judgements"] == 1
    assert data["note"].startswith("1 relevant ids are not in the store; 1 questions are asked in another namespace")


def test_a_sample_of_own_questions_is_spread_over_them(cli: Cli, tmp_path: Path) -> None:
    entries = [{"query": "wombat", "relevant": ["ID"], "stratum": n // 3} for n in range(9)]
    found = own_run(
        cli, tmp_path, {"query": "unjudged"}, *entries, {"query": "x", "relevant": []}, more=("--limit-queries", 3)
    )
    (result,) = found["results"]
    assert {name: one["questions"] for name, one in result["strata"].items()} == {"0": 1, "1": 1, "2": 1}
    assert (result["data"]["questions"], result["data"]["unjudged"]) == (3, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": "soon"},
        {"namespace": ["a"]},
        {"project": {}},
        {"session": 1.5},
        {"stratum": []},
        {"relevant": {"ID": 10**30}},
    ],
)
def test_what_an_own_question_cannot_be_is_named_with_its_entry(
    cli: Cli, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    entry = {"query": "wombat", "relevant": ["ID"]}
    error = own_run(cli, tmp_path, entry, {**entry, **wrong}, code=2)["error"]
    assert f"entry 2: {next(iter(wrong))}" in error["message"]


def test_a_private_run_leaves_the_store_as_it_was(cli: Cli, tmp_path: Path) -> None:
    store, questions = tmp_path / "own.db", tmp_path / "q.jsonl"
    id = document(cli("--store", store, "remember", "The wombat sleeps", "--json"))["id"]
    questions.write_text(json.dumps({"query": "wombat", "relevant": [id]}) + "\n", encoding="utf-8")
    before = cli("--store", store, "list", "--json")
    cli("--store", store, "eval", "run", "--questions", questions)
    assert cli("--store", store, "list", "--json") == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run",), 2),
        (("run", "--data", "nowhere"), 1),
        (("run", "TINY", "-P", "nothing"), 2),
        (("run", "TINY", "-P", "balanced@fusion.nothing=1"), 2),
        (("run", "TINY", "--k", "x"), 2),
        (("run", "TINY", "--k", "1000"), 2),
        (("run", "TINY", "--questions", "q.jsonl"), 2),
        (("run", "--questions", "."), 1),
        (("sweep", "TINY"), 2),
        (("sweep", "TINY", "--set", "fusion.nothing=1,2"), 2),
        (("sweep", "TINY", "--set", "fusion.k=1", "--by", "speed"), 2),
        (("sweep", "TINY", "--set", "fusion.k=1", "--set", "fusion.k=2", "-P", "two-stage"), 2),
        (("sweep", "TINY", "--set", "limit=1,2"), 2),
        (("sweep", "TINY", "-P", "bm25", "--set", "fusion.k=1"), 2),
        (("run", "TINY", "--out", "TINY/corpus.jsonl"), 2),
        (("sweep", "TINY", "--set", "fusion.k=1", "-P", "two-stage", "--out", "TINY/corpus.jsonl/in"), 2),
        (("compare", "bm25", "dense", "TINY", "--out", "TINY/corpus.jsonl"), 2),
        (("abstain", "TINY", "-P", "bm25"), 2),
        (("abstain", "TINY", "--out", "TINY/corpus.jsonl"), 2),
        (("report", "nowhere"), 1),
        (("strata", "--out", "TINY"), 2),
    ],
)
def test_wrong_requests_end_with_the_next_step(
    cli: Cli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [one.replace("TINY", str(tiny)) for one in arguments]
    error = document(cli("eval", *given, "--json", code=code))["error"]
    assert error["message"] and error["hint"]
    assert not (tmp_path / "home" / "evals").exists(), "a wrong request is told before any work"


@pytest.mark.parametrize("given", [(), ("--test", "TINY")])
def test_abstain_without_a_set_to_fit_on_names_its_option(cli: Cli, tiny: Path, given: tuple[str, ...]) -> None:
    words = [one.replace("TINY", str(tiny)) for one in given]
    error = document(cli("eval", "abstain", *words, "--json", code=2))["error"]
    assert "--data" in f"{error['message']} {error['field']}" and "--questions" not in error["message"]
    assert "recollect eval abstain --data " in error["hint"]


def test_a_wrong_set_is_told_before_the_others_are_measured(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    wrong = write_set(tmp_path / "wrong", [{"text": "no id"}])
    assert "wrong" in document(cli("eval", "run", tiny, wrong, "--json", code=2))["error"]["message"]
    assert not (tmp_path / "home" / "evals").exists()


def test_a_damaged_store_of_the_cache_is_built_again_when_asked(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    def macro(*more: str) -> Any:
        return document(cli("eval", "run", tiny, "-P", "lexical", "--json", *more))["macro"]

    found = macro()
    (store,) = (tmp_path / "home" / "evals" / "stores").glob("*/store.db")
    store.write_bytes(store.read_bytes()[:50_000])
    error = document(cli("eval", "run", tiny, "--json", code=1))["error"]
    assert "--rebuild" in error["hint"] and str(store.parent.parent) in error["hint"] and "doctor" not in error["hint"]
    assert macro("--rebuild") == found


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run.json"
    results.put(target, "old")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", interrupted)
        results.put(target, "new")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]
    results.put(target, "private", mode=0o600)
    assert target.read_text() == "private" and target.stat().st_mode & 0o777 == 0o600
    results.put(Path("/dev/null"), "nobody reads this")
    assert Path("/dev/null").is_char_device()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("body", [{}, {"kind": "run"}, {"kind": ["run"], "results": []}, {"kind": "run", "results": 1}])
def test_what_is_no_result_is_named(cli: Cli, tmp_path: Path, body: dict[str, Any]) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"recollect_eval": 1, **body}))
    error = document(cli("eval", "report", tmp_path, "--json", code=2))["error"]
    assert "run.json" in error["message"] and error["hint"]


def test_any_text_may_be_an_id_in_what_is_written(cli: Cli, tmp_path: Path) -> None:
    odd = {"_id": "\ud800", "text": "ferry", "metadata": {"category": "\udfff"}}
    folder = write_set(tmp_path / "set", [{"_id": "a", "text": "The ferry leaves"}], [odd], [("q", "a", 1)])
    (folder / "qrels" / "test.tsv").write_text("q\ta\t1\n")
    (folder / "queries.jsonl").write_text(json.dumps({**odd, "_id": "q"}) + "\n")
    cli("eval", "run", folder, "-P", "lexical", "--out", tmp_path / "out")
    cli("eval", "report", tmp_path / "out", "--html", tmp_path / "page.html", "--markdown", tmp_path / "page.md")
    assert "set" in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "found",
    [
        {"recollect_eval": 1, "kind": "run", "results": [{"system": "balanced"}]},
        {"recollect_eval": 1, "kind": "run", "results": []},
        {"recollect_eval": 1, "kind": "compare", "sets": [1]},
        {"recollect_eval": 1, "kind": "sweep", "combinations": [{"options": {"fusion.k": 1}}]},
        {"recollect_eval": 1, "kind": "abstain", "fits": [{"name": 7, "curve": {}}]},
    ],
    ids=lambda found: str(found)[20:60],
)
def test_a_document_that_lacks_what_the_tables_need_is_told_with_its_name(
    cli: Cli, tmp_path: Path, found: dict[str, Any]
) -> None:
    (tmp_path / "foreign.json").write_text(json.dumps(found), encoding="utf-8")
    for form in ((), ("--html", tmp_path / "page.html")):
        error = document(cli("eval", "report", tmp_path / "foreign.json", *form, "--json", code=2))["error"]
        assert "foreign.json holds no results" in error["message"] and "recollect eval run" in error["hint"]


def test_a_document_of_endless_brackets_is_told_with_its_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    error = document(cli("eval", "report", tmp_path / "deep.json", "--json", code=2))["error"]
    assert "deep.json is not JSON" in error["message"]


def test_memories_from_after_a_question_are_told(cli: Cli, tmp_path: Path) -> None:
    """A file of questions with an older `now` finds nothing: what was not there yet is left out."""
    asked = {"query": "wombat", "relevant": ["ID"], "now": "2020-05-01"}
    data = own_run(cli, tmp_path, asked, {"query": "wombat", "relevant": ["ID"]})["results"][0]["data"]
    assert data["note"].startswith("1 questions have evidence dated more than a day after they were asked")


@pytest.mark.parametrize("mark", [False, "false", "no", 0])
def test_own_questions_without_an_answer_are_known_however_they_are_marked(
    cli: Cli, tmp_path: Path, mark: object
) -> None:
    told = {"query": "wombat", "relevant": ["ID"], "answerable": mark}
    data = own_run(cli, tmp_path, told, {"query": "wombat", "relevant": ["ID"], "answerable": "true"})["results"][0]
    assert (data["data"]["counted"], data["data"]["unanswerable"]) == (1, 1)
