"""What a question wants, what a memory is, and the factor between them."""

from __future__ import annotations

import pytest
from asking import ask

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Memory
from recollect.stages.intent import FACTORS, factor, intents, kinds

pytestmark = pytest.mark.covers("ladder.intent")

PREFERENCES = [
    "what do I prefer?",
    "What does John like to drink",
    "which editor do I usually prefer",
    "my favourite colour",
    "What is Nate's favorite dish?",
    "my preferred shell",
    "can you recommend a restaurant",
    "Could you please suggest a book?",
    "any advice on hiking boots",
    "Do you have any suggestions?",
    "recommend me something to watch",
    "Suggest something",
    "suggest us restaurants",
    "tips for sleeping better",
    "what should I cook tonight",
]
FACTS = [
    "what's the version of sqlite",
    "What is the name of my cat?",
    "when did the deploy happen",
    "how many memories are there",
    "How much RAM did I upgrade my laptop to?",
    "did I renew the certificate",
    "where did I park",
    "who is the owner of the billing service",
    "which port does the daemon use",
    "have I ever been to Rome",
    "remind me what the ratio was",
]
NEITHER = [
    "",
    "sqlite wal checkpoint",
    "explain the retry ladder",
    "what does the output look like",
    "what does it look like",
    "why is the build slow",
    # other languages, some with words that look English
    "was ist meine Lieblingsfarbe",
    "wie heißt das Plugin für my favorite editor",
    "wann war das Deployment",
    "wie viele Tests gibt es",
    "welche Version von SQLite nutzen wir",
    "des suggestions pour le dîner",
    "ma couleur favorite",
    "quelle est la version de sqlite",
    "cuál es mi color favorito",
    "¿cuándo fue el despliegue?",
    "wat is mijn favoriete kleur",
    "qual è la versione di sqlite",
    "私の好きな色は何ですか",
    "какая версия sqlite",
]


@pytest.mark.parametrize("text", PREFERENCES)
def test_preference_questions(text: str) -> None:
    assert "preference" in intents(text)


@pytest.mark.parametrize("text", FACTS)
def test_fact_questions(text: str) -> None:
    assert intents(text) == ("fact",)


@pytest.mark.parametrize("text", NEITHER)
def test_other_questions_and_other_languages_have_no_intent(text: str) -> None:
    assert intents(text) == ()


def test_a_question_can_have_both() -> None:
    assert intents("how many of my favorite bands did I see") == ("preference", "fact")


def memory(content: str, type: str = "fact", tags: tuple[str, ...] = ()) -> Memory:
    return Memory("m1", content, type, tags)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (memory("Port 4777"), {"short"}),
        (memory("x" * 240), {"short"}),
        (memory("x" * 241), set()),
        (memory("x" * 1199), set()),
        (memory("x" * 1200), {"prose"}),
        (memory("Dark mode", "preference"), {"preference", "short"}),
        (memory("I really prefer tabs", "lesson"), {"preference", "short"}),
        (memory("User's favourite shell is zsh"), {"preference", "short"}),
        (memory("x" * 240 + " I prefer tabs"), set()),
        (memory("user: hi", "episode"), {"chunk"}),
        (memory("page " * 400, "document"), {"chunk", "prose"}),
        (memory("## Weekly summary\nall fine"), {"rollup"}),
        (memory("All fine", "summary"), {"rollup"}),
        (memory("All fine", tags=("digest",)), {"rollup"}),
        (memory("Summary of May. " * 100), {"rollup", "prose"}),
        (memory("The summary is late"), {"short"}),
    ],
)
def test_kinds(given: Memory, expected: set[str]) -> None:
    assert kinds(given) == expected


def test_factors_boost_damp_and_multiply() -> None:
    assert factor(("preference",), {"preference"}) > 1.0 > factor(("preference",), {"chunk"})
    assert factor(("fact",), {"short"}) > 1.0 > factor(("fact",), {"prose"}) > factor(("fact",), {"rollup"})
    assert factor(("fact",), {"prose", "rollup"}) == pytest.approx(0.45 * 0.75) == pytest.approx(0.3375)
    both = factor(("preference", "fact"), {"preference", "short"})
    assert both == pytest.approx(FACTORS["preference"]["preference"] * FACTORS["fact"]["short"])
    assert factor((), {"prose"}) == factor(("fact",), set()) == factor(("fact",), {"chunk"}) == 1.0


def test_factors_can_be_changed_by_a_profile() -> None:
    changed = {"fact": {"rollup": 0.5}}
    assert factor(("fact",), {"rollup", "prose"}, factors=changed) == pytest.approx(0.5 * 0.75)
    for wrong in ({"facts": {"rollup": 0.5}}, {"fact": {"roll-up": 0.5}}):
        with pytest.raises(InvalidInput) as caught:
            factor(("fact",), {"rollup"}, factors=wrong)
        assert "use one of" in caught.value.hint


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert intents("the " * 2000 + "how many tests") == ()
    assert intents("how many tests " + "the " * 2000) == ("fact",)
    assert ask("x " * 5000 + "how many of the tests", intent=True).intents == ()
