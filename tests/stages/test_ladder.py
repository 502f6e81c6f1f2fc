"""The rungs of the retry ladder as pure functions."""

from __future__ import annotations

import pytest
from asking import ask

from recollect.stages.ladder import (
    MAX_FUZZY_WORDS,
    RUNGS,
    Lexicon,
    fuzzy_words,
    rare_candidates,
    sanitised,
    similarities,
    strongest,
)
from recollect.stages.parse import unparse


def rung(name: str, text: str, lexicon: Lexicon | None = None, **options: object) -> str | None:
    node = RUNGS[name](ask(text, **options), lexicon or Lexicon())
    return None if node is None else unparse(node)


@pytest.mark.covers("ladder.rungs")
def test_the_rungs_and_their_order() -> None:
    assert list(RUNGS) == [
        "initial",
        "strongest_term",
        "force-refresh",
        "refreshed_sanitised",
        "refreshed_strongest",
        "trigram_fuzzy",
    ]


@pytest.mark.covers("ladder.rungs")
@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("initial", '"app.config.ts" AND kube* AND (k8s OR kubernetes OR "container fleet")'),
        ("strongest_term", "app.config.ts"),
        ("force-refresh", None),
        ("refreshed_sanitised", 'app OR config OR ts OR kube OR k8s OR kubernetes OR "container fleet"'),
        ("refreshed_strongest", "kubernetes"),
        ("trigram_fuzzy", None),
    ],
)
def test_each_rung_loosens(name: str, query: str | None) -> None:
    aliases = {"k8s": ["kubernetes", "container fleet"]}
    assert rung(name, '"app.config.ts" AND kube* AND k8s', aliases=aliases) == query


@pytest.mark.covers("ladder.rungs")
def test_the_sanitised_form_has_no_stop_words_operators_or_capitals() -> None:
    assert rung("refreshed_sanitised", '"What is" the WAL-Mode AND (C++ OR "D E")') == "wal OR mode OR c OR d OR e"
    assert sanitised(ask("what is it")) == ("what", "is", "it")
    assert sanitised(ask("ΜΑ\u03aa\u0301ΟΥ")) == ("μα\u0390ου",), "a letter keeps its accent in small letters too"


@pytest.mark.covers("ladder.rungs")
@pytest.mark.parametrize("name", [name for name in RUNGS if name != "force-refresh"])
def test_what_is_excluded_stays_excluded(name: str) -> None:
    lexicon = Lexicon(similar={"checkpoint": [("checkpoints", 0.8)]})
    query = rung(name, "(checkpoint NOT disk) AND wal -tape", lexicon)
    assert query is not None
    assert query.endswith("NOT tape" if name == "initial" else "NOT (disk OR tape)")


@pytest.mark.covers("ladder.rungs")
@pytest.mark.parametrize("name", RUNGS)
def test_a_question_without_words_climbs_nothing(name: str) -> None:
    assert rung(name, "?!") is None


@pytest.mark.covers("ladder.strongest")
@pytest.mark.parametrize(
    ("words", "frequencies", "expected"),
    [
        ("wal checkpoint log", {}, "checkpoint"),
        ("between database", {"database": 900}, "database"),  # longest that is no stop word, however frequent
        ("alpha gamma delta", {"alpha": 9, "gamma": 2, "delta": 5}, "gamma"),  # tie: the rarer
        ("alpha gamma delta", {"alpha": 2, "gamma": 2, "delta": 2}, "alpha"),  # tie: the earlier
        ("alpha gamma delta", {"delta": 7}, "delta"),  # what the index does not hold cannot be found
        ("alpha gamma", {}, "alpha"),
        ("ab cd", {}, None),  # too short
        ("where should through", {}, None),  # nothing but stop words
        ("", {}, None),
    ],
)
def test_the_strongest_term(words: str, frequencies: dict[str, int], expected: str | None) -> None:
    assert strongest(words.split(), frequencies) == expected


@pytest.mark.covers("ladder.strongest")
def test_ties_alone_need_frequencies() -> None:
    question = ask("alpha is a gamma foo-barbaz")
    assert rare_candidates(question) == ("foo-barbaz", "barbaz")
    assert rare_candidates(ask("alpha gamma wal")) == ("alpha", "gamma")
    tied = Lexicon({"alpha": 8, "gamma": 3})
    assert rung("strongest_term", "alpha gamma wal", tied) == "gamma"
    assert rung("refreshed_strongest", "alpha, gamma! wal", tied) == "gamma"


@pytest.mark.covers("ladder.fuzzy")
def test_the_fuzzy_rung_takes_the_best_similarity_of_each_word() -> None:
    similar = {
        "kubernets": [("kubernet", 0.8), ("kuber", 0.4), ("net", 0.29)],
        "netwrk": [("network", 0.5), ("kubernet", 0.3)],
    }
    assert similarities(similar) == {"kubernet": 0.8, "network": 0.5, "kuber": 0.4}
    assert rung("trigram_fuzzy", "kubernets netwrk", Lexicon(similar=similar)) == "kubernet OR network OR kuber"
    assert list(similarities({"w": [("b", 0.5), ("a", 0.5)]})) == ["a", "b"]


@pytest.mark.covers("ladder.fuzzy")
def test_the_fuzzy_rung_is_bounded() -> None:
    question = ask(" ".join(f"word{number:03}{'x' * (number % 7)}" for number in range(40)))
    asked = fuzzy_words(question)
    assert len(asked) == MAX_FUZZY_WORDS
    assert set(map(len, asked)) == {12, 13}
    assert list(asked) == sorted(asked)
    many = {word: [(f"{word}{place}", 0.9) for place in range(500)] for word in asked}
    assert len(similarities(many)) == 64
    assert fuzzy_words(ask("go to db")) == ()
