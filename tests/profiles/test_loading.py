"""Profiles as files: what is right is taken as it stands, what is wrong is named with its line."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

import pytest

import recollect
from recollect import profiles
from recollect.domain.errors import InvalidInput, InvalidProfile

SOURCE = Path(recollect.__file__).parent


def write(folder: Path, text: str, name: str = "mine") -> str:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_seven_profiles_load() -> None:
    expected = "balanced importance-prior live-weights retry-ladder token-budget token-budget-lexical two-stage"
    assert profiles.builtin_names() == expected.split()
    for name in profiles.builtin_names():
        profile = profiles.load(name)
        assert profile.description and profile.legs and profile.select


@pytest.mark.covers("prior.weights", "two-stage.lists")
def test_the_weights_of_the_seeds() -> None:
    weights = {spec.name: spec.weight for spec in profiles.load("importance-prior").legs}
    assert weights == {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
    stage = profiles.load("two-stage")
    named = {spec.name: spec.weight for spec in (*stage.legs, *stage.signals) if spec.votes}
    assert named == {"lexical": 1.0, "similarity": 1.0, "recency": 0.6, "access": 0.4}


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("limit = 5\n[fusion]\nkind = 'rrf'\nkk = 60\n", 4, "kk"),
        ("[fusion]\nkind = 'rff'\n", 2, "rrf"),
        ("[legs.lexical]\nweight = 'much'\n", 2, "a number"),
        ("[legs.lexical]\nweight = 500\n", 2, "between 0 and 100"),
        ("[legs.lexcial]\nweight = 1\n", 1, "lexical"),
        ("[[priors]]\nkind = 'confidence'\n\n[[priors]]\nkind = 'decay'\nhalf_life_days = -3\n", 6, "between"),
        ("[fusion]\nties = 'sometimes'\n", 2, "'dense'"),
        ("limit = 0\n", 1, "between 1 and 200"),
        ("colour = 'red'\n", 1, "unknown"),
        ("[ladder]\nrungs = ['initial', 'jump']\n", 2, "jump"),
        ("[select]\nkind = 'top'\n", 1, "[[select]]"),
        ("[legs.lexical]\nlimit = true\n", 2, "whole number"),
        ("[settings.x]\nsets = 'legs.dense.weight'\n", 1, "minimum"),
    ],
)
def test_a_wrong_profile_is_refused_with_its_line_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, told: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidProfile) as caught:
        profiles.load(path)
    assert f"{path}:{line}:" in caught.value.message
    assert told in caught.value.message


def test_broken_toml_and_missing_files_are_typed_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidProfile, match="not valid TOML"):
        profiles.load(write(tmp_path, "limit = = 3"))
    with pytest.raises(InvalidInput, match="cannot be read"):
        profiles.load(str(tmp_path / "nowhere.toml"))
    with pytest.raises(InvalidInput, match="no profile 'balancd'"):
        profiles.load("balancd")
    for name in ("x" * 5000, "a\0b", "a/b\0.toml", f"{'x' * 5000}.toml"):
        with pytest.raises(InvalidInput) as refused:
            profiles.load(name, tmp_path)
        assert refused.value.field == "profile"


def test_a_profile_can_start_from_another(tmp_path: Path) -> None:
    text = "extends = 'two-stage'\nlimit = 7\n[legs.lexical]\nweight = 2.0\n"
    profile = profiles.load(write(tmp_path, text))
    assert profile.limit == 7
    lexical = next(spec for spec in profile.legs if spec.name == "lexical")
    assert lexical.weight == 2.0 and lexical.options["limit"] == 50
    assert profile.priors == profiles.load("two-stage").priors
    write(tmp_path, "extends = 'loop'", "loop")
    with pytest.raises(InvalidProfile, match="build on one another"):
        profiles.load("loop", tmp_path)


def test_users_profiles_have_names_and_come_before_built_in_ones(tmp_path: Path) -> None:
    write(tmp_path, "extends = 'balanced'\nlimit = 9\n", "mine")
    assert "mine" in profiles.names(tmp_path)
    assert profiles.load("mine", tmp_path).limit == 9


def test_a_path_may_be_a_path(tmp_path: Path) -> None:
    path = Path(write(tmp_path, "extends = 'retry-ladder'\nlimit = 1\n"))
    with recollect.open(":memory:", home=tmp_path, embedder="none", profile=path) as memory:
        for text in ("the ship leaves at noon", "the ship is red"):
            memory.remember(text)
        for answer in (
            memory.recall("ship"),
            memory.recall("ship", profile=path),
            memory.recall("ship", profile=path, options={"fusion.k": 10}),
        ):
            assert (answer.profile, len(answer)) == ("mine", 1)
        assert len(memory.recollect("which ship?", "s1", profile=path)[0].ids) == 1


@pytest.mark.parametrize("profile", ["balanced", "importance-prior", "live-weights", "retry-ladder", "token-budget"])
@pytest.mark.parametrize("mode", ["bm25", "semantic"])
def test_as_many_as_are_asked_for_are_returned_where_there_are_as_many(
    tmp_path: Path, profile: str, mode: Literal["bm25", "semantic"]
) -> None:
    """No leg may keep to a number of its own that is less than what was asked for."""
    with recollect.open(":memory:", home=tmp_path, embedder="fake", background=False) as memory:
        memory.remember_many(recollect.Draft(f"ship {number}") for number in range(120))
        memory.upkeep()
        memory.change_settings({"keywordWeight": 1.0})
        found = memory.recall(
            "ship", profile=profile, mode=mode, limit=110, budget_tokens=10_000,
            options={"select.floor.minimum": 0.0} if profile == "token-budget" else None,
        )  # fmt: skip
        assert len(found) == 110, found.dropped[:3]


@pytest.mark.covers("fusion.convex")
def test_another_kind_of_fusion_takes_along_only_what_it_knows(tmp_path: Path) -> None:
    """Who wants to compare fusions names the other one; nobody can take `k` out of a profile that is not theirs."""
    other = profiles.load("importance-prior", overrides={"fusion.alpha": 0.4, "fusion.kind": "convex"}).fusion
    assert (other.kind, dict(other.options)) == ("convex", {"alpha": 0.4})
    assert profiles.load("live-weights", overrides={"fusion.kind": "convex"}).fusion.options["equal"] == "first_seen"
    path = write(tmp_path, "extends = 'importance-prior'\n[fusion]\nkind = 'convex'\nnorm = 'minmax'\n")
    assert dict(profiles.load(path).fusion.options) == {"norm": "minmax"}
    assert dict(profiles.load(path, overrides={"fusion.kind": "rrf"}).fusion.options) == {}
    titled = write(tmp_path, "extends = 'balanced'\n[render]\nheading = '## Ours'\n", "titled")
    fenced = profiles.load(titled, overrides={"render.kind": "fenced"}).render
    assert (fenced.kind, dict(fenced.options)) == ("fenced", {"heading": "## Ours"})
    for asked in ({"fusion.k": 10, "fusion.kind": "convex"}, {"fusion.kind": "convex", "fusion.k": 10}):
        with pytest.raises(InvalidInput, match="unknown option 'k'"):
            profiles.load("importance-prior", overrides=asked)
    with pytest.raises(InvalidInput, match="unknown kind 'nope'"):
        profiles.load("importance-prior", overrides={"fusion.kind": "nope"})
    wrong = write(tmp_path, "extends = 'importance-prior'\n[fusion]\nkind = 'convex'\nk = 60\n", "wrong")
    with pytest.raises(InvalidProfile, match="unknown option 'k'"):
        profiles.load(wrong)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, "limit = 3")
    assert profiles.load(path).limit == 3
    write(tmp_path, "limit = 4")
    assert profiles.load(path).limit == 4


def test_single_options_are_replaced_for_one_request() -> None:
    profile = profiles.load("token-budget", overrides={"fusion.k": 10, "select.floor.minimum": 0.02, "limit": 2})
    assert profile.fusion.options["k"] == 10.0 and profile.limit == 2
    assert next(part for part in profile.select if part.kind == "floor").options["minimum"] == 0.02
    assert profiles.load("token-budget").fusion.options["k"] == 60.0
    for path, value in [
        ("fusion.kk", 1),
        ("select.nothing.minimum", 1),
        ("fusion.k", -1),
        ("nonsense", 1),
        ("select.floor", 3),
    ]:
        with pytest.raises(InvalidInput):
            profiles.load("token-budget", overrides={path: value})


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        pytest.param("legs.lexical.weight", 10**400, "legs.lexical.weight", id="a number beyond all"),
        ("legs.lexical.kind", [], "legs.lexical.kind"),
        ("fusion.kind", {"a": 1}, "fusion.kind"),
        ("priors", [1], "priors.0"),
        ("select", [{"kind": []}], "select.0.kind"),
        ("query", {"default": [2]}, "query.default"),
    ],
)
def test_whatever_a_request_gives_for_an_option_is_refused_where_it_stands(
    path: str, value: object, place: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        profiles.load("balanced", overrides={path: value})
    assert refused.value.field == place


def test_no_code_knows_a_profiles_name() -> None:
    """A profile is data: no comparison in the source may spell one."""
    names = set(profiles.builtin_names())
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.Match):
                spelt = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                assert not spelt & names, f"{path}:{node.lineno} compares with a profile's name"
