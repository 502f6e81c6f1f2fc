"""Slips of the finger as pure functions: what may be one, what was meant, and the question read so."""

from __future__ import annotations

import pytest
from asking import ask
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.query import units
from recollect.domain.trigrams import jaccard, trigrams
from recollect.stages.parse import MAX_WORDS, unparse
from recollect.stages.spelling import folded, least_likeness, most_likely, respelt, slip, suspects

WORDS = st.text("abcdeé", min_size=4, max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "Where did Carolien go?": ("carolien",),
        "Müllers Haus, MÜLLERS haus": ("mullers", "haus"),
        "the funraiser's date": ("funraiser", "date"),
        "the NASA API of getUser in app.config.ts at localhost:8000/users": (),
        "foo_bar b2b user@example.com --verbose x=value call() C++ well-knwon": (),
        'say "funraiser" exactly': (),
        "funraiser AND roof": (),
        "tag:shop funraiser": (),
        "the and which": (),
        "最近の会議 について": (),
        "где находитса Москва": ("где", "находитса", "москва"),
        "abc abcd": ("abcd",),
    }.items(),
)
def test_only_ordinary_words_of_plain_questions_may_be_misspelt(text: str, expected: tuple[str, ...]) -> None:
    assert suspects(ask(text), 3 if "где" in text else 4) == expected


def test_a_long_prompt_costs_no_more_than_the_words_that_are_searched_for() -> None:
    made = "".join(f" {chr(97 + n // 26)}{chr(97 + n % 26)}word" for n in range(200))
    assert len(suspects(ask(made), 4)) == MAX_WORDS


@pytest.mark.parametrize(
    ("written", "meant", "expected"),
    [
        ("moive", "movie", 1.0),
        ("movei", "movie", 1.0),
        ("movi", "movie", 1.0),
        ("movvie", "movie", 1.0),
        ("moviee", "movie", 1.0),
        ("mobie", "movie", 0.1),
        ("movise", "movie", 0.1),
        ("moviex", "movie", 0.1),
        ("omvie", "movie", 0.1),
        ("ovie", "movie", 0.1),
        ("novie", "movie", 0.01),
        ("amovie", "movie", 0.01),
        ("mvoei", "movie", 0.0),
        ("moovvie", "movie", 0.0),
        ("vomie", "movie", 0.0),
        ("abcd", "dcba", 0.0),
        ("tool", "tolo", 1.0),
    ],
)
def test_a_slip_exchanges_drops_doubles_adds_or_replaces_one_letter(written: str, meant: str, expected: float) -> None:
    assert slip(written, meant) == pytest.approx(expected)


def one_slip_away(word: str, more_letters: str = "x") -> set[str]:
    """Every word of these letters that one slip makes of this one, by trying."""
    pairs = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = sorted({*word, *more_letters})
    made = {before + after[1:] for before, after in pairs if after}
    made |= {before + after[1] + after[0] + after[2:] for before, after in pairs if len(after) > 1}
    made |= {before + letter + after[1:] for before, after in pairs if after for letter in letters}
    made |= {before + letter + after for before, after in pairs for letter in letters}
    return made - {word}


@pytest.mark.covers("ladder.fuzzy")
@pytest.mark.parametrize(
    ("first", "second", "similarity"),
    [
        ("checkpoint", "checkpoint", 1.0),
        ("kubernets", "kubernetes", 7 / 12),
        ("wal", "wall", 2 / 5),
        ("wal", "xyz", 0.0),
        ("a", "ab", 0.0),
        ("", "", 0.0),
        ("", "wal", 0.0),
    ],
)
def test_words_are_alike_by_the_trigrams_they_share(first: str, second: str, similarity: float) -> None:
    assert jaccard(trigrams(first), trigrams(second)) == pytest.approx(similarity)


@settings(deadline=None)
@given(WORDS.map(folded))
def test_every_single_slip_is_one_and_looks_alike_enough_to_be_listed(word: str) -> None:
    for written in one_slip_away(word):
        assert slip(written, word) > 0
        likeness = jaccard(trigrams(written), trigrams(word))
        if likeness > 0:  # four letters, the middle two exchanged, have no trigram in common
            assert likeness >= least_likeness(written)


@settings(deadline=None)
@given(WORDS.map(folded), WORDS.map(folded))
def test_nothing_else_is_a_slip(written: str, word: str) -> None:
    if written != word:
        assert (slip(written, word) > 0) == (written in one_slip_away(word, written))


def test_the_likelier_slip_wins_unless_the_other_word_is_far_more_common() -> None:
    assert most_likely("moive", {"movie": 3, "motive": 3, "moose": 50}) == "motive", "ties in the order of letters"
    assert most_likely("moive", {"movie": 4, "motive": 3}) == "movie"
    assert most_likely("hause", {"house": 9, "haul": 50, "hauser": 1}) == "hauser"
    assert most_likely("hause", {"house": 11, "hauser": 1}) == "house"
    assert most_likely("moive", {"movie": 0, "cinema": 9}) is None
    assert most_likely("merlin", {"berlin": 9}) is None, "rather a word that nobody wrote yet"
    assert most_likely("merlin", {"berlin": 11}) == "berlin"


def test_the_question_is_read_with_what_was_meant_and_says_so() -> None:
    question = ask("Whcih talk did Carolien's funraiser follow? carolien_notes.md")
    found = respelt(question, {"whcih": "which", "carolien": "caroline", "funraiser": "fundraiser"})
    assert found.text == "Which talk did Caroline's fundraiser follow? carolien_notes.md"
    assert found.words == ("which", "talk", "did", "caroline's", "fundraiser", "follow", "carolien_notes.md")
    assert [unparse(unit) for unit in units(found.query)] == [
        "talk", "Caroline's", "fundraiser", "follow", "carolien_notes.md",
    ]  # fmt: skip
    assert [note.split(";")[0] for note in found.notes] == [
        "read 'whcih' as 'which'", "read 'carolien' as 'caroline'", "read 'funraiser' as 'fundraiser'",
    ]  # fmt: skip
    assert respelt(question, {}) is question
    assert respelt(ask("whcih"), {"whcih": "which"}).query is not None, "a question does not lose its last word"
