"""A session's recollection: for whom it stands, and what may not stay in it."""

from __future__ import annotations

from typing import Any

import pytest

import recollect
from recollect import Scope, recollection
from recollect.encoders.fake import FakeEmbedder
from recollect.engine import Engine
from tests.engine.conftest import Open

SHOP, FARM = Scope(project="shop"), Scope(project="farm")


class OtherEmbedder(FakeEmbedder):
    """The same vectors under another name: nothing but the name tells that they must not be compared."""

    @property
    def id(self) -> str:
        return "other"


def ask(engine: Engine, scope: Scope) -> tuple[str, bool]:
    found, fresh = engine.recollect("deploy pipeline", "s1", scope=scope, profile="two-stage")
    return found.text, fresh


@pytest.mark.covers("two-stage.topic-gate")
def test_a_recollection_stands_only_where_the_same_memories_are_asked(opened: Open) -> None:
    engine = opened()
    engine.remember("the deploy pipeline of the shop", scope=SHOP)
    engine.remember("the deploy pipeline of the farm", scope=FARM)
    engine.upkeep()
    assert ask(engine, SHOP)[1] and not ask(engine, SHOP)[1]
    text, fresh = ask(engine, FARM)
    assert fresh and "farm" in text and "shop" not in text
    assert ask(opened("other.db"), FARM) == ("", True)


@pytest.mark.covers("two-stage.topic-gate", "more.model-change")
def test_the_prompts_of_two_models_are_never_compared(opened: Open) -> None:
    engine = opened()
    engine.remember("the deploy pipeline of the shop", scope=SHOP)
    engine.upkeep()
    assert ask(engine, SHOP)[1] and not ask(engine, SHOP)[1]
    assert ask(opened(embedder=OtherEmbedder()), SHOP)[1]


@pytest.mark.covers("more.forget", "prior.sensitive")
@pytest.mark.parametrize("change", [None, {"sensitive": True}, {"content": "the code was changed"}])
def test_what_is_forgotten_or_hidden_while_a_recollection_is_made_does_not_stay_in_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: dict[str, object] | None
) -> None:
    id = engine.remember("the vault code of the office is marmalade").id
    recall = engine.recall

    def overtaken(query: str, **asked: Any) -> recollect.Recall:
        answer = recall(query, **asked)
        if change is None:
            engine.forget(id)
        else:
            engine.update(id, **change)
        return answer

    monkeypatch.setattr(engine, "recall", overtaken)
    engine.recollect("vault code", "s1", force=True)
    assert list(engine.settings.recollections.iterdir()) == []


@pytest.mark.covers("more.forget")
def test_what_was_merged_is_forgotten_with_what_stands_and_leaves_the_recollections(engine: Engine) -> None:
    engine.remember("SQLite WAL is important")
    engine.recollect("SQLite WAL", "s1", force=True)
    kept = engine.remember("SQLite WAL mode matters", confidence=0.9, dedupe=False).id
    engine.consolidate()
    assert engine.forget(kept) == 2
    assert not engine.recall("SQLite WAL")
    assert list(engine.settings.recollections.iterdir()) == []


@pytest.mark.covers("prior.sensitive")
@pytest.mark.parametrize("many", [False, True])
def test_what_is_remembered_again_as_sensitive_leaves_the_recollections_that_quote_it(
    engine: Engine, many: bool
) -> None:
    text = "the vault code of the office is marmalade"
    engine.remember(text)
    engine.recollect("vault code", "s1", force=True)
    engine.remember(text, confidence=0.9)
    assert list(engine.settings.recollections.iterdir())
    if many:
        engine.remember_many([recollect.Draft(text, sensitive=True)])
    else:
        engine.remember(text, sensitive=True)
    assert list(engine.settings.recollections.iterdir()) == []


def test_a_home_that_cannot_be_written_costs_the_file_and_not_the_answer(opened: Open) -> None:
    engine = opened()
    engine.remember("the relay stands in the attic")
    engine.settings.recollections.parent.mkdir(parents=True, exist_ok=True)
    engine.settings.recollections.write_text("no folder")
    found, fresh = engine.recollect("where is the relay", "s1")
    assert fresh and "attic" in found.text


DAMAGED = {
    "a part": '{"session": "s2", "ids": ["a"',
    "zeros": "\0" * 64,
    "deep": "[" * 100_000,
    "another kind": '["session"]',
    "no ids": '{"session": "s2", "written_at": "", "ids": [["a"]], "text": "", "vector": []}',
    "no text": '{"session": "s2", "written_at": "", "ids": ["a"], "text": 5, "vector": []}',
    "no vector": '{"session": "s2", "written_at": "", "ids": ["a"], "text": "", "vector": [[1.0]]}',
}


@pytest.mark.covers("more.forget", "two-stage.top3")
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_no_recollection_and_keeps_nothing_from_being_forgotten(opened: Open, name: str) -> None:
    engine = opened()
    id = engine.remember("the deploy pipeline of the shop").id
    engine.recollect("deploy pipeline", "s1", profile="two-stage")
    folder = engine.settings.recollections
    recollection.path_of(folder, "s2").write_text(DAMAGED[name])
    assert recollection.read(folder, "s2") is None
    engine.forget(id)
    assert not list(folder.iterdir()), "it may have quoted what is forgotten"
    assert engine.recollect("deploy pipeline", "s2", profile="two-stage")[1]
