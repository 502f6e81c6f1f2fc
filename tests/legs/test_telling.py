"""Of a long prompt the words that tell most are asked for."""

from __future__ import annotations

import pytest

from recollect.domain.query import Term, units
from recollect.legs.telling import telling
from recollect.ports import TextIndex
from recollect.stages.parse import MAX_WORDS
from tests.stages.asking import ask
from tests.world import World

WORDS = [f"word{number:02}" for number in range(MAX_WORDS + 16)]
PROMPT = "About THE db, see Nowhere: " + " ".join(WORDS).replace("word79", "Word79")


@pytest.fixture
def index() -> TextIndex:
    world = World(embedder=None)
    world.remember("all", "about the db " + " ".join(WORDS))
    world.remember("most", "about the db " + " ".join(WORDS[:-10]))
    assert world.store.text is not None
    return world.store.text


def test_the_rarest_words_that_any_memory_holds_are_asked_for_wherever_they_stand(index: TextIndex) -> None:
    question = telling(index, ask(PROMPT, prose=True))
    assert question.query is not None
    asked = [unit.text for unit in units(question.query) if isinstance(unit, Term)]
    assert asked == [*WORDS[-10:], *WORDS[: MAX_WORDS - 10]]
    assert question.words[:MAX_WORDS] == tuple(asked), "what is asked for stands first"
    assert set(question.words) == {*WORDS, "see", "nowhere"}, "neither short words nor stop words"
    assert question.notes == (f"of {len(WORDS) + 2} words the {MAX_WORDS} rarest that memories hold were searched for",)


def test_any_other_question_stays_as_it_is(index: TextIndex) -> None:
    for question in (ask(PROMPT), ask("word01 word02", prose=True)):
        assert telling(index, question) is question
    unheard = ask(" ".join(f"unheard{number}" for number in range(MAX_WORDS + 1)), prose=True)
    assert unheard.cut and telling(index, unheard) is unheard
