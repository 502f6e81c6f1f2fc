"""Sentences, and the passages made of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.stages.passages import MAX_CHARACTERS_PER_TOKEN, of_memory, split
from recollect.stages.sentences import sentences
from recollect.stages.tokens import estimate, quarter


def words(text: str) -> int:
    return len(text.split())


def wordpieces(text: str) -> int:
    """Like a model's tokeniser: two marks around every text, and any very long word is one unknown."""
    return 2 + sum(1 if len(word) > 100 else -(-len(word) // 4) for word in text.split())


COUNTS: list[Callable[[str], int]] = [quarter, estimate, words, wordpieces]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One.", ["One."]),
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("He said “no.” Then left.", ["He said “no.” ", "Then left."]),
        (
            "Use v1.2.3 now. Ask Dr. Smith, e.g. today. J. Doe knows.",
            ["Use v1.2.3 now. ", "Ask Dr. Smith, e.g. today. ", "J. Doe knows."],
        ),
        ("wrapped prose\ngoes on. Next", ["wrapped prose\ngoes on. ", "Next"]),
        ("- one\n- two\n\nthree", ["- one\n", "- two\n\n", "three"]),
        ("数据库。查询！好", ["数据库。", "查询！", "好"]),
        ("wait... what", ["wait... what"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@settings(deadline=None)
@given(st.text("aB.!? \n。\"'-数", max_size=80))
def test_sentences_cover_the_text_side_by_side(text: str) -> None:
    assert "".join(text[start:end] for start, end in sentences(text)) == text
    assert all(start < end for start, end in sentences(text))


def test_a_sentence_that_is_too_long_is_cut_at_its_lines_before_its_words() -> None:
    text = "wrapped prose that\ngoes on without\nany full stop"
    cut = [text[start:end] for start, end in split(text, 4, words, overlap=0)]
    assert cut == ["wrapped prose that\n", "goes on without\n", "any full stop"]


def check(text: str, passages: list[tuple[int, int]], max_tokens: int, count: Callable[[str], int]) -> None:
    assert passages[0][0] == 0 and passages[-1][1] == len(text)
    for (first, end), (start, last) in itertools.pairwise(passages):
        assert first < start <= end < last, "no gap, and each gets further"
    for start, end in passages:
        assert count(text[start:end]) <= max_tokens or end - start == 1
        assert end - start <= max_tokens * MAX_CHARACTERS_PER_TOKEN


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["A sentence here. ", "Short! ", "one two three four five six seven ", "x" * 90, "数据库。", "\n\n", "  "]
        ),
        min_size=1,
    ).map("".join),
    st.integers(3, 40),
    st.sampled_from(COUNTS),
    st.sampled_from([0.0, 0.15, 0.5]),
)
def test_passages_cover_everything_within_the_limit(
    text: str, max_tokens: int, count: Callable[[str], int], overlap: float
) -> None:
    passages = split(text, max_tokens, count, overlap)
    check(text, passages, max_tokens, count)
    assert passages == split(text, max_tokens, count, overlap)


def test_a_text_that_fits_is_one_passage() -> None:
    assert split("One. Two.", 10, words) == [(0, 9)]
    assert split("", 10, words) == []


def test_neighbours_share_whole_sentences() -> None:
    text = "".join(f"This is sentence {number:02}. " for number in range(20))
    passages = split(text, 20, words, overlap=0.25)
    parts = [text[start:end] for start, end in passages]
    assert parts[0].count("sentence") == 5
    for before, after in itertools.pairwise(parts):
        shared = before[-21:]
        assert shared.startswith("This is") and after.startswith(shared)
    apart = split(text, 20, words, overlap=0.0)
    assert [end for _, end in apart[:-1]] == [start for start, _ in apart[1:]]
    assert len(apart) == 4 < len(passages)


@pytest.mark.parametrize("count", COUNTS, ids=lambda count: count.__name__)
@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "数" * 20_000, "." * 100_000, " " * 100_000 + "x", "a = b(c)\n" * 5_000, "word " * 20_000],
    ids=["word", "cjk", "stops", "space", "code", "no-sentences"],
)
def test_texts_without_sentence_ends(text: str, count: Callable[[str], int]) -> None:
    passages = split(text, 256, count)
    check(text, passages, 256, count)
    assert len(passages) <= 4096


def test_the_number_of_passages_is_bounded() -> None:
    text = "One two. " * 1000
    passages = split(text, 3, words, 0.0, max_passages=10)
    assert len(passages) == 10
    assert passages[0][0] == 0 and passages[-1][1] == len(text)
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(passages))


def test_the_marks_of_a_tokeniser_are_paid_once_for_a_passage() -> None:
    text = "One two. " * 40
    assert len(split(text, 22, wordpieces, overlap=0.0)) == 4


def test_a_transcript_is_cut_at_its_turns_and_the_names_stay_out() -> None:
    text = "user: Where is it?\nIn the shed?\nassistant: Yes. Look behind the door: there.\n\nUser: thanks\n"
    cut = [text[start:end] for start, end in of_memory(text, 50, words)]
    assert cut == ["Where is it?\nIn the shed?", "Yes. Look behind the door: there.", "thanks"]


def test_a_long_turn_is_cut_further_and_too_many_turns_are_taken_together() -> None:
    text = "user: one two three four. five six seven eight.\nassistant: nine\n"
    cut = [text[start:end] for start, end in of_memory(text, 4, words)]
    assert cut == ["one two three four. ", "five six seven eight.", "nine"]
    assert of_memory(text, 100, words, 1) == [(0, len(text))]


def test_pieces_too_small_to_count_do_not_make_a_passage_each() -> None:
    """An endpoint's estimate: what it puts before every text is counted too, and the sum is rounded."""
    text = "1 0 " * 2000
    assert len(split(text, 512, lambda piece: -(-len("document: " + piece) // 3))) < 20


def test_a_persons_turn_is_cut_at_its_sentences_and_the_assistants_is_not() -> None:
    text = (
        "user: Which rack would carry a hybrid bike on my car? Thanks! By the way, I had the gears repaired in May."
        "\nassistant: A hitch rack is easy to mount on most cars. A roof rack is cheaper, and harder to load alone."
        "\nHuman: I will take the hitch rack, then, as I always ride alone. Good."
    )
    cut = [text[start:end] for start, end in of_memory(text, 50, words)]
    assert cut == [
        "Which rack would carry a hybrid bike on my car?",
        "Thanks! By the way, I had the gears repaired in May.",
        "A hitch rack is easy to mount on most cars. A roof rack is cheaper, and harder to load alone.",
        "I will take the hitch rack, then, as I always ride alone. Good.",
    ]


def test_a_text_that_a_person_pasted_is_one_turn_and_not_a_hundred_thoughts() -> None:
    pasted = "The quick brown fox jumps over the lazy dog again. " * 20
    text = f"user: {pasted}\nassistant: Noted."
    assert [text[start:end] for start, end in of_memory(text, 500, words)] == [pasted.rstrip(), "Noted."]


def test_where_sentences_are_too_many_a_transcript_is_cut_at_its_turns() -> None:
    text = "user: " + "The quick brown fox jumps over the lazy dog again. " * 3 + "\nassistant: Noted."
    assert len(of_memory(text, 100, words, 4)) == 4
    assert len(of_memory(text, 100, words, 3)) == 2


@pytest.mark.parametrize("text", ["user: alone", "We asked.\nuser: a\nassistant: b", "username: a\npassword: b", ""])
def test_what_does_not_begin_as_a_conversation_is_none(text: str) -> None:
    assert of_memory(text, 100, words) == split(text, 100, words)
