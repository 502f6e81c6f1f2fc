"""Prompts are prose: nothing in them is an operator, and of long ones both ends count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.domain.question import Filter
from recollect.stages.parse import MAX_PROSE, unparse
from recollect.stages.prose import MEANT, ends, says_nothing
from tests.stages.asking import ask


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        ("the worker does NOT take jobs", "worker OR take OR jobs"),
        ("build with -Werror and fix it", "build OR Werror OR fix"),
        ('it says "Image size exceeds slot"', "says OR Image OR size OR exceeds OR slot"),
        ("add {addr: 0x21, type:int16}", "add OR addr OR 0x21 OR type OR int16"),
        ("char* name AND (size OR mode)", "char OR name OR size OR mode"),
    ],
)
def test_nothing_in_a_prompt_is_an_operator(prompt: str, read: str) -> None:
    question = ask(prompt, prose=True)
    assert question.query is not None and unparse(question.query) == read
    assert question.filter == Filter() and question.plain


@pytest.mark.parametrize(
    ("name", "read", "words"),
    [
        ("retryPolicy", "retryPolicy OR retry OR Policy", ("retry", "policy")),
        ("retry_policy", "retry_policy OR retry OR policy OR retrypolicy", ("retry_policy",)),
        ("k_msleep()", "k_msleep() OR msleep OR kmsleep", ("k_msleep()",)),
        ("core/http.py", "core/http.py OR core OR http OR py", ("core/http.py",)),
        ("db.HTTPError", "db.HTTPError OR db OR HTTPError OR HTTP OR Error", ("db", "http", "error")),
        ("3.12.7 self-care Anna's", "3.12.7 OR self-care OR Anna's", ("3.12.7", "self-care", "anna's")),
        ('"retryPolicy"', '"retryPolicy"', ("retrypolicy",)),
        ("_retry_", "_retry_", ("_retry_",)),
        ("siRNA iPhone userId", "siRNA OR iPhone OR userId OR user OR Id", ("sirna", "iphone", "user", "id")),
    ],
)
def test_names_in_code_are_asked_for_in_their_other_spellings(name: str, read: str, words: tuple[str, ...]) -> None:
    question = ask(name, identifiers=True)
    assert question.query is not None and unparse(question.query) == read
    assert question.words == words


def test_of_a_long_prompt_both_ends_are_read() -> None:
    question = ask("first " + "filler " * MAX_PROSE + "last", prose=True)
    assert question.words[0] == "first" and question.words[-1] == "last"
    assert any(str(MAX_PROSE) in note for note in question.notes)


def test_a_prompt_of_more_words_than_are_searched_for_says_so_and_names_no_time() -> None:
    log = "2024-05-02 failed " + " ".join(f"word{number}" for number in range(100))
    long, short = (ask(text, prose=True, temporal=True) for text in (log, log[:40]))
    assert long.cut and len(long.words) > 100 and long.window is None
    assert not short.cut and short.window is not None


def test_the_ends_of_a_text_are_whole_words() -> None:
    assert ends("short", MEANT) == "short"
    text = "please look " + "noise " * 1000 + "at the end"
    cut = ends(text, 60)
    assert cut.startswith("please look noise") and cut.endswith("at the end") and len(cut) <= 60
    assert set(cut.split()) == {"please", "look", "noise", "…", "at", "the", "end"}
    assert len(ends("x" * 1000, 60)) <= 60


@given(st.text("abcdef \n", min_size=61, max_size=90), st.integers(20, 60))
def test_both_ends_are_the_texts_own_and_cut_between_words_where_there_are_any(text: str, most: int) -> None:
    assert ends(text, len(text)) == text
    head, _, tail = ends(text, most).partition("\n…\n")
    half = (most - 3) // 2
    assert text.startswith(head) and text.endswith(tail)
    assert half // 2 < len(head) <= half and half // 2 < len(tail) <= half
    for end, rest in ((head, text[len(head) : half]), (tail[::-1], text[-half : -len(tail)][::-1])):
        if rest:
            assert rest[0].isspace() and not any(sign.isspace() for sign in rest[1:]), "as far as whole words go"
        else:
            assert not any(sign.isspace() for sign in end[half // 2 + 1 :]), "there is no place to cut"


@pytest.mark.parametrize(
    "prompt", ["thanks!", "ok, do it", "Yes please", "go ahead", "ja, mach das", "no wait", "?", "b"]
)
def test_who_only_nods_asks_nothing(prompt: str) -> None:
    assert says_nothing(ask(prompt, prose=True).words)


@pytest.mark.parametrize(
    "prompt", ["ok, run the migration", "thanks, now deploy", "stop the worker", "Danke für den Fix", "db", "水"]
)
def test_who_names_a_thing_asks_for_it(prompt: str) -> None:
    assert not says_nothing(ask(prompt, prose=True).words)
