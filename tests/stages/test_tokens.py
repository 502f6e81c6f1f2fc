"""Token counts and the snippets that fit a budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.ranking import Passage
from recollect.stages.sentences import sentences
from recollect.stages.tokens import COUNTERS, ELLIPSIS, estimate, quarter, snippet

pytestmark = pytest.mark.covers("budget.tokens")

prose = st.lists(
    st.sampled_from(["One two. ", "Three? ", "four five six ", "Seven!\n\n", "八九。", "word", " ", "-\n"])
).map("".join)
counters = st.sampled_from(list(COUNTERS.values()))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 2000, 500)])
def test_a_quarter_of_the_characters_rounded_up(text: str, tokens: int) -> None:
    assert quarter(text) == tokens


def test_the_estimate_corrects_for_code_numbers_and_other_scripts() -> None:
    assert estimate("") == 0
    assert estimate("The quick brown fox jumps over the lazy dog") == 9
    assert estimate("数据库查询") == 5 > quarter("数据库查询")
    assert estimate("x[i] += (y<<2) && !z;") > 2 * quarter("x[i] += (y<<2) && !z;")
    assert estimate("123456789") == 3
    assert estimate("база данных") == 5
    assert estimate("internationalization") == 5
    english = (
        "The migration failed because the worker still held a lock on the table while the backup was running. " * 5
    )
    assert estimate(english) == pytest.approx(quarter(english), rel=0.25)


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), counters)
def test_more_text_never_costs_less(first: str, second: str, counter: object) -> None:
    assert callable(counter)
    assert counter(first + second) >= counter(first) >= 0


TEXT = "First one. Second two! Third three? Fourth four. Fifth five."


@pytest.mark.parametrize(
    ("budget", "around", "expected"),
    [
        (15, None, TEXT),
        (14, None, "First one. Second two! Third three? Fourth four.…"),
        (6, None, "First one. Second two!…"),
        (3, None, "First one.…"),
        (2, None, "First…"),
        (1, None, "Fir…"),
        (0, None, ""),
        (-5, None, ""),
        (7, Passage(23, 35), "…Third three? Fourth four.…"),
        (7, Passage(49, 60), "…Fourth four. Fifth five."),
        (4, Passage(49, 60), "…Fifth five."),
        (4, Passage(999, 1000), "…Fifth five."),
    ],
)
def test_snippets_are_whole_sentences_that_fit(budget: int, around: Passage | None, expected: str) -> None:
    found = snippet(TEXT, budget, quarter, around)
    assert found == expected
    assert quarter(found) <= max(budget, 0)


@settings(deadline=None)
@given(prose, st.integers(-2, 40), counters, st.none() | st.builds(Passage, st.integers(0, 300), st.integers(0, 300)))
def test_snippets_never_blow_the_budget_and_are_part_of_the_text(
    text: str, budget: int, counter: object, around: Passage | None
) -> None:
    assert callable(counter)
    found = snippet(text, budget, counter, around)  # pyright: ignore[reportArgumentType]
    assert counter(found) <= max(budget, 0)
    assert found.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS) in text
    if text.strip() and counter(text) <= budget:
        assert found == text


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "." * 1_000_000, "word " * 200_000, "\n" * 500_000 + "x", "数" * 100_000]
)
def test_snippets_of_long_texts_without_sentences(text: str) -> None:
    found = snippet(text, 50, quarter)
    assert 0 < quarter(found) <= 50


def test_a_snippet_is_the_longest_that_fits() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(50))
    found = snippet(text, 60, quarter)
    ends = [text[:end].strip() + ELLIPSIS for _, end in sentences(text)]
    assert found == max((one for one in ends if quarter(one) <= 60), key=len)
