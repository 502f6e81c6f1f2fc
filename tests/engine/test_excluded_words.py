"""What a question excludes (`-word`, `NOT word`, `-"a phrase"`) stays out of its answer, whichever leg finds it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Draft, Receipt, profiles
from recollect.domain.query import Node
from recollect.engine import Engine
from recollect.ports import TextIndex, TextMatches
from tests.engine.conftest import Open

KUBERNETES = "Deploys to production go through Kubernetes"
TUESDAY = "Deploys to production are on Tuesdays"
ROLLBACK = "A deploy that fails is rolled back by hand"
BLUE = "Production deploys are blue green deploys"
MANY = 150
THOUSANDS = 1_500
OPTIONS: dict[str, Any] = {"embedder": "fake", "reranker": "none", "background": False}


def remembered(engine: Engine, *contents: str) -> list[Receipt]:
    return engine.remember_many([Draft(one) for one in contents], dedupe=False)


@pytest.fixture
def deploys(engine: Engine) -> Engine:
    remembered(engine, KUBERNETES, TUESDAY, ROLLBACK, BLUE)
    engine.upkeep()
    return engine


def texts(engine: Engine, query: str, **asked: Any) -> list[str]:
    return [hit.content for hit in engine.recall(query, limit=20, **asked)]


@pytest.mark.parametrize("profile", profiles.builtin_names())
@pytest.mark.parametrize("query", ["production deploys -kubernetes", "production deploys NOT Kubernetes"])
def test_a_word_that_is_excluded_is_in_no_hit_of_any_profile(deploys: Engine, query: str, profile: str) -> None:
    options: dict[str, Any] = {"select.floor.minimum": 0} if profile == "token-budget-lexical" else {}
    everything = texts(deploys, "production deploys", profile=profile, options=options)
    assert KUBERNETES in everything
    assert set(texts(deploys, query, profile=profile, options=options)) == set(everything) - {KUBERNETES}


@pytest.mark.parametrize("mode", ["auto", "bm25", "semantic", "hybrid", "hybrid-rerank"])
def test_it_holds_in_every_mode(deploys: Engine, mode: str) -> None:
    found = texts(deploys, "production deploys -kubernetes", mode=mode)
    assert found and KUBERNETES not in found


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ('deploys -"blue green"', [BLUE]),
        ('deploys -"green blue"', []),
        ("deploys -kube*", [KUBERNETES]),
        ("deploys -(kubernetes OR tuesday)", [KUBERNETES, TUESDAY]),
        ("deploys -(kubernetes AND tuesday)", []),
        ("(deploys -kubernetes) OR rolled", [KUBERNETES]),
        ("(deploys -production) OR tuesdays", [KUBERNETES, BLUE]),
        ("deploys -deploying", [KUBERNETES, TUESDAY, ROLLBACK, BLUE]),
    ],
)
def test_phrases_prefixes_and_groups_mean_what_they_mean_to_words(deploys: Engine, query: str, gone: list[str]) -> None:
    found = texts(deploys, query)
    assert set(found) == {KUBERNETES, TUESDAY, ROLLBACK, BLUE} - set(gone)


def test_each_that_is_left_out_is_told_with_its_reason(deploys: Engine) -> None:
    answer = deploys.recall("production deploys -kubernetes")
    told = [(deploys.get(one.id).content, one.reason) for one in answer.dropped if one.stage == "excluded"]
    assert told == [(KUBERNETES, "the question excludes: kubernetes")]
    assert answer.trace.legs["dense"].hits == 3


def test_others_take_the_places_of_those_that_are_left_out(engine: Engine) -> None:
    """More memories with the excluded word than any leg looks at do not silence the rest."""
    remembered(engine, *(f"Deploys to production number {one} go through Kubernetes" for one in range(MANY)))
    engine.remember(ROLLBACK)
    engine.upkeep()
    assert texts(engine, "production deploys -kubernetes", mode="semantic") == [ROLLBACK]


@pytest.mark.parametrize("place", ["file", ":memory:", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_thousands_that_are_left_out_do_not_silence_the_rest(place: str, tmp_path: Path) -> None:
    """More of them than are looked up at first: every leg still finds all that there is."""
    address = str(tmp_path / "s.db") if place == "file" else _address(place)
    with closing(recollect.open(address, **OPTIONS, home=tmp_path)) as engine:
        texts_of_them = [f"Deploys to production number {one} go through Kubernetes" for one in range(THOUSANDS)]
        for start in range(0, THOUSANDS, 500):
            remembered(engine, *texts_of_them[start : start + 500])
        for one in (ROLLBACK, TUESDAY):
            engine.remember(one, created_at="2020-01-01")
        while engine.upkeep().embedded.remaining:
            pass
        for asked in ({"mode": "semantic"}, {"profile": "two-stage", "mode": "semantic"}):
            assert set(texts(engine, "production deploys -kubernetes", **asked)) == {ROLLBACK, TUESDAY}
        assert set(texts(engine, "-kubernetes")) == {ROLLBACK, TUESDAY}


def test_it_holds_for_what_links_lead_to(engine: Engine) -> None:
    tuesday, kubernetes, friday = remembered(engine, TUESDAY, KUBERNETES, "Deploys happen on Fridays")
    engine.link(tuesday.id, "see-also", kubernetes.id)
    engine.upkeep()
    for query in ("tuesdays -kubernetes", "tuesdays NOT kubernetes"):
        assert KUBERNETES not in texts(engine, query)
    engine.link(kubernetes.id, "supersedes", friday.id)
    answer = engine.recall("fridays -kubernetes")
    assert KUBERNETES not in [hit.content for hit in answer]
    assert f"superseded by {kubernetes.id}, which is excluded" in [one.reason for one in answer.dropped]


@pytest.mark.parametrize("place", [":memory:", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_every_store_leaves_out_the_same(opened: Open, deploys: Engine, tmp_path: Path, place: str) -> None:
    with closing(recollect.open(_address(place), **OPTIONS, home=tmp_path / "other")) as other:
        remembered(other, KUBERNETES, TUESDAY, ROLLBACK, BLUE)
        other.upkeep()
        for query in ("production deploys -kubernetes", 'deploys -"blue green"', "(deploys -production) OR tuesdays"):
            assert sorted(texts(other, query)) == sorted(texts(deploys, query))


def _address(place: str) -> str:
    if place != "postgres":
        return place
    from tests.postgres_server import shared_server

    return shared_server().fresh()


def test_nothing_more_is_asked_where_nothing_is_excluded(deploys: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is asked once, as for any question, and once where nobody but words can find anything."""
    index = deploys.store.text
    assert index is not None
    asked: list[Node] = []
    match = type(index).match

    def counted(self: TextIndex, query: Node, *rest: Any) -> TextMatches:
        asked.append(query)
        return match(self, query, *rest)

    monkeypatch.setattr(type(index), "match", counted)
    deploys.recall("production deploys")
    assert len(asked) == 1
    deploys.recall("production deploys -kubernetes", profile="token-budget-lexical")
    assert len(asked) == 2


@pytest.mark.parametrize(
    "query", ["type:decision -kubernetes", "type:decision NOT kubernetes", "-kubernetes type:decision"]
)
def test_filters_with_nothing_but_exclusions_name_what_is_wanted(engine: Engine, query: str) -> None:
    """Nobody asks for decisions about Kubernetes by excluding it."""
    engine.remember(KUBERNETES, type="decision")
    engine.remember(TUESDAY, type="decision")
    engine.remember(ROLLBACK, type="lesson")
    engine.upkeep()
    assert texts(engine, query) == [TUESDAY]


def day_by_day(engine: Engine) -> None:
    for day, text in enumerate((TUESDAY, KUBERNETES, ROLLBACK, BLUE), start=1):
        engine.remember(text, created_at=f"2026-05-0{day}")
    engine.upkeep()


@pytest.mark.parametrize("query", ["-kubernetes", '-"through kubernetes"', "-kube* -nothing", "(-kubernetes)"])
def test_exclusions_alone_leave_everything_else_newest_first(engine: Engine, query: str) -> None:
    """Nobody asks for Kubernetes by excluding it."""
    day_by_day(engine)
    answer = engine.recall(query)
    assert [hit.content for hit in answer] == [BLUE, ROLLBACK, TUESDAY]
    assert any(note.startswith("left out what matches: ") for note in answer.trace.notes)


@pytest.mark.parametrize("place", [":memory:", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_exclusions_alone_mean_the_same_in_every_store(place: str, tmp_path: Path) -> None:
    with closing(recollect.open(_address(place), **OPTIONS, home=tmp_path)) as other:
        day_by_day(other)
        assert texts(other, "-kubernetes") == [BLUE, ROLLBACK, TUESDAY]


def test_a_profile_that_nobody_can_ask_by_exclusions_alone_says_so(deploys: Engine) -> None:
    answer = deploys.recall("-kubernetes", profile="retry-ladder")
    assert not answer.hits
    assert "nothing but filters and exclusions: this profile has no leg for that" in answer.trace.notes


def test_a_flag_in_a_question_hides_nothing(engine: Engine) -> None:
    remembered(engine, "find -name matches the base name alone", TUESDAY)
    engine.upkeep()
    assert texts(engine, "how does find -name work")[0].startswith("find -name")
