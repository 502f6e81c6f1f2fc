"""An embedder of the caller's own: what it answers is held to what every embedder's answer must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import recollect
from recollect.encoders.fake import FakeEmbedder
from recollect.engine import Engine
from tests.engine.conftest import Open

NOTES = ("Tea is served at five", "The ship leaves at noon")
ASKED = "when does the ship leave?"


class Bent:
    """A sound model whose rows somebody has bent."""

    def __init__(self, bend: Callable[[Any], Any]) -> None:
        self._sound = FakeEmbedder(dimension=32)
        self.bend = bend
        self.id, self.dimension, self.max_tokens = "bent-1", 32, 256

    def count_tokens(self, text: str) -> int:
        return self._sound.count_tokens(text)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self.bend(self._sound.embed_documents(texts))

    def embed_query(self, text: str) -> Any:
        bent = self.bend(self._sound.embed_query(text)[None])
        return None if bent is None else bent[0]


def cosines(memory: Engine) -> list[float]:
    for note in NOTES:
        memory.remember(note)
    assert memory.upkeep().embedded.embedded == len(NOTES)
    return [one.raw for hit in memory.recall(ASKED) for one in hit.contributions if one.list == "similarity"]


@pytest.mark.parametrize(
    "bend",
    [lambda rows: rows * 7, lambda rows: rows * 1e-3, lambda rows: rows.astype(np.float64), lambda rows: rows.tolist()],
    ids=["long", "short", "double", "lists"],
)
def test_rows_of_any_length_give_the_cosines_of_rows_of_length_one(opened: Open, bend: Callable[[Any], Any]) -> None:
    sound = cosines(opened("sound.db", embedder=Bent(lambda rows: rows)))
    assert sound and max(map(abs, sound)) <= 1.0 + 1e-6
    assert cosines(opened("bent.db", embedder=Bent(bend))) == pytest.approx(sound, abs=1e-6)


@pytest.mark.covers("two-stage.null-vector")
@pytest.mark.parametrize("bend", [np.zeros_like, lambda _: None, lambda rows: rows[:, 1:]], ids=["zero", "none", "dim"])
def test_a_question_without_a_vector_has_no_list_of_cosines(opened: Open, bend: Callable[[Any], Any]) -> None:
    embedder = Bent(lambda rows: rows)
    memory = opened(embedder=embedder)
    for note in NOTES:
        memory.remember(note)
    memory.upkeep()
    embedder.bend = bend
    answer = memory.recall(ASKED)
    assert [hit.content for hit in answer] == [NOTES[1]]
    assert {one.list for one in answer[0].contributions} == {"lexical"}
    assert any("bent-1 gave" in note for note in answer.trace.notes)


def test_a_memory_without_a_vector_is_not_told_as_embedded(opened: Open) -> None:
    memory = opened(embedder=Bent(np.zeros_like))
    memory.remember(NOTES[0])
    assert memory.upkeep().embedded.embedded == 0


def test_what_cannot_embed_is_refused_before_a_file_is_made(tmp_path: Any) -> None:
    class Half:
        id, dimension, max_tokens = "half-1", 4, 16

        def embed_documents(self, texts: Sequence[str]) -> Any:
            return np.ones((len(texts), 4))

    half: Any = Half()
    with pytest.raises(recollect.InvalidInput, match="count_tokens, embed_query") as refused:
        recollect.open(tmp_path / "a.db", embedder=half, home=tmp_path)
    assert refused.value.field == "embedder"
    assert not (tmp_path / "a.db").exists()
