"""Values that cannot be what was written, as damage leaves them: every call answers, or tells it by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_cases import damage, lose

import recollect
from recollect import Engine
from recollect.domain.query import Term
from recollect.domain.question import Filter

WINTER = "Winter notes about hiking in the hills"


def opened(path: Path) -> Engine:
    return recollect.open(path, embedder="fake", reranker="none", background=False, home=path.parent)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "s.db"
    with opened(path) as engine:
        engine.remember(WINTER, key="winter")
        engine.forget(engine.remember("The lamp in the hall is green").id)
        engine.change_settings({"keywordWeight": 1.5})
        engine.upkeep()
    return path


CALLS: tuple[Callable[[Engine], object], ...] = (
    lambda engine: engine.stats(),
    lambda engine: engine.list(),
    lambda engine: engine.recall("winter hiking"),
    lambda engine: engine.recall("winter hiking", profile="live-weights"),
    lambda engine: engine.remember("Summer is for swimming"),
    lambda engine: engine.capture("[MEMORY] The boat is blue"),
    lambda engine: engine.update(engine.list()[0].id, content="Winter notes about skiing"),
    lambda engine: engine.forget(engine.list()[0].id),
    lambda engine: engine.upkeep(),
    lambda engine: engine.consolidate(),
    lambda engine: engine.live_settings(),
    lambda engine: engine.change_settings({"keywordWeight": 1.2}),
    lambda engine: engine.embedding_progress(),
    lambda engine: engine.drop_vectors(),
    lambda engine: engine.store.care.graves(),
    lambda engine: engine.check(repair=True),
)
PLACES = [
    ("models", "done", "true"),
    ("models", "dimension", "true"),
    ("models", "saved", "true"),
    ("settings", "value", "true"),
    ("counters", "value", "true"),
    ("counters", "value", "name = 'documents'"),
    ("secrets", "value", "name = 'tombstones'"),
    ("namespaces", "memories", "true"),
]
SOUND = (("models", "dimension", "NULL"), ("models", "saved", "NULL"), ("settings", "value", "1.5"))
"""Values that may stand there."""


@pytest.mark.parametrize("left", ["NULL", "'x'", "x'00ff'", "1.5"])
@pytest.mark.parametrize(("table", "column", "where"), PLACES, ids=[" ".join(each) for each in PLACES])
def test_a_value_of_the_wrong_kind_ends_no_call_in_a_traceback(
    sound: Path, tmp_path: Path, table: str, column: str, where: str, left: str
) -> None:
    for number, call in enumerate(CALLS):
        path = tmp_path / f"s{number}.db"
        shutil.copy(sound, path)
        lose(path, table, column, where, left)
        with opened(path) as engine:
            if (table, column, left) not in SOUND:
                assert engine.check()
            try:
                call(engine)
            except recollect.RecollectError as error:
                assert isinstance(error, recollect.Corrupt | recollect.StoreUnavailable)
                assert "doctor" in error.hint or "backup" in error.hint


def upkeep_anew(engine: Engine) -> None:
    engine.drop_vectors()
    engine.upkeep()


def upkeep_of_more(engine: Engine) -> None:
    engine.remember("Summer is for swimming")
    engine.upkeep()


@pytest.mark.parametrize(
    ("table", "column", "left", "call"),
    [
        ("memories", "type", "x'00ff'", lambda engine: engine.stats()),
        ("memories", "project", "x'00ff'", lambda engine: engine.stats()),
        ("memories", "created_at", "'x'", lambda engine: engine.recall("winter", mode="semantic", before="2100-01-01")),
        ("memories", "content", "NULL", upkeep_anew),
        ("words", "word", "NULL", lambda engine: engine.store.text.similar("hikign", 0.3, 5)),
        ("texts", "tokens", "NULL", lambda engine: engine.store.text.match(Term("winter"), Filter(), 5)),
        ("texts", "content_tokens", "'x'", lambda engine: engine.store.text.match(Term("winter"), Filter(), 5)),
        ("vectors", "data", "NULL", upkeep_of_more),
        ("models", "model", str(2**62), lambda engine: engine.stats()),
    ],
)
def test_what_can_only_be_damage_is_told_as_such(
    sound: Path, tmp_path: Path, table: str, column: str, left: str, call: Callable[[Engine], object]
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(sound, path)
    lose(path, table, column, "true", left)
    with opened(path) as engine:
        with pytest.raises(recollect.Corrupt) as refused:
            call(engine)
        assert "doctor" in refused.value.hint
        assert engine.check()


def test_a_version_that_never_was_is_told_as_damage(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(sound, path)
    damage(path, "PRAGMA user_version = -2147483641")
    with pytest.raises(recollect.Corrupt, match="damaged"):
        opened(path)


def test_upkeep_names_the_next_step_and_a_repair_counts_anew(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(sound, path)
    lose(path, "models", "done", "true")
    with opened(path) as engine:
        with pytest.raises(recollect.Corrupt) as refused:
            engine.upkeep()
        assert "doctor" in refused.value.hint
        assert all(finding.repaired for finding in engine.check(repair=True))
        engine.upkeep()


def test_a_damaged_setting_is_found_and_can_be_set_anew(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(sound, path)
    lose(path, "settings", "value", "name = 'keywordWeight'", "'1.'")
    with opened(path) as engine:
        assert [finding.kind for finding in engine.check()] == ["setting"]
        with pytest.raises(recollect.Corrupt, match="keywordWeight") as refused:
            engine.live_settings()
        assert "set it" in refused.value.hint
        assert engine.change_settings({"keywordWeight": 1.2})["keywordWeight"] == 1.2
        assert engine.check() == []


def test_lost_counters_are_counted_anew(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(sound, path)
    lose(path, "counters", "name", "name = 'documents'", "'lost'")
    with opened(path) as engine:
        assert [hit.content for hit in engine.recall("winter hiking")] == [WINTER]
        engine.remember("Summer is for swimming")
        assert all(finding.repaired for finding in engine.check(repair=True))
        assert engine.check() == []
