"""The merge decision: precise on every pair, and it still finds most of what is said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from writing_pairs import DIFFERENT, REWORDED, SAME

from recollect.stages import similarity
from recollect.stages.similarity import compare, same_fact, signature
from recollect.stages.wording import read

pytestmark = pytest.mark.covers("budget.dedup")

sentences = st.lists(
    st.sampled_from(
        ("SAME", "fact", "the", "not", "16", "prod", "Redis", "api_key", "A", "is", "mode", ",", ".", "?", "->", "5s")
    ),
    max_size=12,
).map(" ".join)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_facts_are_never_one(left: str, right: str) -> None:
    for loose in (False, True):
        assert not compare(left, right, loose=loose).same
        assert not compare(right, left, loose=loose).same


def test_most_repetitions_are_found_and_the_set_is_large_enough() -> None:
    assert len(SAME) >= 60
    assert len(DIFFERENT) >= 120
    assert len(set(SAME)) == len(SAME)
    assert len(set(DIFFERENT)) == len(DIFFERENT)
    found = [same_fact(left, right) for left, right in SAME]
    assert sum(found) / len(found) >= 0.95
    in_all = found + [same_fact(left, right) for left, right in REWORDED]
    assert sum(in_all) / len(in_all) >= 0.85


def test_the_pair_of_the_seed_merges() -> None:
    verdict = compare("SQLite WAL is important", "SQLite WAL mode matters")
    assert verdict.same
    assert verdict.overlap == pytest.approx(3 / 4)


def test_overlap_must_exceed_the_threshold() -> None:
    assert compare("SQLite WAL is important", "SQLite WAL mode matters", 0.74).same
    assert not compare("SQLite WAL is important", "SQLite WAL mode matters", 0.75).same


@pytest.mark.covers("budget.dedup")
def test_cosine_may_bridge_word_families_and_acronyms_and_words_alone_may_not() -> None:
    for left, right in (
        ("SQLite WAL mode", "write-ahead logging in SQLite"),  # the seed's own example
        ("SQLite WAL mode", "SQLite write-ahead logging"),
        ("Configure the gateway before the cutover", "Configuration of the gateway before the cutover"),
    ):
        assert not compare(left, right).same
        assert compare(left, right, loose=True).same


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("The limit is 5", "The limit is 6", "numbers differ"),
        ("Edit a/b.py first", "Edit a/c.py first", "names from code differ"),
        ("The cache is cold", "The cache is not cold", "negations or relations differ"),
        ("Is the cache cold?", "The cache is cold", "a question and a statement"),
        ("I like green tea", "You like green tea", "persons differ"),
        ("Alice reports to Bob", "Bob reports to Alice", "order differs"),
        ("We migrated the database", "We are migrating the database", "tenses differ"),
        ("Redis", "Redis!", "too few words to tell"),
        ("x " * 3000, "y " * 3000, "too long to compare"),
    ],
)
def test_the_verdict_says_what_keeps_them_apart(left: str, right: str, reason: str) -> None:
    assert compare(left, right).reason == reason


@given(sentences, sentences)
def test_the_verdict_does_not_depend_on_the_side(left: str, right: str) -> None:
    for loose in (False, True):
        assert compare(left, right, loose=loose).same == compare(right, left, loose=loose).same


@given(sentences, sentences)
def test_texts_that_can_be_one_share_a_signature(left: str, right: str) -> None:
    if compare(left, right).same:
        assert signature(read(left)) == signature(read(right))


@pytest.mark.parametrize(("left", "right"), SAME)
def test_repetitions_share_a_signature(left: str, right: str) -> None:
    if same_fact(left, right):
        assert signature(read(left)) == signature(read(right))


@given(st.text(max_size=200))
def test_every_text_can_be_read_and_equals_itself(text: str) -> None:
    assert compare(text, text).same
    assert compare(text, text + " 31337").same is False


@given(st.text(max_size=100), st.integers(0, 99), st.integers(0, 99))
def test_a_different_number_always_keeps_texts_apart(text: str, one: int, other: int) -> None:
    verdict = compare(f"{text} {one}", f"{text} {other}", overlap=0.0)
    assert verdict.same == (one == other)


def test_only_short_texts_are_compared_by_meaning() -> None:
    assert similarity.comparable("x" * similarity.MAX_CHARACTERS)
    assert not similarity.comparable("x" * (similarity.MAX_CHARACTERS + 1))
