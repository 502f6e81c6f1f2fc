"""The coding prompts are well formed, and the benchmark counts what prompts are given."""

from __future__ import annotations

import json

import pytest

from benchmarks import coding_prompts as benchmark
from recollect.evals import datasets
from recollect.evals.bench import Case


@pytest.mark.parametrize("half", benchmark.HALVES)
def test_every_prompt_is_judged_or_has_no_answer(half: str) -> None:
    dataset = datasets.load(benchmark.DATA / half)
    assert datasets.remarks(dataset) == [] and len(dataset.documents) == 100
    assert {one.kind for one in dataset.queries} == {"counted", "unanswerable"}
    named = (benchmark.DATA / half / "queries.jsonl").read_text("utf-8").splitlines()
    projects = {json.loads(line)["metadata"].get("project") for line in named} - {None}
    every = [one for other in benchmark.HALVES for one in datasets.load(benchmark.DATA / other).documents]
    assert projects <= {one.metadata["project"] for one in every}


def test_shares_are_those_of_each_kind_of_prompt() -> None:
    cases = [Case("a", "x", relevant={"m1": 1}), Case("b", "y", relevant={"m2": 1}), Case("c", "z")]
    told = {
        "a": benchmark.Told(("m3", "m1"), False, 30),
        "b": benchmark.Told((), True, 0),
        "c": benchmark.Told(("m1",), False, 15),
    }
    found, withheld, injected, tokens = benchmark.row(cases, told)
    assert (found[:5], withheld[:5], injected[:5], tokens) == ("0.500", "0.500", "1.000", "15")
    assert [line.split()[0] for line in benchmark.lines(cases, told)] == ["found", "withheld", "injected"]
