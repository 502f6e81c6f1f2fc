"""The demo: its data, what it shows, and that every claim it makes about a profile is true."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.changes import AddLink, Put
from recollect.domain.memory import KNOWN_TYPES
from recollect.doors.demo.data import NOW, changes
from recollect.doors.demo.scenes import NEXT, SCENES

COLUMNS = 100


def test_the_data_is_varied_and_consistent() -> None:
    memories = {change.memory.id: change.memory for change in changes() if isinstance(change, Put)}
    links = [change.link for change in changes() if isinstance(change, AddLink)]
    assert len(memories) == sum(isinstance(change, Put) for change in changes()) >= 60
    assert {one.type for one in memories.values()} == set(KNOWN_TYPES)
    assert len({one.content for one in memories.values()}) == len(memories)
    assert all(one.created_at <= one.accessed_at <= NOW for one in memories.values())
    assert (NOW - min(one.created_at for one in memories.values())).days >= 180
    assert len({one.importance for one in memories.values()}) > 4
    assert {"supersedes", "resolved-by", "part-of", "see-also"} == {one.type for one in links}
    assert all(one.source in memories and one.target in memories for one in links)
    assert all(scene.wanted in {"", *memories} for scene in SCENES)


def test_json_holds_every_scene(cli: Any) -> None:
    ran = cli("demo", "--json")
    assert ran.code == 0
    document = ran.document
    assert [one["name"] for one in document["scenes"]] == [scene.name for scene in SCENES]
    assert document["memories"] == 62
    assert all(one["answers"] and "hits" in one["answers"][0] for one in document["scenes"])
    assert len(document["next"]) == 3


def test_the_demo_always_takes_place_on_the_same_day(cli: Any) -> None:
    document = cli("demo", "--json").document
    scene = next(one for one in document["scenes"] if one["name"] == "old but still true")
    answer = next(one for one in scene["answers"] if one["contender"] == "token-budget")
    decay = next(one for one in answer["hits"][0]["adjustments"] if one["prior"] == "decay")
    age_days = (NOW - datetime.fromisoformat(answer["hits"][0]["created_at"])).total_seconds() / 86400
    assert decay["after"] == pytest.approx(decay["before"] * 0.5 ** (age_days / 30))


def test_the_output_is_stable_and_fits_a_hundred_columns(cli: Any) -> None:
    first, second = cli("demo", terminal=True), cli("demo", terminal=True)

    def scenes(text: str) -> list[str]:
        lines = text.splitlines()
        start = next(place for place, line in enumerate(lines) if SCENES[0].query in line)
        end = next(place for place, line in enumerate(lines) if "the demo took" in line)
        return lines[start:end]

    assert scenes(first.out) == scenes(second.out)
    plain = cli("demo").out
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= COLUMNS
    assert all(scene.query in plain and scene.name.capitalize() in plain for scene in SCENES)
    assert all(command in plain for command, _ in NEXT)


def test_the_points_fit_one_line() -> None:
    assert [scene.point for scene in SCENES if len(scene.point) > COLUMNS - 4] == []


def test_the_things_to_try_next_work(cli: Any) -> None:
    import shlex

    for command, _ in NEXT:
        assert cli(*shlex.split(command)[1:]).code == 0


def test_without_a_model_it_says_so_and_still_shows(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    ran = cli("demo")
    assert "recollect models fetch" in ran.out
    assert [scene.name.capitalize() for scene in SCENES if scene.name.capitalize() not in ran.out] == ["A paraphrase"]


def test_the_store_is_kept_on_request_only(cli: Any, tmp_path: Path, home: Path) -> None:
    kept = tmp_path / "kept.db"
    assert cli("demo", "--keep", str(kept), "--json").document["store"] == str(kept)
    assert cli("--store", str(kept), "stats", "--json").document["memories"] == 62
    assert cli("demo", "--keep", str(kept)).code == 1
    cli("demo", "--quiet")
    assert not (home / "memories.db").exists()


@pytest.mark.model
def test_every_claim_about_a_profile_is_true(
    home: Path, process: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    monkeypatch.setenv("RECOLLECT_MODELS", str(models_folder()))
    document = json.loads(process("demo", "--json").stdout)
    assert document["embedder"] is not None, "run `recollect models fetch`"
    ranks = {
        scene["name"]: {
            answer["contender"]: next((hit["rank"] for hit in answer["hits"] if hit["id"] == scene["wanted"]), None)
            for answer in scene["answers"]
        }
        for scene in document["scenes"]
    }
    exact = ranks["an exact term"]
    assert exact["live-weights, by meaning alone"] != 1
    assert exact["live-weights, keywordWeight 2"] == exact["balanced"] == 1
    assert ranks["a paraphrase"] == {"token-budget-lexical": None, "live-weights": 1, "balanced": 1}
    typos = ranks["typing mistakes"]
    assert (typos["importance-prior, by words alone"], typos["retry-ladder, by words alone"]) == (None, 1)
    assert typos["balanced"] in (1, 2), "words that look alike have a say, meaning has one too"
    old = ranks["old but still true"]
    assert (old["token-budget"], old["balanced"]) == (None, 1)
    assert old["two-stage"] not in (None, 1)
    assert set(ranks["superseded"].values()) == {1}
    assert ranks["a preference"] == {"importance-prior": 2, "retry-ladder": 1}
    budget = document["scenes"][-1]["answers"][0]
    assert any(hit["excerpt"] for hit in budget["hits"])
    assert any(one["stage"] == "budget" for one in budget["dropped"])


def models_folder() -> Path:
    """Where the fetched models are, by the settings of whoever runs the tests."""
    from recollect import settings

    return settings.load(ORIGINAL).models


ORIGINAL = dict(os.environ)


def test_who_cannot_type_recollect_yet_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `make demo` the command is in an environment that no shell has entered."""
    from recollect.doors.demo import drawing

    own = tmp_path / "my shop" / ".venv" / "bin" / "recollect"
    own.parent.mkdir(parents=True)
    own.touch(0o755)
    monkeypatch.chdir(tmp_path / "my shop")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert drawing.to_do_first(str(own)) == f"alias recollect='{own}'"
    (own.parent / "activate").touch()
    assert drawing.to_do_first(str(own)) == ". .venv/bin/activate"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert drawing.to_do_first(str(own)) == f". '{own.parent}/activate'"
    monkeypatch.setenv("PATH", str(own.parent))
    assert drawing.to_do_first(str(own)) == ""
