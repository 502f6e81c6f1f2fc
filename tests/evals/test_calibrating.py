"""Questions without an answer, the fit, and the command that prints a calibration."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.errors import InvalidInput
from recollect.evals import calibrating, datasets, sources
from recollect.evals.sources import Source
from recollect.evals.systems import System
from recollect.evals.unanswerable import contrasted, swapped
from recollect.profiles import certainty
from tests.evals.conftest import write_set

Cli = Callable[..., str]


def sample(count: int = 400, seed: int = 1, scopes: int = 4) -> calibrating.Sample:
    """Answerable questions are covered better by one deviation; the other signs are noise."""
    chance = np.random.default_rng(seed)
    answerable = np.arange(count) % 2 == 0
    rows = chance.normal(size=(count, len(calibrating.ALL_SIGNS)))
    rows[:, 0] += answerable * 2.0
    return calibrating.Sample("made", rows, answerable, tuple(f"s{place // 2 % scopes}" for place in range(count)), "m")


def test_haystacks_are_borrowed_where_they_hold_no_evidence(tmp_path: Path) -> None:
    corpus = [{"_id": f"d{place}", "text": f"text {place}"} for place in range(5)]
    queries = [{"_id": f"q{place}", "text": f"question {place}"} for place in range(4)]
    odd = {"_id": "q4", "text": "who juggles", "metadata": {"abstention": True}}
    hay = {"q0": ["d0", "d3"], "q1": ["d1", "d3"], "q2": ["d2", "d3"], "q3": ["d4"], "q4": ["d0"]}
    haystacks = [{"query": query, "documents": documents} for query, documents in hay.items()]
    qrels = [("q0", "d0", 1), ("q1", "d1", 1), ("q2", "d3", 1), ("q3", "d4", 1)]
    found = contrasted(datasets.load(write_set(tmp_path / "set", corpus, [*queries, odd], qrels, haystacks)))
    assert [(one.id, one.text) for one in found if one.kind == "counted"] == [
        (f"q{place}", f"question {place}") for place in range(4)
    ]
    made = [one for one in found if one.kind == "unanswerable"]
    assert [(one.text, sorted(one.candidates or ())) for one in made] == [
        ("question 0", ["d1", "d3"]), ("question 0", ["d2", "d3"]),
        ("question 1", ["d2", "d3"]), ("question 1", ["d4"]),
        ("question 2", ["d4"]),
        ("question 3", ["d0", "d3"]), ("question 3", ["d1", "d3"]),
        ("who juggles", ["d0"]),
    ]  # fmt: skip
    assert all(not one.relevant for one in made)


def test_elsewhere_a_question_is_asked_of_the_half_that_cannot_know(tiny: Path) -> None:
    made = contrasted(datasets.load(tiny))
    assert made and len({one.id for one in made}) == len(made)
    for one in made:
        assert one.candidates is not None
        if one.kind == "counted":
            assert set(one.relevant) <= one.candidates
    pairs = {one.text: one.candidates for one in made if one.kind == "counted"}
    for one in made:
        if one.kind == "unanswerable":
            assert one.candidates is not None and not one.candidates & (pairs[one.text] or frozenset())


def test_a_second_round_asks_a_further_conversation(tmp_path: Path) -> None:
    people = {"c1": ("Ann", "Bob"), "c2": ("Cleo", "Dan"), "c3": ("Eve", "Fay")}
    corpus = [
        {"_id": name, "text": "hello", "metadata": {"namespace": space, "session": space, "speaker": name}}
        for space, names in people.items()
        for name in names
    ]
    queries = [{"_id": "q1", "text": "What did Ann say?", "metadata": {"namespace": "c1"}}]
    loaded = datasets.load(write_set(tmp_path / "set", corpus, queries, [("q1", "Ann", 1)]))
    found = swapped(loaded, 5)
    assert [(one.id, one.text, one.namespace) for one in found] == [
        ("swapped:q1", "What did Cleo say?", "c2"), ("swapped2:q1", "What did Eve say?", "c3"),
    ]  # fmt: skip
    assert [one.id for one in contrasted(loaded)] == ["q1", "swapped:q1", "swapped2:q1"]


def test_the_fit_finds_the_sign_that_tells_and_leaves_the_others() -> None:
    (found,) = calibrating.fits([sample()], [])[:1]
    weights = found.calibration.weights
    assert weights["covered"] > 1.5 and all(abs(weights[name]) < 0.5 for name in weights if name != "covered")
    assert 0.88 < found.auc < 0.96
    points = found.calibration.curve
    assert [one.kept for one in points] == sorted(one.kept for one in points)
    assert all(low.log_odds >= high.log_odds for low, high in pairwise(points))
    stated = found.injected_at["0.97"]
    assert stated.low <= stated.mean <= stated.high


def test_only_an_embedder_of_several_languages_is_told_how_much_of_a_question_is_unknown() -> None:
    for cross_lingual in (False, True):
        with_model, by_words = calibrating.fits([sample()], [], cross_lingual=cross_lingual)
        assert ("unknown" in with_model.calibration.weights) == cross_lingual
        assert "unknown" not in by_words.calibration.weights
        assert "close" in with_model.calibration.weights


def test_one_sign_by_hand() -> None:
    """Two groups, ridge 0: the logistic of a single sign meets the odds of each group."""
    values = np.repeat([[0.0], [1.0]], 100, axis=0)
    truth = np.concatenate([np.arange(100) < 20, np.arange(100) < 90])
    solution = calibrating.logistic_fit(values, truth, np.ones(200), ridge=0.0)
    assert solution == pytest.approx([np.log(0.2 / 0.8), np.log(0.9 / 0.1) - np.log(0.2 / 0.8)], abs=1e-6)


def test_what_is_printed_is_what_a_profile_takes() -> None:
    found = calibrating.fits([sample()], [sample(seed=2)])
    assert found[0].tests["made"]["auc"] == pytest.approx(found[0].auc, abs=0.06)
    taken = certainty.recipe(tomllib.loads(calibrating.as_toml(found))["confidence"])
    assert [one.name for one in taken.calibrations] == ["m", "words"]
    assert taken.calibrations[0].weights == found[0].calibration.weights
    assert taken.calibrations[0].curve == found[0].calibration.curve


def test_a_set_may_be_called_anything() -> None:
    odd = replace(sample(), name='a "quoted" 😀 \\ set')
    taken = certainty.recipe(tomllib.loads(calibrating.as_toml(calibrating.fits([odd], [])))["confidence"])
    assert taken.calibrations[0].fitted.endswith(odd.name)


def test_a_set_that_cannot_test_is_refused() -> None:
    whole = sample()
    known = replace(whole, rows=whole.rows[::2], answerable=whole.answerable[::2], scopes=whole.scopes[::2])
    with pytest.raises(InvalidInput, match="made has no"):
        calibrating.fits([whole], [known])


def test_a_question_does_not_see_itself(tmp_path: Path, source: Source) -> None:
    """Where it is a document of the set, its own words would tell that all of them are found."""
    corpus = [
        {"_id": "a1", "text": "the ferry leaves"},
        {"_id": "q1", "text": "pirates"},
        {"_id": "a2", "text": "bees"},
    ]
    folder = write_set(tmp_path / "set", corpus, [{"_id": "q1", "text": "pirates"}], [("q1", "a1", 1)])
    with sources.public(folder, source) as bench:
        (row,) = calibrating.collect(bench, System("balanced", "balanced")).rows
    assert row[calibrating.ALL_SIGNS.index("covered")] == 0


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 20"):
        calibrating.fits([sample(count=30)], [])


def test_the_command_prints_and_writes_a_calibration(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating, "LEAST", 5)
    monkeypatch.setattr(calibrating, "RESAMPLES", 20)
    names = ("harbour", "barn", "bakery", "mountain", "library", "garden", "market", "tower", "bridge", "station")
    corpus = [{"_id": f"d{n}", "text": f"The {name} opens at {n} every day."} for n, name in enumerate(names)]
    queries = [{"_id": f"q{n}", "text": f"when does the {name} open"} for n, name in enumerate(names)]
    folder = write_set(tmp_path / "set", corpus, queries, [(f"q{n}", f"d{n}", 1) for n in range(len(names))])
    found = json.loads(cli("eval", "abstain", "--data", folder, "--out", tmp_path / "out", "--json"))
    assert found["kind"] == "abstain" and {one["name"] for one in found["fits"]} >= {"words"}
    assert all(one["answerable"] == one["unanswerable"] == 10 for one in found["fits"])
    certainty.recipe(tomllib.loads(found["toml"])["confidence"])
    page = tmp_path / "page.html"
    cli("eval", "report", tmp_path / "out", "--html", page)
    assert "each scope left out in turn" in page.read_text()
