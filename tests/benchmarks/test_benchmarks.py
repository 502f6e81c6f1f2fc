"""The benchmark runs: on so few memories that its numbers mean nothing, but every measure is made and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import bars, corpus, meaning, postgres, sizing
from benchmarks.__main__ import main


def test_a_tiny_run_makes_every_measure_and_a_page(tmp_path: Path) -> None:
    code = main(
        ["--sizes", "300", "--questions", "6", "--sample", "60", "--no-model", "--no-rivals", "--out", str(tmp_path)]
    )
    results = json.loads((tmp_path / "quick.json").read_text("utf-8"))
    one = results["sizes"]["300"]
    page = (tmp_path / "quick.md").read_text("utf-8")
    assert code == 0
    assert one["rightness"] == {
        "top50_agreement": 1.0,
        "vector_recall_at_100": {"all": 1.0, "10 %": 1.0, "0.1 %": 1.0},
    }
    assert set(one["recall"]) >= {"all", "10 %", "0.1 %", "stages_ms", "legs_ms"}
    assert set(results["writes"]) >= {"1 writers", "4 writers", "16 writers", "one commit each, bare", "fsync_p50_ms"}
    assert one["import"]["checked, per_s"] > 0 and one["import"]["checked, duplicates kept, per_s"] > 0
    assert set(results["command line"]) >= {"recall", "recall --json"}
    assert one["steps"]["links"] > 600 and one["steps"]["found"] > 10
    assert "## 300 memories" in page and "recollect recall, scope 0.1 %" in page


def test_texts_and_vectors_are_the_same_in_every_run() -> None:
    first, again = corpus.make(50), corpus.make(50)
    assert list(first.texts()) == list(again.texts()) and first.questions(5) == again.questions(5)
    made, twice = meaning.make(40, 4, None, 30), meaning.make(40, 4, None, 30)
    assert (made.vectors == twice.vectors).all() and (made.topics == twice.topics).all()


def test_scopes_have_the_sizes_they_are_named_for() -> None:
    projects = [corpus.memory(number, "").scope.project for number in range(20_000)]
    assert projects.count("tenth") == pytest.approx(2_000, rel=0.1)
    assert projects.count("thousandth") == pytest.approx(20, rel=0.5)


def test_a_bar_is_kept_or_not() -> None:
    assert bars.Bar("time", 7.9, 8.0).kept and not bars.Bar("time", 8.1, 8.0).kept
    assert bars.Bar("share", 0.99, 0.98, True).kept and not bars.Bar("share", 0.97, 0.98, True).kept


@pytest.mark.postgres
def test_a_tiny_run_beside_postgres_makes_every_measure_and_both_pages(tmp_path: Path) -> None:
    common = ["--questions", "6", "--sample", "60", "--no-model", "--out", str(tmp_path)]
    assert postgres.main(["--sizes", "300", *common]) == 0
    assert postgres.main(["--sizes", "200", *common]) == 0
    results = json.loads((tmp_path / "postgres.json").read_text("utf-8"))
    assert set(results["sizes"]) == {"200", "300"}
    one = results["sizes"]["300"]
    assert one["vector_recall_at_100"] == {"sqlite": 1.0, "postgres": 1.0}
    assert one["recall"]["all"]["same_of_top_10"] == 1.0
    assert one["recall"]["all"]["server_cpu_mean"] > 0 and one["resident_mb"]["postgres processes"] > 0
    assert set(one["filling"]["postgres"]) == {"memories", "vectors", "indexes"}
    assert "## 300 memories" in (tmp_path / "postgres.md").read_text("utf-8")
    page = sizing.page(results | {"embedding_cpu_ms": 7.0})
    assert "| 300 | " in page and "## A billion, on paper" in page


def test_the_sizing_page_is_that_of_the_kept_results() -> None:
    made = sizing.page(json.loads(sizing.RESULTS.read_text("utf-8")))
    assert sizing.PAGE.read_text("utf-8") == made, "run `python -m benchmarks.sizing`"
