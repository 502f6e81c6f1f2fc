"""profiles, settings and models: how it ranks, and with what."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.doors.cli import config_file
from recollect.encoders import fetch as fetching
from recollect.encoders.catalogue import BERT_MINI, EMBEDDER_CHAIN, CatalogueModel

SEVEN = {
    "two-stage", "importance-prior", "live-weights", "retry-ladder", "token-budget", "token-budget-lexical", "balanced",
}  # fmt: skip


def test_damaged_profiles_are_all_told_and_hide_no_other(cli: Any, home: Path) -> None:
    (home / "profiles").mkdir(parents=True)
    for name in ("one", "two"):
        (home / "profiles" / f"{name}.toml").write_text("limit = 'many'\n")
    listed = cli("profiles", "list")
    assert listed.code == 0 and "balanced\t" in listed.out
    assert "one.toml:1: limit" in listed.err and "two.toml:1: limit" in listed.err
    checked = cli("profiles", "check")
    assert checked.code == 1 and "balanced\tlexical" in checked.out
    assert "one.toml:1: limit" in checked.err and "two.toml:1: limit" in checked.err
    ran = cli("profiles", "check", "--json")
    verdicts = {one["profile"]: one for one in ran.document["profiles"]}
    assert ran.code == 1 and verdicts["balanced"]["valid"] and not verdicts["two"]["valid"]
    assert "two.toml:1: limit" in verdicts["two"]["message"]
    assert cli("settings", "list").code == 0
    assert cli("settings", "set", "keywordWeight", "0.5").code == 0


def test_profiles_are_listed_with_the_users_own(cli: Any, home: Path) -> None:
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "mine.toml").write_text('extends = "balanced"\ndescription = "my own"\nlimit = 7\n')
    found = {one["name"]: one for one in cli("profiles", "list", "--json").document["profiles"]}
    assert set(found) == {*SEVEN, "mine"}
    assert found["mine"]["description"] == "my own"
    assert "*\tbalanced\t" in cli("profiles", "list").out
    assert cli("recall", "x", "--profile", "mine", "--json").document["profile"] == "mine"


def test_show_gives_a_file_that_can_be_used(cli: Any, tmp_path: Path) -> None:
    text = cli("profiles", "show", "retry-ladder").out
    own = tmp_path / "own.toml"
    own.write_text(text, encoding="utf-8")
    assert cli("profiles", "check", str(own)).code == 0
    assert cli("profiles", "show", "retry-ladder", "--json").document["limit"] == tomllib.loads(text)["limit"]


@pytest.mark.covers("fusion.reach")
def test_check_tells_which_lists_can_reach_the_top(cli: Any) -> None:
    [verdict] = cli("profiles", "check", "importance-prior", "--json").document["profiles"]
    assert verdict["reach"]["lexical"]["reaches"] is True
    assert verdict["reach"]["graph"] == {"weight": 0.35, "alone": "0.00574", "bar": "0.01429", "reaches": False}
    rows = [line.split("\t") for line in cli("profiles", "check").out.splitlines()]
    assert {row[0] for row in rows[1:]} == SEVEN
    assert ["importance-prior", "graph", "0.35", "0.00574", "0.01429", "no"] in rows


def test_check_names_the_line_of_a_wrong_profile(cli: Any, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('description = "x"\n\n[fusion]\nkind = "rrf"\nk = "many"\n')
    ran = cli("profiles", "check", str(wrong), "--json")
    assert (ran.code, ran.document["error"]["type"]) == (1, "InvalidProfile")
    assert f"{wrong}:5" in ran.document["error"]["message"]


def test_diff_names_what_differs(cli: Any) -> None:
    found = cli("profiles", "diff", "token-budget", "two-stage", "--json").document["differences"]
    assert found["limit"] == {"first": 5, "second": 3}
    assert found["priors"] == {"first": "confidence ▸ decay", "second": "promote"}
    assert "fusion.k" not in found
    lines = cli("profiles", "diff", "token-budget", "two-stage").out.splitlines()
    assert "-limit = 5" in lines and "+limit = 3" in lines
    assert cli("profiles", "diff", "balanced", "balanced").out == ""


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("[spelling]\nmost = 2", "spelling.most"),
        ("[confidence]\nkeep_unasked = 0.7", "confidence.keep_unasked"),
        ('[render]\nkind = "fenced"', "render"),
        ('[render]\nheading = "## Notes"', "render.heading"),
        ('[settings.loud]\nsets = "legs.lexical.weight"\nminimum = 0\nmaximum = 1', "settings.loud"),
    ],
)
def test_diff_tells_every_table_apart(cli: Any, tmp_path: Path, table: str, name: str) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(f'extends = "balanced"\n{table}\n')
    assert list(cli("profiles", "diff", "balanced", str(mine), "--json").document["differences"]) == [name]


@pytest.mark.covers("live.settings")
def test_live_settings_are_kept_and_used(cli: Any) -> None:
    cli("remember", "the crane lifts forty tons")
    asked = ("recall", "crane", "--profile", "live-weights", "--json")
    assert cli(*asked).document["trace"]["legs"]["lexical"]["skipped"] == "weight 0"
    assert cli("settings", "get", "keywordWeight", "--json").document == {"name": "keywordWeight", "value": 0.0}
    assert cli("settings", "set", "keywordWeight", "2", "--json").document == {"name": "keywordWeight", "value": 2.0}
    assert cli("settings", "get", "keywordWeight").out == "2\n"
    assert cli(*asked).document["trace"]["legs"]["lexical"]["hits"] == 1
    assert cli("settings", "list", "--json").document["live"] == {"keywordWeight": 2.0, "semanticWeight": 1.0}
    wrong = cli("settings", "set", "keywordWeight", "7", "--json")
    assert (wrong.code, wrong.document["error"]["field"]) == (2, "keywordWeight")


def test_settings_are_listed_also_where_the_store_cannot_be_opened(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set wrong is found where it is set."""
    other = tmp_path / "other.txt"
    other.write_text("no store at all " * 400)
    listed = cli("--store", str(other), "settings", "list")
    assert (listed.code, "keywordWeight\t0\tstore" in listed.out, "profile\tbalanced" in listed.out) == (0, True, True)
    assert "as the profiles have them" in listed.err
    assert cli("--store", str(other), "settings", "get", "profile").out == "balanced\n"
    assert cli("--store", str(other), "settings", "get", "keywordWeight").code == 1
    cli("remember", "the crane lifts forty tons")
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "nosuch")
    assert cli("settings", "list", "--json").document["configuration"]["embedder"] == "nosuch"


def test_listing_settings_makes_no_store(cli: Any, home: Path) -> None:
    assert cli("settings", "list", "--json").document["live"] == {"keywordWeight": 0.0, "semanticWeight": 1.0}
    assert cli("settings", "get", "keywordWeight").out == "0\n"
    assert list(home.glob("*.db*")) == []


def test_settings_in_the_configuration(cli: Any, home: Path) -> None:
    assert cli("settings", "set", "profile", "two-stage").code == 0
    assert tomllib.loads((home / "config.toml").read_text()) == {"profile": "two-stage"}
    assert cli("recall", "x", "--json").document["profile"] == "two-stage"
    assert cli("settings", "set", "profile", "nosuch").code == 2
    assert cli("settings", "set", "embedder_key", "very-secret").code == 0
    assert "very-secret" not in cli("settings", "list").out + cli("settings", "get", "embedder_key", "--json").out
    cli("settings", "set", "profile", "")
    assert cli("settings", "get", "profile").out == "balanced\n"


WRONG = {
    "consolidate_hours": ("abc", "-1", "nan", "inf", "1e9"),
    "topic_gate": ("maybe", "2"),
    "profile": ("nosuch", "nosuch.toml"),
    "recollect_profile": ("nosuch",),
    "recollect_limit": ("0", "51", "2.5", "nan", "three"),
    "episodes_profile": ("nosuch",),
    "embedder": ("nosuch", "ftp://host/v1", "https://me:secret@host/v1", "minilm-l6"),
    "embedder_model": ("two\nlines", " "),
    "embedder_key": ("with blanks in it", "schlüssel"),
    "reranker": ("nosuch", "judge", "arctic-embed-s"),
    "reranker_model": ("two\nlines",),
    "reranker_key": ("with blanks in it",),
    "language_model": ("localhost:8080", "ftp://host"),
    "language_model_name": ("two\nlines",),
    "language_model_key": ("with blanks in it",),
    "extract_concepts": ("maybe", "true"),
    "store": ("postgresql://host/db?pool=many", "mysql://host/db", "."),
    "models": ("https://host/models", "pyproject.toml"),
    "qdrant": ("ftp://host", "https://me:secret@host", "pyproject.toml"),
    "qdrant_key": ("with blanks in it",),
    "qdrant_collection": ("two\nlines", "a/b", "x" * 65),
    "home": ("elsewhere",),
    "keywordWeight": ("7", "abc", "true", "nan"),
    "semanticWeight": ("-1",),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_value_that_is_not_allowed_is_refused_at_once(cli: Any, home: Path, name: str, value: str) -> None:
    before = cli("settings", "list", "--json").document
    ran = cli("settings", "set", "--json", "--", name, value)
    assert ran.code == (1 if value == "minilm-l6" else 2), ran
    error = ran.document["error"]
    assert error["hint"]
    assert value == "minilm-l6" or error["field"] == name
    assert not (home / "config.toml").exists()
    assert cli("settings", "list", "--json").document == before


def test_every_setting_is_tried_with_a_wrong_value(cli: Any) -> None:
    listed = cli("settings", "list", "--json").document
    assert set(WRONG) == {*listed["live"], *listed["configuration"]}


def test_refusals_name_what_is_allowed(cli: Any) -> None:
    def hint(name: str, value: str) -> str:
        return cli("settings", "set", "--json", "--", name, value).document["error"]["hint"]

    assert "number from 0 to 8760" in hint("consolidate_hours", "abc")
    assert "whole number from 1 to 50" in hint("recollect_limit", "2.5")
    assert "true or false" in hint("topic_gate", "maybe")
    assert "two-stage" in hint("recollect_profile", "nosuch")
    assert "arctic-embed-s" in hint("embedder", "nosuch")
    assert "https://" in hint("language_model", "localhost:8080")
    assert "between 0 and 5" in hint("keywordWeight", "abc")
    assert ":memory:" in hint("store", "mysql://host/db")


def test_allowed_values_are_written_and_read_again(cli: Any, home: Path, tmp_path: Path) -> None:
    good = {"consolidate_hours": "24", "topic_gate": "false", "recollect_profile": "two-stage", "embedder": "fake",
            "reranker": "none", "language_model": "http://127.0.0.1:8080/v1", "language_model_name": "some/model",
            "extract_concepts": "true", "embedder_model": "name", "reranker_key": "abc-123",
            "models": str(tmp_path)}  # fmt: skip
    for name, value in good.items():
        assert cli("settings", "set", name, value).code == 0, name
    assert tomllib.loads((home / "config.toml").read_text()) == good
    listed = cli("settings", "list", "--json").document["configuration"]
    assert (listed["consolidate_hours"], listed["topic_gate"]) == (24.0, False)


def test_a_relative_store_lies_where_it_was_named(cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    monkeypatch.chdir(home)
    assert cli("settings", "set", "store", "mine.db").code == 0
    assert tomllib.loads((home / "config.toml").read_text()) == {"store": str(home / "mine.db")}


def test_a_server_may_be_the_store_and_its_password_is_not_shown(cli: Any, home: Path) -> None:
    address = "postgresql://app:s3cret@db.example/memories"
    told = cli("settings", "set", "store", address)
    assert (told.code, "s3cret" in told.out + told.err) == (0, False)
    assert tomllib.loads((home / "config.toml").read_text()) == {"store": address}
    for wrong in ("mysql://app:s3cret@db.example/x", f"{address}?pool=many"):
        refused = cli("settings", "set", "store", wrong)
        assert (refused.code, "s3cret" in refused.out + refused.err) == (2, False)


def test_nothing_takes_a_live_setting_back_to_its_default(cli: Any) -> None:
    assert cli("settings", "set", "keywordWeight", "2").code == 0
    assert cli("settings", "set", "keywordWeight", "", "--json").document == {"name": "keywordWeight", "value": 0.0}
    assert cli("settings", "get", "keywordWeight").out == "0\n"


def test_the_configuration_keeps_comments_and_order(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\nprofile = "balanced"  # for now\nembedder = "fake"')
    config_file.change(path, {"profile": 'a "quoted" \\ name', "reranker": "none"})
    text = path.read_text()
    assert text.startswith("# mine\n")
    assert tomllib.loads(text) == {"profile": 'a "quoted" \\ name', "embedder": "fake", "reranker": "none"}
    config_file.change(path, {"embedder": None})
    assert tomllib.loads(path.read_text()) == {"profile": 'a "quoted" \\ name', "reranker": "none"}
    assert path.stat().st_mode & 0o077 == 0


def test_a_configuration_that_would_break_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('profile = """\nbalanced"""\n')
    with pytest.raises(InvalidInput):
        config_file.change(path, {"profile": "two-stage"})
    assert path.read_text() == 'profile = """\nbalanced"""\n'


def test_models_list(cli: Any) -> None:
    document = cli("models", "list", "--json").document
    found = {one["name"]: one for one in document["models"]}
    assert found["arctic-embed-s"]["role"] == "embedder"
    assert found["bert-mini-reranker"]["role"] == "reranker"
    assert not any(one["installed"] for one in found.values())
    assert "arctic-embed-s" in cli("models", "list").out


def test_models_use_writes_the_configuration(cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_EMBEDDER")
    ran = cli("models", "use", "http://localhost:9/v1", "--model", "m", "--key", "k", "--json")
    assert ran.document["role"] == "embedder"
    config = tomllib.loads((home / "config.toml").read_text())
    assert config == {"embedder": "http://localhost:9/v1", "embedder_model": "m", "embedder_key": "k"}
    assert cli("models", "use", "none").code == 0
    assert tomllib.loads((home / "config.toml").read_text()) == {"embedder": "none"}
    assert cli("models", "use", "none", "--as", "reranker").code == 0
    assert tomllib.loads((home / "config.toml").read_text()) == {"embedder": "none", "reranker": "none"}


def test_models_use_refuses_what_is_not_there(cli: Any, home: Path) -> None:
    missing = cli("models", "use", "minilm-l6", "--json")
    assert (missing.code, missing.document["error"]["type"]) == (1, "ModelUnavailable")
    assert "models fetch minilm-l6" in missing.document["error"]["hint"]
    assert cli("models", "use", "nosuch-model").code == 2
    assert cli("models", "use", "minilm-l6", "--as", "reranker").code == 2
    assert not (home / "config.toml").exists()


def test_models_fetch_takes_the_next_of_the_chain(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def fake(model: CatalogueModel, models_dir: Path, progress: Any = None) -> Path:
        tried.append(model.name)
        if len(tried) == 1:
            raise ModelUnavailable("the upload vanished", "try another")
        return models_dir / model.folder

    monkeypatch.setattr(fetching, "fetch", fake)
    ran = cli("models", "fetch", "--json")
    assert [one["name"] for one in ran.document["models"]] == [EMBEDDER_CHAIN[1].name]
    assert tried == [one.name for one in EMBEDDER_CHAIN[:2]]
    assert "the upload vanished" in ran.err
    tried.clear()
    named = cli("models", "fetch", EMBEDDER_CHAIN[0].name, "--json")
    assert (named.code, named.document["error"]["type"]) == (1, "ModelUnavailable")
    assert "recollect upkeep" not in cli("models", "fetch").err, "there is no store yet"
    cli("remember", "written before there was a model", "--no-wait")
    assert "recollect upkeep" in cli("models", "fetch").err
    assert "recollect upkeep" not in cli("models", "fetch", BERT_MINI.name).err


def test_models_test_compares_like_with_unlike(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli("models", "test", "fake", "--json").document
    assert (result["model"], result["dimension"]) == ("fake-64", 64)
    assert result["sound"] is (result["like"] > result["unlike"])
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    assert cli("models", "test", "--json").document["error"]["type"] == "ModelUnavailable"


def test_what_is_switched_off_is_not_told_to_be_fetched(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_EMBEDDER")
    assert "embedded by" not in cli("models", "use", "none").err
    tested, told = cli("models", "test"), cli("doctor").out
    assert (tested.code, "recollect models use default" in tested.err, "recollect models use default" in told) == (
        1,
        True,
        True,
    )
    assert "fetch" not in tested.err + told


def test_the_home_folder_is_not_set_by_a_setting_that_lies_in_it(cli: Any) -> None:
    ran = cli("settings", "set", "home", "/elsewhere", "--json")
    assert (ran.code, ran.document["error"]["hint"]) == (2, "set RECOLLECT_HOME")
    assert "home" in cli("settings", "list").out
