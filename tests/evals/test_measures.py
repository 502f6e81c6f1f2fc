"""Measures against cases worked out by hand and against ir-measures; the bootstrap against what is known of it."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.evals import measures, significance
from recollect.evals.bm25 import PlainBm25

RELEVANT = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}, "q3": {"d": 1}}
RANKINGS = {"q1": ["a", "x", "b"], "q2": ["y", "c"]}


@pytest.mark.covers("prior.eval")
def test_measures_worked_out_by_hand() -> None:
    found = measures.score(RELEVANT, RANKINGS, (1, 2, 3))
    assert found.ids == ("q1", "q2", "q3")
    assert found.of("recall@1").tolist() == [0.5, 0.0, 0.0]
    assert found.of("recall@3").tolist() == [1.0, 1.0, 0.0]
    assert found.of("any@1").tolist() == [1.0, 0.0, 0.0]
    assert found.of("any@2").tolist() == [1.0, 1.0, 0.0]
    assert found.of("all@2").tolist() == [0.0, 1.0, 0.0]
    assert found.of("all@3").tolist() == [1.0, 1.0, 0.0]
    assert found.of("mrr@10").tolist() == [1.0, 0.5, 0.0]
    best = 2 + 1 / math.log2(3)
    assert found.of("ndcg@10").tolist() == pytest.approx([(1 + 2 / math.log2(4)) / best, 1 / math.log2(3), 0.0])
    assert found.means()["recall@3"] == pytest.approx(2 / 3)


def test_the_order_given_is_the_order_judged() -> None:
    """Whatever ids look like: ties would be broken by id otherwise."""
    for ranking in (["a", "b"], ["b", "a"]):
        found = measures.score({"q": {"b": 1}}, {"q": ranking}, (1,))
        assert found.of("any@1").tolist() == [float(ranking[0] == "b")]


IDS = st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, max_size=12)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3), min_size=1), IDS)
def test_the_same_as_ir_measures_says(relevant: dict[str, int], ranking: list[str]) -> None:
    found = measures.score({"q": relevant}, {"q": ranking})
    run = {"q": {id: 100.0 - place for place, id in enumerate(ranking)}}
    known = {"recall@5": ir_measures.R @ 5, "any@3": ir_measures.Success @ 3}  # parsed, they fail from Python 3.14 on
    known |= {"ndcg@10": ir_measures.nDCG @ 10, "mrr@10": ir_measures.RR @ 10}
    for ours, measure in known.items():
        value = ir_measures.calc_aggregate([measure], {"q": relevant}, run)[measure] if ranking else 0.0
        assert found.means()[ours] == pytest.approx(value)
    assert found.means()["all@10"] == float(set(relevant) <= set(ranking[:10]))


def test_any_text_may_be_the_id_of_a_question() -> None:
    ids = ("a\0b", "a\0c", "\ud800", "")
    found = measures.score({id: {"x": 1} for id in ids}, {id: ["x"] for id in ids[1:]})
    assert found.ids == ids and found.of("mrr@10").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("id", ["half \ud800", "a\0b", "", "a b\tc\n"])
def test_any_text_may_be_the_id_of_a_memory(id: str) -> None:
    """A user writes the ids of his own questions, and half a pair of surrogates ended the process."""
    found = measures.score({"q": {id: 1, "a": 1}}, {"q": ["a", "other", id]}, (1, 3))
    assert (found.of("recall@1").tolist(), found.of("recall@3").tolist()) == ([0.5], [1.0])


def test_no_questions_give_no_means() -> None:
    assert measures.score({}, {}).means() == {}
    assert significance.estimates(np.zeros((0, 3))) == []


@pytest.mark.covers("prior.eval")
def test_the_bootstrap_is_deterministic_and_knows_the_standard_error() -> None:
    values = np.random.default_rng(5).normal(0.3, 1.0, (400, 2))
    first, again = significance.estimates(values), significance.estimates(values)
    assert first == again and first != significance.estimates(values, seed=1)
    for column, one in enumerate(first):
        error = values[:, column].std() / math.sqrt(len(values))
        assert one.mean == pytest.approx(values[:, column].mean())
        assert one.high - one.low == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert significance.RESAMPLES == 10_000


def test_resampling_draws_as_a_loop_would() -> None:
    values = np.array([[0.0, 1.0], [0.5, 0.25], [1.0, 0.0]])
    drawn = np.random.default_rng(3).integers(0, 3, (50, 3))
    loop = np.stack([values[row].mean(axis=0) for row in drawn])
    assert np.allclose(significance.resampled_means(values, 3, 50), loop)


def test_paired_differences_see_what_single_intervals_hide() -> None:
    """Questions differ widely, the second system is better on each by a little: only pairing can tell."""
    first = np.random.default_rng(2).uniform(0, 0.9, (60, 1))
    (gap,) = significance.differences(first, first + 0.01)
    assert gap.mean == pytest.approx(0.01) and gap.low > 0 and gap.clear
    assert (gap.wins, gap.ties, gap.losses) == (60, 0, 0)
    (one,), (other,) = significance.estimates(first), significance.estimates(first + 0.01)
    assert one.high > other.low
    (same,) = significance.differences(first, first)
    assert (same.mean, same.low, same.high, same.ties, same.clear) == (0, 0, 0, 60, False)


def test_quantiles() -> None:
    assert significance.quantiles([float(one) for one in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert significance.quantiles([]) == {}


def test_the_independent_bm25_by_group_and_candidates() -> None:
    index = PlainBm25(
        [("1", "g", "red fox"), ("2", "g", "red red cars"), ("3", "other", "red fox fox"), ("4", "mute", "")]
    )
    assert index.search("The red FOX!", "g", None, 5) == ["1", "2"], "the rare word decides, case and stop words do not"
    assert index.search("red", "g", None, 5) == ["2", "1"], "said twice counts more"
    assert index.search("car", "g", None, 5) == ["2"], "forms of a word are one"
    assert index.search("red fox", "g", frozenset({"2", "3"}), 5) == ["2"]
    assert index.search("red fox", "g", None, 1) == ["1"]
    assert all(
        index.search(text, group, None, 5) == [] for text, group in (("nothing", "g"), ("the", "g"), ("red", "no"))
    )
    assert index.search("red", "mute", None, 5) == []
