"""A system on a bench: what is counted, what stands apart, what each list brings, and when to say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.domain.errors import InvalidInput
from recollect.evals import abstention, lists, measures, significance, tables, variations
from recollect.evals.asking import Asked, ask_all
from recollect.evals.bench import Bench
from recollect.evals.judging import Plan
from recollect.evals.results import plain
from recollect.evals.running import evaluate, macro
from recollect.evals.systems import BASELINES, System, system, voting_lists
from tests.evals.conftest import CORPUS, QUERIES, Opened, write_set

BALANCED = System("balanced", "balanced")
LEXICAL = system("lexical", {}, None)
PLAN = Plan()


@pytest.mark.covers("prior.eval")
def test_strata_and_what_stands_apart(bench: Bench) -> None:
    result = evaluate(bench, LEXICAL, PLAN)
    assert result.scores.ids == ("q1", "q2", "q3")
    assert {name: part.questions for name, part in result.strata.items()} == {
        "adversarial": 1, "food": 1, "single": 2,
    }  # fmt: skip
    assert (result.data["counted"], result.data["unanswerable"], result.data["unjudged"]) == (3, 1, 1)
    single = result.strata["single"].measures["recall@5"]
    assert single.mean == pytest.approx((result.scores.of("recall@5")[0] + result.scores.of("recall@5")[1]) / 2)
    assert result.measures["recall@5"].mean == pytest.approx(result.scores.of("recall@5").mean())
    assert result.bytes > 0 and result.tokens["mean"] > 0 and result.degraded == 0
    assert set(result.milliseconds) >= {"p50", "p95", "p99", "stages"} and "fusion" in result.milliseconds["stages"]


def test_a_sample_holds_judged_questions_only(opened: Opened, tmp_path: Path) -> None:
    others = [{"_id": f"train{n}", "text": "never judged"} for n in range(50)]
    cases = opened(write_set(tmp_path / "set", CORPUS, [*others, *QUERIES]), limit_queries=3)
    assert [(case.id, case.kind) for case in cases.cases] == [
        ("q1", "counted"), ("q2", "counted"), ("q4", "unanswerable"),
    ]  # fmt: skip
    assert (cases.facts["questions"], cases.facts["unjudged"]) == (3, 51)


def test_the_ranking_is_deep_while_the_block_is_as_shipped(bench: Bench) -> None:
    """The measures look deeper than the profile gives; tokens are those of the block that it gives."""
    short = evaluate(bench, LEXICAL.varied({"limit": 1}), PLAN)
    long = evaluate(bench, LEXICAL.varied({"limit": 5}), PLAN)
    assert (short.scores.values == long.scores.values).all()
    assert 0 < short.tokens["mean"] < long.tokens["mean"]
    assert evaluate(bench, LEXICAL, Plan(as_shipped=False)).tokens == {}


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_answer(bench: Bench, name: str) -> None:
    result = evaluate(bench, system(name, {}, None), PLAN)
    assert result.measures["any@5"].mean == 1.0 and result.degraded == 0
    used = {used for one in result.answers.values() for used in one.lists}
    assert used == (set() if name == "bm25" else {name})


def test_answers_without_the_reranker_that_was_asked_for_lack_a_part(bench: Bench) -> None:
    """Their figures would pass for those of the reranker."""
    asked = BALANCED.varied({"rerank.enabled": True, "rerank.unanimity": False})
    assert evaluate(bench, asked, PLAN).degraded == len(evaluate(bench, asked, PLAN).answers) > 0
    assert evaluate(bench, BALANCED, PLAN).degraded == 0


def test_the_same_twice(bench: Bench) -> None:
    first, again = (evaluate(bench, BALANCED, PLAN) for _ in range(2))
    assert (first.scores.values == again.scores.values).all() and first.measures == again.measures
    assert {id: one.ranking for id, one in first.answers.items()} == {
        id: one.ranking for id, one in again.answers.items()
    }


def test_haystacks_and_namespaces_are_walls(opened: Opened, tmp_path: Path) -> None:
    corpus = [{**one, "metadata": {"namespace": f"n{place % 2}"}} for place, one in enumerate(CORPUS)]
    queries = [
        {"_id": "q1", "text": "bees", "metadata": {"namespace": "n1"}},
        {"_id": "q2", "text": "bees", "metadata": {"namespace": "n1"}},
        {"_id": "q3", "text": "bees", "metadata": {"namespace": "n0"}},
    ]
    haystack = [{"query": "q2", "documents": ["a6"]}]
    folder = write_set(
        tmp_path / "walls", corpus, queries, [("q1", "a2", 1), ("q2", "a6", 1), ("q3", "a1", 1)], haystack
    )
    bench = opened(folder)
    allowed = [{one.id for one in bench.engine.list(scope=case.scope)} for case in bench.cases]
    for chosen in (LEXICAL, system("dense", {}, None), system("bm25", {}, None)):
        answers = ask_all(bench, chosen, bench.cases, 10, as_shipped=False)
        for case, inside in zip(bench.cases, allowed, strict=True):
            found = set(answers[case.id].ranking)
            assert found <= inside and (case.only is None or found <= case.only)
        assert answers["q1"].ranking and len(answers["q2"].ranking) == 1


def test_a_question_is_asked_at_its_own_time(opened: Opened, tmp_path: Path) -> None:
    own = tmp_path / "times.toml"
    own.write_text(
        '[query]\ntemporal = true\n[legs.lexical]\n[[priors]]\nkind = "temporal"\ninside = 3.0\n', encoding="utf-8"
    )
    corpus = [
        {"_id": day, "text": "we had soup", "metadata": {"created_at": f"2024-03-{day}T12:00:00Z"}}
        for day in ("01", "02", "03", "04")
    ]
    queries = [
        {"_id": f"q{day}", "text": "the soup of yesterday", "metadata": {"question_date": f"2024-03-{day}T18:00:00Z"}}
        for day in ("02", "03", "04")
    ]
    bench = opened(write_set(tmp_path / "soup", corpus, queries, [(f"q0{day + 1}", f"0{day}", 1) for day in (1, 2, 3)]))
    assert evaluate(bench, system(str(own), {}, None), PLAN).scores.of("any@1").tolist() == [1.0, 1.0, 1.0]
    queries = [
        {"_id": "q", "text": "the soup of yesterday", "metadata": {"question_date": "2024-03-04T01:00:00+09:00"}}
    ]
    bench = opened(write_set(tmp_path / "tokyo", corpus, queries, [("q", "03", 1)]))
    assert evaluate(bench, system(str(own), {}, None), PLAN).scores.of("any@1").tolist() == [1.0]


def test_reach_allowed_and_seen() -> None:
    """The second list's best hit stands alone; at a tenth of the weight the formula says it cannot reach the top 1."""
    answers = [
        Asked(("a", "b"), 1.0, lists={"lexical": ("a", "c"), "dense": ("b", "a")}),
        Asked(("a",), 1.0, lists={"lexical": ("a",), "dense": ("z", "a")}),
        Asked(("a",), 1.0, lists={"lexical": ("a",), "dense": ("a",)}),
    ]
    weak = system("live-weights", {"legs.lexical.weight": 5.0, "legs.dense.weight": 0.5}, None)
    found = lists.reach(weak, None, answers, (1, 2))
    dense = found["dense"]
    assert dense["allowed"] == {"1": False, "2": False} and found["lexical"]["allowed"] == {"1": True, "2": True}
    assert (dense["alone"], dense["seen"]) == (2, {"1": 0, "2": 1})
    assert lists.reach(system("bm25", {}, None), None, answers, (1,)) == {}


@pytest.mark.covers("prior.eval")
def test_reach_is_shown_for_all_sets_together() -> None:
    def result(alone: int, seen: int) -> dict[str, Any]:
        one = {"weight": 0.35, "allowed": {"5": False, "10": True}, "alone": alone, "seen": {"5": 0, "10": seen}}
        return {"system": "s", "reach": {"graph": one, "dense": {**one, "weight": 1.0, "allowed": None}}}

    shown = tables.reach([result(3, 2), result(4, 0), {"system": "bm25", "reach": {}}])
    assert shown.columns[3:] == ("can reach the top 10 alone", "best hits of its own", "in the top 10")
    assert shown.rows == (("s", "graph", "0.35", "yes", "7", "2"), ("s", "dense", "1", "–", "7", "2"))


def test_ablation_counts_what_comes_and_goes(bench: Bench) -> None:
    whole = system("importance-prior", {}, None)
    result = evaluate(bench, whole, PLAN)
    found = lists.ablation(bench, whole, result.answers, result.scores, PLAN)
    assert set(found) == set(voting_lists(whole, None)[1])
    cases = bench.of("counted")
    for path, one in found.items():
        without = ask_all(bench, whole.varied({f"{path}.weight": 0.0}), cases, PLAN.limit, as_shipped=False)
        gone = sum(
            len(set(case.relevant) & set(result.answers[case.id].ranking[:1]) - set(without[case.id].ranking[:1]))
            for case in cases
        )
        assert one["only_with"]["1"] == gone
        judged = measures.score({case.id: case.relevant for case in cases}, {i: a.ranking for i, a in without.items()})
        gap = judged.means()["ndcg@10"] - result.scores.means()["ndcg@10"]
        assert one["without"]["ndcg@10"].mean == pytest.approx(gap)


def test_ablation_counts_relevant_memories_that_one_list_alone_brought(bench: Bench) -> None:
    cases = [case for case in bench.of("counted") if case.id == "q2"]
    first, second = sorted(cases[0].relevant)
    here = {"q2": Asked((first, second, "x"), 1.0, sole={first: "dense", "x": "dense", second: "lexical"})}
    there = {"q2": Asked(("x", second), 1.0)}
    assert [lists._kept(cases, here, there, k) for k in (1, 2)] == [1, 1]  # pyright: ignore[reportPrivateUsage]
    assert lists._sole(cases, here, "dense", 3) == 1  # pyright: ignore[reportPrivateUsage]


def test_a_sweep_equals_separate_runs(bench: Bench) -> None:
    options = {"fusion.k": [1, 60], "legs.dense.weight": [0.5, 2.0]}
    base = System("importance-prior", "importance-prior")
    plan = Plan(as_shipped=False)
    unchanged, found = variations.sweep([bench], base, options, plan, "ndcg@10")
    assert len(found) == 4 and [one.macro["ndcg@10"] for one in found] == sorted(
        (one.macro["ndcg@10"] for one in found), reverse=True
    )
    plain_run = evaluate(bench, base, Plan())
    assert (unchanged[0].scores.values == plain_run.scores.values).all()
    for one in found:
        alone = evaluate(bench, system("importance-prior", one.options, None), Plan())
        assert (alone.scores.values == one.results[0].scores.values).all() and alone.measures == one.results[0].measures
        change = one.change["tiny"]["mrr@10"]
        assert change.mean == pytest.approx(alone.scores.means()["mrr@10"] - plain_run.scores.means()["mrr@10"])
        assert one.macro == pytest.approx(macro([alone]))


def test_a_grid_is_bounded_and_complete() -> None:
    assert variations.grid({"a": [1, 2], "b": ["x"]}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]
    with pytest.raises(InvalidInput, match="combinations"):
        variations.grid({"a": list(range(50)), "b": list(range(50))})
    with pytest.raises(InvalidInput, match="no values"):
        variations.grid({"a": []})


def test_only_the_same_questions_can_be_compared(bench: Bench) -> None:
    one = evaluate(bench, LEXICAL, PLAN).scores
    with pytest.raises(InvalidInput, match="same questions"):
        variations.compared(one, one.rows([True, True, False]), significance.SEED)


def test_the_macro_average_counts_sets_not_questions(bench: Bench, opened: Opened, tmp_path: Path) -> None:
    queries = [{"_id": "z", "text": "telescopes"}]
    other = opened(write_set(tmp_path / "other", CORPUS, queries, [("z", "a1", 1)]))
    first, second = evaluate(bench, LEXICAL, PLAN), evaluate(other, LEXICAL, PLAN)
    assert second.measures["recall@5"].mean == 0.0
    assert macro([first, second])["recall@5"] == pytest.approx(first.measures["recall@5"].mean / 2)


def test_typos_measure_what_is_kept(bench: Bench) -> None:
    result = evaluate(bench, LEXICAL, PLAN)
    found = variations.typos(bench, result, PLAN, 2)
    assert found == variations.typos(bench, result, PLAN, 2) and found["edits"] == 2
    assert found["kept"]["recall@5"] == pytest.approx(found["means"]["recall@5"] / result.scores.means()["recall@5"])


def answer(confidence: float | None, score: float | None = None, injects: bool = True) -> Asked:
    return Asked(("a",), 1.0, confidence=confidence, best_score=score, injects=injects)


@pytest.mark.covers("prior.eval")
def test_the_abstention_curve() -> None:
    answerable = [answer(one / 10) for one in range(1, 11)]
    unanswerable = [answer(0.05), answer(0.15, injects=False), answer(0.25), answer(0.95)]
    found = abstention.curve(answerable, unanswerable)
    assert found is not None
    assert found["signal"] == "confidence" and found["shipped"] == {"kept": 1.0, "injected": 0.75}
    assert found["injected_at"] == {"0.9": 0.5, "0.95": 0.75, "0.97": 0.75, "0.99": 0.75, "1": 0.75}
    assert found["curve"][0] == [0.0, 0.0] and found["curve"][100] == [1.0, 0.75] and len(found["curve"]) == 101
    assert found["auc"] == pytest.approx((10 + 9 + 8 + 1) / 40)
    assert abstention.curve(answerable, []) is None and abstention.curve([], unanswerable) is None
    assert abstention.injected_at([0.5], [0.5, 0.4], 1.0) == 0.5, "a tie is let in"
    assert abstention.auc([0.5], [0.5]) == 0.5, "and counts half"


def test_without_confidence_the_best_score_stands_in() -> None:
    found = abstention.curve([answer(None, 2.0), answer(0.5, 1.0)], [answer(None, None), answer(None, 1.5)])
    assert found is not None and found["signal"] == "score"
    assert found["injected_at"]["1"] == 0.5 and found["auc"] == pytest.approx(3 / 4)


def test_systems_by_name_path_and_options(tmp_path: Path) -> None:
    assert system("two-stage", {"fusion.k": 10}, None).name == "two-stage@fusion.k=10"
    assert system("dense", {"limit": 3}, None).name == "dense@limit=3"
    own = tmp_path / "bm25.toml"
    own.write_text("[legs.lexical]\n", encoding="utf-8")
    assert system("bm25", {}, tmp_path).profile == "bm25" and system("bm25", {}, None).profile is None
    assert system(str(own), {}, None).name == "bm25"
    for name, options in (("bm25", {"limit": 3}), ("nothing", {}), ("balanced", {"fusion.nothing": 1})):
        with pytest.raises(InvalidInput):
            system(name, options, None)


def test_results_become_plain_json(bench: Bench) -> None:
    found = plain({"a": (1, 0.123456789), "b": significance.Estimate(1.0, 0.5, 2.0), "c": None, "d": True})
    assert found == {"a": [1, 0.12346], "b": {"mean": 1.0, "low": 0.5, "high": 2.0}, "c": None, "d": True}


def test_resamples_are_the_same_however_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(8.0).reshape(4, 2)
    whole = significance.resampled_means(values, seed=1, resamples=7)
    monkeypatch.setattr(significance, "CELLS_AT_ONCE", 3 * len(values))
    assert whole.shape == (7, 2) and (significance.resampled_means(values, seed=1, resamples=7) == whole).all()
